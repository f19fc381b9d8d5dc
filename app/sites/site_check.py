"""Check which engines and sites of a catalog answer, for `sites check`.

Each engine and site is requested once, after its robots.txt. Requests to the same host keep the catalog's rate limits.
The whole check ends within a given time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import urldefrag, urlsplit

from app.sites.http_session import Answer, AskFailed
from splitter.catalog.model import Catalog, Engine
from splitter.errors import Message
from splitter.urls import search_url
from tasks.domain.failures import ErrorClass, FetchError, error_class
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.inflate import unpack
from tasks.fetching.responses import NameUnknown
from tasks.fetching.robots import RobotsRules
from tasks.reading.decode import decode
from tasks.reading.interstitials import check_blocked
from tasks.reading.lists import read_list
from tasks.reading.markup import page_text, parse
from tasks.reading.results import read_results

AT_ONCE = 8
"""Number of hosts requested at the same time."""

_LONGEST_PAUSE_S = 5.0
_ANY_TIME = datetime(2000, 1, 1, tzinfo=UTC)  # the check does not use the dates in lists
_TIME_OVER = Message("the time was over")


class FetchPage(Protocol):
    """Type of the function that fetches a page (`app.sites.http_session.ask` with settings). Raises AskFailed."""

    def __call__(self, url: str, /, *, headers: Mapping[str, str] | None = None) -> Answer:
        """Fetch a page, and return the response after redirects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteAnswer:
    """The result of checking an engine by its search page, or a site by its front page.

    Attributes:
        kind: "engine" or "site".
        name: name of the engine or site.
        url, final_url: the requested URL, and the URL that responded after redirects; empty without a response.
        http: "200", "no such name", "no connection", "no answer in time", "not asked" or "refused here".
        robots: "allows", "refuses", "not obeyed" or "unknown".
        rules: result of an engine's rules: "10 hits", "empty answer", "nothing", "-", "300 listed" or "4 sitemaps".
        verdict: "answers", "gone", "no answer", "moved to X", "refuses", "rules find nothing" or "not asked".
        why: the reason for the verdict.
    """

    kind: str
    name: str
    url: str
    final_url: str = ""
    http: str = "not asked"
    robots: str = "unknown"
    rules: Message | str = "-"
    verdict: Message | str = "not asked"
    why: Message | str = ""

    @property
    def reached(self) -> bool:
        """True if the host responded to any request, even if only to the one for robots.txt."""
        return self.http.isdigit() or self.robots in ("allows", "refuses")


