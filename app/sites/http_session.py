"""Fetch one page with the downloader of the crawl, for `sites try`, `sites check` and `failed show --refetch`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from splitter.errors import ReviewloopError
from tasks.domain.address import sendable
from tasks.domain.failures import FetchError
from tasks.domain.pages import Response
from tasks.fetching.downloader import Downloader, nothing
from tasks.worker.settings import CrawlSettings


class AskFailed(ReviewloopError):
    """A page could not be fetched: the guard refused it, the host did not answer, or it is too large."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response to a request, after redirects.

    Attributes:
        url: the URL that responded.
        headers: headers by lower-case name.
        redirects: the URLs requested before `url`, in order.
        elapsed_s: seconds for all requests together.
    """

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    redirects: tuple[str, ...]
    elapsed_s: float

    def facts(self) -> dict[str, Any]:
        """Return those fields of the response that `--json` prints."""
        size = len(self.body)
        return {"url": self.url, "status": self.status, "bytes": size, "seconds": self.elapsed_s}


def ask(
    url: str,
    settings: CrawlSettings,
    *,
    headers: Mapping[str, str] | None = None,
    trusts: Callable[[str], bool] = nothing,
) -> Answer:
    """Fetch a page, following redirects, and return the response, whatever its status.

    Args:
        headers: further headers, sent to the host of `url` only.
        trusts: returns True for a URL whose host may have a private address (`HostCatalog.is_private`). It is called
            for `url` only, so a redirect to a private address is refused.

    Raises:
        AskFailed: there is no response.
    """
    try:
        return asyncio.run(_ask(url, settings, headers, trusts))
    except FetchError as error:
        raise AskFailed("{error}", error=error) from error


async def _ask(
    url: str, settings: CrawlSettings, headers: Mapping[str, str] | None, trusts: Callable[[str], bool]
) -> Answer:
    first = sendable(url)
    asked: list[str] = []

    async def note_request(address: str) -> None:
        asked.append(address)

    # A person chose the first URL, but the host chooses its redirects.
    is_first_trusted = trusts(first)
    async with Downloader(
        user_agent=settings.user_agent, clock=lambda: datetime.now(UTC), lab=settings.lab
    ) as downloader:
        try:
            response = await downloader.fetch(
                first,
                timeout_s=settings.request_timeout_s,
                headers=headers,
                before_request=note_request,
                trusts=lambda address: is_first_trusted and address == first,
            )
        except FetchError as error:
            if error.response is None:
                raise
            response = error.response
    return _answer(response, tuple(asked[:-1]))


def _answer(response: Response, redirects: tuple[str, ...]) -> Answer:
    return Answer(
        url=response.url,
        status=response.status,
        headers=response.headers,
        body=response.body,
        redirects=redirects,
        elapsed_s=response.elapsed_s,
    )
