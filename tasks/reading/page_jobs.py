"""Jobs that read one answer: bytes in, records out, in any process.

There are two places to read. A small answer that has rules takes a millisecond in a thread. Every other one is read in
a process of its own (`reader_process`), which can be ended.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Generic, Self, TypeVar

from splitter.catalog.names import Group
from splitter.catalog.rules import PageRules, ResultRules
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import ListPage, PageRead, Response, ResultPage
from tasks.reading.decode import decode
from tasks.reading.extract import ThreadReader, read_page
from tasks.reading.judge.reviews import add_judgements
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
    """A page of a site; it is read with its encoding.

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
        return replace(read, reviews=add_judgements(read.reviews, self.group, self.category)), encoding


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
    """Read the answer of a job; an error that no reader foresaw becomes UNREADABLE and is logged.

    Raises:
        FetchError: as the job.
        MemoryError: reading takes more than this process may have.
    """
    try:
        return job.read()
    except (FetchError, MemoryError):
        raise
    except Exception as error:
        log.exception("a page of %d bytes can't be read", len(job.body))
        raise unreadable(f"{type(error).__name__}: {error}"[:500]) from error


def unreadable(why: Message | str) -> FetchError:
    """Return the error of a page that no reader can read in its time and memory."""
    return FetchError(ErrorClass.UNREADABLE, why)
