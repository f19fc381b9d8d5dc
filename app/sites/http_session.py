"""One page fetched as a person would with a browser, for `sites try`, `sites check` and `failed show --refetch`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import requests

from splitter.errors import ReviewloopError
from tasks.domain.address import authority_of, joined, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.guarded_session import GuardedAdapter, SessionSettings, cause_of, guarded
from tasks.worker.settings import CrawlSettings

_MOST_BYTES = 5_000_000
_MOST_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)


class AskFailed(ReviewloopError):
    """There is no page: refused by the guard, no answer, or too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response, behind its redirects.

    Attributes:
        url: the last one asked.
        headers: lower-case names.
        redirects: addresses asked before it, in order.
        elapsed_s: for all of them.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...]
    elapsed_s: float

    def facts(self) -> dict[str, Any]:
        """The answer as `--json` prints it."""
        size = len(self.body)
        return {"url": self.url, "status": self.status, "bytes": size, "seconds": self.elapsed_s}


def ask(
    url: str,
    settings: CrawlSettings,
    *,
    headers: Mapping[str, str] | None = None,
    trusts: Callable[[str], bool] = lambda _url: False,
) -> Answer:
    """Fetch a page through its redirects; a response of any status is an answer.

    Args:
        headers: sent besides our own, to the host of `url` only.
        trusts: true for a URL whose host may be on a private address (`HostCatalog.may_be_private`).

    Raises:
        AskFailed: there is none.
    """
    began_s = time.monotonic()
    asked: list[str] = []
    way = SessionSettings(
        user_agent=settings.user_agent,
        lab=settings.lab,
        timeout_s=settings.request_timeout_s,
        body_bytes=_MOST_BYTES,
        trusts=trusts,
    )
    try:
        with closing(GuardedAdapter(way)) as adapter:
            session = guarded(requests.Session(), adapter, settings.user_agent)
            url = sendable(url)
            first = authority_of(url)
            while True:
                extra = headers if authority_of(url) == first else None
                response = session.get(url, headers=extra, allow_redirects=False)
                if response.status_code not in _REDIRECTS or "location" not in response.headers:
                    break
                asked.append(url)
                url = joined(url, response.headers["location"])
                if url in asked or len(asked) > _MOST_REDIRECTS:
                    raise FetchError(ErrorClass.REDIRECTS, f"{len(asked)} redirects, the last one to {url}")
    except FetchError as error:
        raise AskFailed(str(error)) from error
    except (requests.RequestException, OSError) as error:
        raise AskFailed(f"{url}: {cause_of(error)}") from error
    return Answer(
        url=url,
        status=response.status_code,
        headers={name.lower(): value for name, value in response.headers.items()},
        body=response.content,
        redirects=tuple(asked),
        elapsed_s=time.monotonic() - began_s,
    )
