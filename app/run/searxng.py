"""Asks whether a SearXNG answers and what it would search with: its `/config`, and one search as the catalog has it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

import requests

from splitter.catalog.model import Engine
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.fetching.guarded_session import GuardedAdapter, SessionSettings, cause_of, guarded
from tasks.worker.settings import CrawlSettings

_SAMPLE = ("牛奶",)
_REFUSED = 403
_MOST_BYTES = 5_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearxngAnswer:
    """An instance's answer.

    Attributes:
        why: it can't be used; empty where it can.
        mend: what to do about it.
        version: as it says itself; empty where it does not.
        engines: those it has switched on, of the category general.
        silent: engines that did not answer the sample search, and why.
        hits: of the sample search; None: it was not made.
    """

    url: str
    why: str = ""
    mend: str = ""
    version: str = ""
    engines: tuple[str, ...] = ()
    silent: Mapping[str, str] = field(default_factory=dict)
    hits: int | None = None


def probe(engine: Engine, settings: CrawlSettings, mend: str, *, search: bool = True) -> SearxngAnswer:
    """Ask an instance what it is, then search it once; two requests, each within the settings' time.

    Args:
        engine: the catalog's, with the address that is in force.
        mend: what to do where nobody answers.
        search: False leaves the search out: each one asks the engines behind it.
    """
    url = engine.url
    try:
        config = _document(_ask(_beside(url, "config"), settings))
        if not isinstance(config.get("engines"), list):
            return SearxngAnswer(url=url, why=f"what answers at {_origin(url)} is no SearXNG", mend=mend)
        version = str(config.get("version", ""))
        engines = tuple(
            str(one.get("name"))
            for one in config["engines"]
            if isinstance(one, Mapping) and one.get("enabled") and "general" in one.get("categories", ())
        )
        known = SearxngAnswer(url=url, version=version, engines=engines)
        if not search:
            return known
        answer = _ask(search_url(engine, _SAMPLE, site=None, page=1), settings)
    except (FetchError, requests.RequestException, OSError) as error:
        return SearxngAnswer(url=url, why=f"{_origin(url)} does not answer: {cause_of(error)}", mend=mend)
    if answer.status_code == _REFUSED:
        return replace(
            known,
            why=f"{_origin(url)} refuses to answer in JSON (403)",
            mend="list json under search.formats in its settings.yml, and switch its limiter off",
        )
    found = _document(answer)
    if answer.status_code != 200 or not isinstance(found.get("results"), list):
        return replace(known, why=f"{_origin(url)} answers a search with {answer.status_code}", mend=mend)
    silent = {
        str(one[0]): str(one[1])
        for one in found.get("unresponsive_engines", ())
        if isinstance(one, list) and len(one) > 1
    }
    return replace(known, silent=silent, hits=len(found["results"]))


def _ask(url: str, settings: CrawlSettings) -> requests.Response:
    """Fetch a page; the instance may be on a private address. Raises FetchError, RequestException or OSError."""
    limits = SessionSettings(
        user_agent=settings.user_agent,
        lab=settings.lab,
        timeout_s=settings.request_timeout_s,
        body_bytes=_MOST_BYTES,
        trusts=lambda _url: True,
    )
    with closing(GuardedAdapter(limits)) as adapter:
        return guarded(requests.Session(), adapter, settings.user_agent).get(url)


def _document(answer: requests.Response) -> dict[str, Any]:
    """Return the answer as a JSON object, empty if it is none."""
    try:
        found = json.loads(answer.content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _beside(url: str, name: str) -> str:
    """Another page of the instance, which may lie below a path."""
    parts = urlsplit(url)
    return parts._replace(path=parts.path.rpartition("/")[0] + f"/{name}", query="", fragment="").geturl()


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
