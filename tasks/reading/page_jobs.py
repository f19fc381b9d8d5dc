"""Jobs that read one answer: bytes in, records out, in any process.

There are two places to read. A small answer that has rules takes a millisecond in a thread. Every other one is read in
a process of its own (`reader_process`), which can be ended.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Generic, Self, TypeVar

from splitter.catalog.names import Group
from splitter.catalog.rules import PageRules, ResultRules
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import ListPage, PageRead, Response, ResultPage
from tasks.reading.decode import decode
from tasks.reading.extract import ThreadReader, read_page
from tasks.reading.judge.reviews import add_judgements_of_pages
from tasks.reading.lists import read_list
from tasks.reading.results import read_results
from tasks.reading.thread_pages import read_thread_page

_SMALL_BYTES = 65_536

log = logging.getLogger("reviewloop.reading")

Read = TypeVar("Read", covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingJob(ABC, Generic[Read]):
    """An answer, and how it is read.

    Attributes:
        body: the answer as it came.
        url: its final address.
        now: aware, in the site's zone; relative dates count from it.
    """

    body: bytes
    headers: Mapping[str, str]
    url: str
    now: datetime

    @classmethod
    def from_response(cls, response: Response, now: datetime, **how: Any) -> Self:
        """Make the job of a response; of its headers only the content type matters."""
        headers = {name: value for name, value in response.headers.items() if name == "content-type"}
        return cls(body=response.body, headers=headers, url=response.url, now=now, **how)

    @property
    def is_quick(self) -> bool:
        """Return True if reading takes milliseconds, whatever the answer holds."""
        return len(self.body) <= _SMALL_BYTES

    @abstractmethod
    def read(self) -> Read:
        """Read the answer. Raises FetchError if it can't be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob(ReadingJob[tuple[PageRead, str]]):
    """A page of a site; it is read with its encoding, its reviews without voices and themes.

    Attributes:
        hint: the catalog's encoding of the site.
        group: the kind of site; None: not known.
        category: of the product that it was found for; None: not known.
        read_thread: reads a page without rules as a thread; `None` if it is none.
    """

    rules: PageRules
    hint: str
    group: Group | None = None
    category: str | None = None
    read_thread: ThreadReader = read_thread_page

    @property
    def is_quick(self) -> bool:
        return len(self.body) <= _SMALL_BYTES and not self.rules.main_text

    def read(self) -> tuple[PageRead, str]:
        text, encoding, _ = decode(self.body, self.headers, self.hint)
        read = read_page(
            text, self.url, self.rules, now=self.now, read_thread=self.read_thread, encoding=encoding
        )
        return read, encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultJob(ReadingJob[ResultPage]):
    """A result page of an engine."""

    rules: ResultRules

    def read(self) -> ResultPage:
        text, encoding, _ = decode(self.body, self.headers)
        return read_results(text, self.url, self.rules, now=self.now, encoding=encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJob(ReadingJob[ListPage]):
    """A page that lists others."""

    rules: ResultRules

    def read(self) -> ListPage:
        text, encoding, _ = decode(self.body, self.headers)
        return read_list(text, self.url, self.rules, self.now, encoding)


def run(job: ReadingJob[Read]) -> Read:
    """Read the answer of a job; the reviews of a page get their voices and themes.

    Raises:
        FetchError: as the job.
        MemoryError: reading takes more than this process may have.
    """
    (outcome,) = run_together([job])
    if isinstance(outcome, Exception):
        raise outcome
    read: Read = outcome
    return read


def run_together(jobs: Sequence[ReadingJob[Any]]) -> list[Any]:
    """Return what `run` returns or raises for each of some jobs. The reviews of their pages are judged together."""
    outcomes = [_try(job, job.read) for job in jobs]
    alike: dict[Any, list[tuple[int, PageJob]]] = defaultdict(list)
    for place, (job, outcome) in enumerate(zip(jobs, outcomes, strict=True)):
        if isinstance(job, PageJob) and not isinstance(outcome, Exception):
            alike[job.group, job.category].append((place, job))
    for some in alike.values():
        judged = _judge([job for _, job in some], [outcomes[place] for place, _ in some])
        for (place, _), outcome in zip(some, judged, strict=True):
            outcomes[place] = outcome
    return outcomes


def _judge(jobs: Sequence[PageJob], pages: Sequence[tuple[PageRead, str]]) -> list[Any]:
    """Return pages with the voices and themes of their reviews, or errors; one that fails fails alone."""
    first = jobs[0]
    reviews = [read.reviews for read, _ in pages]
    judged = _try(first, partial(add_judgements_of_pages, reviews, first.group, first.category))
    if not isinstance(judged, Exception):
        return [
            (replace(read, reviews=one), encoding)
            for (read, encoding), one in zip(pages, judged, strict=True)
        ]
    if len(jobs) == 1:
        return [judged]
    return [outcome for job, page in zip(jobs, pages, strict=True) for outcome in _judge([job], [page])]


def _try(job: ReadingJob[Any], work: Callable[[], Any]) -> Any:
    """Return the result of work for a job, or its error; one that no reader foresaw becomes UNREADABLE, logged."""
    try:
        return work()
    except (FetchError, MemoryError) as error:
        return error
    except Exception as error:
        log.exception("a page of %d bytes can't be read", len(job.body))
        return unreadable(f"{type(error).__name__}: {error}"[:500])


def unreadable(why: Message | str) -> FetchError:
    """Return the error of a page that no reader can read in its time and memory."""
    return FetchError(ErrorClass.UNREADABLE, why)
