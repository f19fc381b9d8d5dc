"""Fetch one page as a crawl does: in a browser if the page is made by scripts.

For `sites try` and `failed show --refetch`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from app.run.preflight import browser_missing
from app.run.setting_fields import Settings
from app.run.wiring import new_browser
from app.sites.http_session import Answer, AskFailed, ask
from splitter.catalog.model import Catalog
from splitter.errors import InputError, Message
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.permits import WaitTooLong
from tasks.reading.decode import decode

_HEAD = 600


def is_result_page(catalog: Catalog, site: str, url: str) -> bool:
    """Return True if a URL is a page of search results of the site's engine."""
    engine, requested = catalog.engine_of(site), urlsplit(url)
    book = HostCatalog(catalog)
    if book.name(url) != book.engine_host(catalog.sites[site].engine):
        return False
    before, page, after = urlsplit(engine.url).path.partition("{page}")
    if engine.discover == "list":
        middle = requested.path.removeprefix(before).removesuffix(after)
        return before + middle + after == requested.path and (middle.isdecimal() if page else not middle)
    return requested.path == before and bool(requested.query)


def ask_as_crawl(url: str, settings: Settings, catalog: Catalog, site: str, *, result: bool) -> Answer:
    """Fetch a page of a site as a crawl does: in a browser if the page is made by scripts.

    Args:
        result: True for a result page of the site's engine. It is requested with the engine's headers.

    Raises:
        AskFailed: there is no response.
        InputError: the page needs a browser, and this machine has none.
    """
    hosts = HostCatalog(catalog)
    if catalog.renders(site) and not result:
        return ask_rendered(url, settings, hosts)
    headers = catalog.engine_of(site).headers if result else None
    return ask(url, settings.crawl(), headers=headers, trusts=hosts.is_private)


def refetch_page(url: str, site: str, settings: Settings) -> dict[str, Any]:
    """Fetch a page again for `failed show --refetch`. Return data about the response with the beginning of its text.

    If there is no response, return the error.
    """
    catalog = settings.catalog()
    try:
        if site in catalog.sites:
            answer = ask_as_crawl(url, settings, catalog, site, result=is_result_page(catalog, site, url))
        else:
            answer = ask(url, settings.crawl())
    except (AskFailed, InputError) as error:
        return {"url": url, "error": error.message}
    text = ""
    encoding: Message | str
    try:
        text, encoding, _ = decode(answer.body, answer.headers)
    except FetchError as error:
        encoding = error.message
    return answer.facts() | {"encoding": encoding, "redirects": answer.redirects, "head": text[:_HEAD]}


def ask_rendered(url: str, settings: Settings, hosts: HostCatalog) -> Answer:
    """Fetch a page, run its scripts in a browser, and return the page that they made.

    A response whose status is not 2xx is returned unchanged.

    Raises:
        AskFailed: there is no response, or the scripts do not end.
        InputError: this machine has no browser.
    """
    lacks = browser_missing(settings)
    if lacks is not None:
        raise InputError("{why}: {mend}", why=lacks.why, mend=lacks.mend)
    answer = ask(url, settings.crawl(), trusts=hosts.is_private)
    if not 200 <= answer.status < 300:
        return answer
    try:
        made = asyncio.run(_render(answer, settings, hosts))
    except (FetchError, WaitTooLong) as error:
        raise AskFailed("{url}: {error}", url=url, error=error) from error
    return replace(answer, body=made.body, headers=made.headers)


async def _render(answer: Answer, settings: Settings, hosts: HostCatalog) -> Response:
    host = hosts.name(answer.url)

    def is_own(url: str) -> bool:
        return hosts.name(url) == host

    async def part(url: str, headers: Mapping[str, str]) -> Response:
        trusts = hosts.is_private if is_own(url) else _nothing
        try:
            one = await asyncio.to_thread(ask, url, settings.crawl(), headers=headers, trusts=trusts)
        except AskFailed as error:
            raise FetchError(ErrorClass.CONNECT, error.message) from error
        return _response(one)

    browser = new_browser(settings)
    assert browser is not None  # the check above found a browser
    try:
        return await browser.render(_response(answer), part, is_own)
    finally:
        await browser.close()


def _response(answer: Answer) -> Response:
    return Response(
        url=answer.url,
        status=answer.status,
        headers=answer.headers,
        body=answer.body,
        elapsed_s=answer.elapsed_s,
    )


def _nothing(_url: str) -> bool:
    return False