class SiteCheck:
    """Checks all engines and sites of a catalog once.

    Args:
        keywords: keywords for the search at every engine.
        agent: name of the crawler in robots.txt.
        left_s: returns the seconds left for the check. When it returns 0, no further request begins.
        pause: sleeps for a number of seconds.
        no_browser: the reason why pages made by scripts can't be fetched; empty if they can.
    """

    def __init__(
        self,
        catalog: Catalog,
        fetch: FetchPage,
        keywords: Sequence[str],
        *,
        agent: str,
        left_s: Callable[[], float],
        pause: Callable[[float], None],
        no_browser: str = "",
    ) -> None:
        self._catalog = catalog
        self._fetch = fetch
        self._keywords = tuple(keywords)
        self._agent = agent
        self._left_s = left_s
        self._pause = pause
        self._no_browser = no_browser
        self._hosts = HostCatalog(catalog)

    def run(self) -> list[SiteAnswer]:
        """Request every engine and site. Return the results, engines first, in the order of the catalog."""
        wanted = [
            SiteAnswer(kind="engine", name=name, url=_make_url(engine, self._keywords))
            for name, engine in self._catalog.engines.items()
        ]
        wanted += [SiteAnswer(kind="site", name=name, url=f"http://{name}/") for name in self._catalog.sites]
        by_host: dict[str, list[SiteAnswer]] = defaultdict(list)
        for one in wanted:
            by_host[urlsplit(one.url).netloc.lower().removeprefix("www.")].append(one)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = [
                answer for of_host in pool.map(self._check_host, by_host.values()) for answer in of_host
            ]
        found = {(answer.kind, answer.name): answer for answer in answers}
        return [found[one.kind, one.name] for one in wanted]

    def _check_host(self, wanted: Sequence[SiteAnswer]) -> list[SiteAnswer]:
        robots: dict[str, RobotsRules | AskFailed] = {}
        return [self._check(one, robots) for one in wanted]

    def _check(self, one: SiteAnswer, robots: dict[str, RobotsRules | AskFailed]) -> SiteAnswer:
        if one.kind == "site" and self._no_browser and self._catalog.renders(one.name):
            return replace(one, why=self._no_browser)
        answer = self._request(one, robots)
        if one.kind == "site" and not answer.reached and answer.verdict != "not asked":
            # Many names have an address only with www.
            again = self._request(replace(one, url=f"http://www.{one.name}/"), robots)
            return again if again.reached else answer
        return answer

    def _request(self, one: SiteAnswer, known: dict[str, RobotsRules | AskFailed]) -> SiteAnswer:
        decision = self._catalog.sites[one.name].robots if one.kind == "site" else None
        headers = self._catalog.engines[one.name].headers if one.kind == "engine" else None
        try:
            if decision is not None and not decision.obey:
                one = replace(one, robots="not obeyed")
            else:
                rules = self._robots(one.url, known)
                if rules is None:
                    return replace(one, why=_TIME_OVER)
                if rules.state.answered:
                    one = replace(one, robots="allows" if rules.allows(one.url, self._agent) else "refuses")
                if one.robots == "refuses":
                    return replace(one, verdict="refuses", why=Message("robots.txt refuses it"))
            if self._left_s() <= 0:
                return replace(one, why=_TIME_OVER)
            limits = self._hosts.limits(self._hosts.name(one.url))
            self._pause(min(1 / limits.per_address_per_s, _LONGEST_PAUSE_S, max(0.0, self._left_s())))
            answer = self._fetch(one.url, headers=headers)
        except AskFailed as error:
            return _describe_failure(one, error)
        verdict: Message | str
        verdict, found, why = self._verdict(one, answer)
        moved = _find_other_host(urlsplit(one.url).hostname or "", urlsplit(answer.url).hostname or "")
        if moved and verdict != "refuses" and (one.kind, verdict) != ("engine", "answers"):
            verdict = Message("moved to {host}", host=moved)
        return replace(
            one, final_url=answer.url, http=str(answer.status), rules=found, verdict=verdict, why=why
        )

    def _robots(self, url: str, known: dict[str, RobotsRules | AskFailed]) -> RobotsRules | None:
        """Return the robots.txt rules of a host; `None` if no time is left. They are requested only once.

        Raises AskFailed.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in known:
            if self._left_s() <= 0:
                return None
            try:
                answer = self._fetch(f"{origin}/robots.txt")
                known[origin] = RobotsRules.parse(answer.body.decode("utf-8", "replace"), answer.status)
            except AskFailed as error:
                known[origin] = error
        found = known[origin]
        if isinstance(found, AskFailed):
            raise found
        return found

    def _verdict(self, one: SiteAnswer, answer: Answer) -> tuple[str, Message | str, Message | str]:
        """Return the verdict on a response, the result of the rules, and the reason for the verdict."""
        if not 200 <= answer.status < 300:
            refuses = error_class(answer.status).facts.blocks
            return (
                "refuses" if refuses else "no answer",
                "-",
                Message("status {status}", status=answer.status),
            )
        hint = self._catalog.sites[one.name].encoding if one.kind == "site" else ""
        try:
            if one.kind == "engine" and self._catalog.engines[one.name].discover == "list":
                return self._judge_list(one.name, answer)
            text, encoding, _ = decode(answer.body, answer.headers, hint)
            if one.kind == "engine":
                rules = self._catalog.engines[one.name].results
                hits = read_results(text, answer.url, rules, encoding=encoding).hits
                return "answers", Message("{n} hits", n=len(hits)) if hits else Message("empty answer"), ""
            patterns = self._catalog.rules_of(one.name).blocked
            blocked = check_blocked(page_text(parse(text)), answer.url, patterns)
        except FetchError as error:
            if error.error.facts.blocks:
                return "refuses", "-", Message("{error}", error=error)
            if one.kind == "engine":
                return "rules find nothing", Message("nothing"), Message("{error}", error=error)
            return "no answer", "-", Message("{error}", error=error)
        if blocked:
            return (
                "refuses",
                "-",
                Message("its front page is of this kind: {kind}", kind=Message(str(blocked.value))),
            )
        return "answers", "-", ""

    def _judge_list(self, engine: str, answer: Answer) -> tuple[str, Message | str, Message | str]:
        """Return verdict, result of the rules and reason for an engine with `discover: list`. Raises FetchError."""
        text, encoding, _ = decode(unpack(answer.body), answer.headers)
        listed = read_list(text, answer.url, self._catalog.engines[engine].results, _ANY_TIME, encoding)
        n = len(listed.hits) or len(listed.further)
        if not n:
            return (
                "rules find nothing",
                Message("nothing"),
                Message("neither a sitemap, a feed nor a page of links"),
            )
        return "answers", Message("{n} listed" if listed.hits else "{n} sitemaps", n=n), ""


def _make_url(engine: Engine, keywords: Sequence[str]) -> str:
    """Return the URL of an engine's first result page without its fragment, because fragments are never sent."""
    return urldefrag(search_url(engine, keywords, site=None, page=1)).url


def offline(answers: Sequence[SiteAnswer]) -> bool:
    """Return True if no server responded, which means that this machine has no network."""
    return bool(answers) and not any(one.reached for one in answers)


def _describe_failure(one: SiteAnswer, error: AskFailed) -> SiteAnswer:
    cause = error.__cause__
    http = "no connection"
    verdict = "no answer"
    if isinstance(cause, NameUnknown):
        http = "no such name"
        verdict = "gone"
    elif isinstance(cause, FetchError) and cause.error is ErrorClass.TIMEOUT:
        http = "no answer in time"
    elif isinstance(cause, FetchError) and not cause.error.facts.is_lost:
        http = "refused here"
    return replace(one, http=http, verdict=verdict, why=error.message)


def _find_other_host(asked: str, answered: str) -> str:
    """Return the host that responded, if it is neither the requested host nor a subdomain of that; else empty."""
    name = asked.removeprefix("www.")
    return "" if answered == name or answered.endswith(f".{name}") else answered.removeprefix("www.")
