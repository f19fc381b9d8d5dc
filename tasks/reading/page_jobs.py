"""Jobs that read one answer, bytes in and records out, in any process.

A usual page is read where it came in: it takes a millisecond. What may take longer (a large page, one of an unusual
shape) is read in a process apart, which can be ended (`tasks.worker.page_reader`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, TypeVar

from splitter.catalog.rules import PageRules, ResultRules

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import ListPage, PageRead, Response, ResultPage
from tasks.reading.add_voices import voiced
from tasks.reading.decode import decode
from tasks.reading.event_loop import NeedsReaderProcess, on_event_loop
from tasks.reading.extract import read_page
from tasks.reading.lists import read_list
from tasks.reading.markup import is_usual
from tasks.reading.results import read_results

USUAL_BYTES = 65_536
"""Of an answer that may be read where it came in."""
_FEW_BYTES = 8_192
"""Hold few reviews: the voice of one takes up to 0.3 ms, for some 400 characters."""

log = logging.getLogger("reviewloop.reading")

Read = TypeVar("Read", covariant=True)


class ReadingJob(Protocol[Read]):
    """An answer and what it is to be read as."""

    @property
    def body(self) -> bytes:
        """The answer, as it came."""
        ...

    @property
    def in_thread(self) -> bool:
        """Whether it is read in a thread: it takes milliseconds, in which other answers would wait."""
        ...

    def read(self, *, apart: bool) -> Read:
        """Read it.

        Args:
            apart: this process can be ended.

        Raises:
            FetchError: it can't be read, with its class.
            NeedsReaderProcess: it is not usual, and this process is not apart.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PageJob:
    """A page of a site.

    Attributes:
        url: final address.
        hint: the catalog's encoding of the site.
        now: aware; what relative dates count from.
    """

    body: bytes
    headers: Mapping[str, str]
    url: str
    rules: PageRules
    hint: str
    now: datetime

    @classmethod
    def of(cls, response: Response, rules: PageRules, hint: str, now: datetime) -> PageJob:
        """The job of reading a response."""
        headers = _needed(response.headers)
        return cls(body=response.body, headers=headers, url=response.url, rules=rules, hint=hint, now=now)

    @property
    def in_thread(self) -> bool:
        """True for a main text, and where there may be many reviews: their voices take milliseconds, too."""
        return self.rules.main_text or len(self.body) > _FEW_BYTES

    def read(self, *, apart: bool) -> tuple[PageRead, str]:
        """The page, and the encoding it was in. Raises FetchError, NeedsReaderProcess."""
        text, encoding = _text(self.body, self.headers, self.hint, apart=apart)
        read = read_page(text, self.url, self.rules, now=self.now)
        return replace(read, reviews=voiced(read.reviews)), encoding


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultJob:
    """A result page of an engine; attributes as of `PageJob`."""

    body: bytes
    headers: Mapping[str, str]
    url: str
    rules: ResultRules
    now: datetime

    @classmethod
    def of(cls, response: Response, rules: ResultRules, now: datetime) -> ResultJob:
        """The job of reading a response."""
        headers = _needed(response.headers)
        return cls(body=response.body, headers=headers, url=response.url, rules=rules, now=now)

    @property
    def in_thread(self) -> bool:
        """True where there may be many whole posts: their voices take milliseconds."""
        return self.rules.post is not None and len(self.body) > _FEW_BYTES

    def read(self, *, apart: bool) -> ResultPage:
        """The result page. Raises FetchError, NeedsReaderProcess."""
        text, _ = _text(self.body, self.headers, "", apart=apart)
        read = read_results(text, self.url, self.rules, now=self.now)
        if self.rules.post is None:
            return read
        hits = (replace(hit, post=voiced([hit.post])[0]) if hit.post else hit for hit in read.hits)
        return replace(read, hits=tuple(hits))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListJob:
    """A page that lists others; attributes as of `PageJob`."""

    body: bytes
    headers: Mapping[str, str]
    url: str
    rules: ResultRules
    now: datetime

    @property
    def in_thread(self) -> bool:
        """True: a sitemap takes milliseconds."""
        return True

    def read(self, *, apart: bool) -> ListPage:
        """The page of the list. Raises FetchError, NeedsReaderProcess."""
        text, _ = _text(self.body, self.headers, "", apart=apart)
        return read_list(text, self.url, self.rules, self.now)


def done(job: ReadingJob[Read], *, apart: bool) -> Read:
    """Do a job; what no reader foresaw is an outcome, too.

    Raises:
        FetchError: as the job; UNREADABLE for an error of the reader itself, which is logged.
        NeedsReaderProcess: as the job.
        MemoryError: it takes more than this process may have.
    """
    before = on_event_loop.set(not apart)
    try:
        return job.read(apart=apart)
    except (FetchError, NeedsReaderProcess, MemoryError):
        raise
    except Exception as error:
        log.exception("a page of %d bytes can't be read", len(job.body))
        raise unreadable(f"{type(error).__name__}: {error}") from error
    finally:
        on_event_loop.reset(before)


def unreadable(why: str) -> FetchError:
    """The error of a page that no reader can read in its time and memory."""
    return FetchError(ErrorClass.UNREADABLE, why[:500])


def _needed(headers: Mapping[str, str]) -> dict[str, str]:
    """Of an answer's headers those that say how it is read."""
    return {name: value for name, value in headers.items() if name == "content-type"}


def _text(body: bytes, headers: Mapping[str, str], hint: str, *, apart: bool) -> tuple[str, str]:
    if not apart and len(body) > USUAL_BYTES:
        raise NeedsReaderProcess
    text, encoding, _ = decode(body, headers, hint, guess=None if apart else _not_here)
    if not apart and not is_usual(text):
        raise NeedsReaderProcess
    return text, encoding


def _not_here(*_asked: object) -> str:
    raise NeedsReaderProcess
