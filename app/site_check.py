"""Which engines and sites of a catalog answer today, and what changed: for `sites check`.

Each is asked once, its robots.txt first; a host's requests follow each other at its own pace, and all together end in
time.
"""

from __future__ import annotations

import socket
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from requests import Timeout

from app.http_session import Answer, AskFailed
from splitter.catalog.model import Catalog
from splitter.urls import search_url
from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.hosts import HostBook
from tasks.fetching.robots import RobotsRules
from tasks.reading.decode import decode
from tasks.reading.interstitials import check_blocked
from tasks.reading.markup import page_text, parse
from tasks.reading.results import read_results

AT_ONCE = 8
"""Hosts asked at the same time."""

_REFUSALS = (401, 403, 412, 429, 432)
_LONGEST_PAUSE_S = 5.0


class Asks(Protocol):
    """Asks for a page (`app.http_session.ask` with its settings). Raises AskFailed."""

    def __call__(self, url: str, /, *, headers: Mapping[str, str] | None = None) -> Answer:
        """The answer, through redirects."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of asking an engine's search page or a site's front page.

    Attributes:
        kind, name: "engine" or "site", and which.
        url: asked; `final_url`: what answered, after redirects; empty where nobody did.
        http: "200", "no such name", "no connection", "no answer in time", "not asked", "refused here".
        robots: "allows", "refuses", "not obeyed", "unknown".
        rules: of an engine: "10 hits", "empty answer", "nothing", "-".
        verdict: "answers", "gone", "no answer", "moved to X", "refuses", "rules find nothing", "not asked".
    """

    kind: str
    name: str
    url: str
    final_url: str = ""
    http: str = "not asked"
    robots: str = "unknown"
    rules: str = "-"
    verdict: str = "not asked"
    why: str = ""

    @property
    def heard(self) -> bool:
        """Whether anybody answered at all."""
        return self.http.isdigit() or self.robots in ("allows", "refuses")


@dataclass(frozen=True, slots=True)
class _Wanted:
    kind: str
    name: str
    url: str


class SiteCheck:
    """One round over a catalog.

    Args:
        keywords: what every engine is asked for.
        agent: name that robots.txt is read for.
        left_s: seconds that are left for all of it; nothing is begun when there are none.
        pause: waits so many seconds.
    """

    def __init__(
        self,
        catalog: Catalog,
        ask: Asks,
        keywords: Sequence[str],
        *,
        agent: str,
        left_s: Callable[[], float],
        pause: Callable[[float], None],
    ) -> None:
        self._catalog = catalog
        self._ask = ask
        self._keywords = tuple(keywords)
        self._agent = agent
        self._left_s = left_s
        self._pause = pause
        self._hosts = HostBook(catalog)

    def run(self) -> list[Seen]:
        """Ask every engine and every site; engines first, each in the catalog's order."""
        wanted = [
            _Wanted("engine", name, search_url(engine, self._keywords, site=None, page=1))
            for name, engine in self._catalog.engines.items()
        ]
        wanted += [_Wanted("site", name, f"http://{name}/") for name in self._catalog.sites]
        by_host: dict[str, list[_Wanted]] = defaultdict(list)
        for one in wanted:
            by_host[urlsplit(one.url).netloc.lower().removeprefix("www.")].append(one)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            answers = [seen for of_host in pool.map(self._of_host, by_host.values()) for seen in of_host]
        found = {(seen.kind, seen.name): seen for seen in answers}
        return [found[one.kind, one.name] for one in wanted]

    def _of_host(self, wanted: Sequence[_Wanted]) -> list[Seen]:
        robots: dict[str, RobotsRules | AskFailed] = {}
        return [self._one(one, robots) for one in wanted]

    def _one(self, one: _Wanted, robots: dict[str, RobotsRules | AskFailed]) -> Seen:
        seen = self._at(one, one.url, robots)
        if one.kind == "site" and not seen.heard and seen.verdict != "not asked":
            # Many a name has an address only with www.
            again = self._at(one, f"http://www.{one.name}/", robots)
            seen = again if again.heard else seen
        return seen

    def _at(self, one: _Wanted, url: str, robots: dict[str, RobotsRules | AskFailed]) -> Seen:
        decision = self._catalog.sites[one.name].robots if one.kind == "site" else None
        says = "not obeyed"
        if decision is None or decision.obey:
            try:
                rules = self._robots(url, robots)
            except AskFailed as error:
                return _unheard(one, url, error)
            if rules is None:
                return Seen(one.kind, one.name, url, why="the time was over")
            if not rules.state.answered:
                says = "unknown"
            elif not rules.allows(url, self._agent):
                return Seen(
                    one.kind, one.name, url, robots="refuses", verdict="refuses", why="robots.txt refuses it"
                )
            else:
                says = "allows"
        if self._left_s() <= 0:
            return Seen(one.kind, one.name, url, robots=says, why="the time was over")
        self._wait(url)
        try:
            answer = self._asked(one, url)
        except AskFailed as error:
            return _unheard(one, url, error, says)
        return self._judged(one, url, answer, says)

    def _robots(self, url: str, known: dict[str, RobotsRules | AskFailed]) -> RobotsRules | None:
        """The rules of a host, asked once; None where the time is over. Raises AskFailed."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in known:
            if self._left_s() <= 0:
                return None
            try:
                answer = self._ask(f"{origin}/robots.txt")
                known[origin] = RobotsRules.parse(answer.body.decode("utf-8", "replace"), answer.status)
            except AskFailed as error:
                known[origin] = error
        found = known[origin]
        if isinstance(found, AskFailed):
            raise found
        return found

    def _wait(self, url: str) -> None:
        limits = self._hosts.limits(self._hosts.name(url))
        self._pause(min(1 / limits.per_address_per_s, _LONGEST_PAUSE_S, max(0.0, self._left_s())))

    def _asked(self, one: _Wanted, url: str) -> Answer:
        return self._ask(
            url, headers=self._catalog.engines[one.name].headers if one.kind == "engine" else None
        )

    def _judged(self, one: _Wanted, url: str, answer: Answer, robots: str) -> Seen:
        verdict, rules, why = self._verdict(one, answer)
        moved = _moved(urlsplit(url).hostname or "", urlsplit(answer.url).hostname or "")
        if moved and verdict not in ("refuses", "answers with hits"):
            verdict = f"moved to {moved}"
        return Seen(
            one.kind,
            one.name,
            url,
            answer.url,
            str(answer.status),
            robots,
            rules,
            "answers" if verdict == "answers with hits" else verdict,
            why,
        )

    def _verdict(self, one: _Wanted, answer: Answer) -> tuple[str, str, str]:
        """Verdict, what the rules found, and why."""
        if answer.status in _REFUSALS:
            return "refuses", "-", f"status {answer.status}"
        if not 200 <= answer.status < 300:
            return "no answer", "-", f"status {answer.status}"
        try:
            if one.kind == "engine":
                return self._results(one.name, answer)
            text = decode(answer.body, answer.headers, self._catalog.sites[one.name].encoding).text
        except FetchError as error:
            return ("refuses" if error.error.blocks else "no answer"), "-", str(error)
        blocked = check_blocked(page_text(parse(text)), answer.url, self._catalog.rules_of(one.name).blocked)
        return ("refuses", "-", f"its front page is a {blocked.value}") if blocked else ("answers", "-", "")

    def _results(self, name: str, answer: Answer) -> tuple[str, str, str]:
        text = decode(answer.body, answer.headers).text
        try:
            page = read_results(text, answer.url, self._catalog.engines[name].results)
        except FetchError as error:
            return (
                ("refuses", "-", str(error))
                if error.error.blocks
                else ("rules find nothing", "nothing", str(error))
            )
        return "answers with hits", f"{len(page.hits)} hits" if page.hits else "empty answer", ""


def offline(seen: Sequence[Seen]) -> bool:
    """Whether nobody at all was heard of, which is about this machine and not about the sites."""
    return bool(seen) and not any(one.heard for one in seen)


def _unheard(one: _Wanted, url: str, error: AskFailed, robots: str = "unknown") -> Seen:
    http, verdict = "no connection", "no answer"
    causes = _causes(error)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        http, verdict = "no such name", "gone"
    elif any(isinstance(cause, Timeout | TimeoutError) or _timed_out(cause) for cause in causes):
        http = "no answer in time"
    elif any(isinstance(cause, FetchError) for cause in causes):
        http = "refused here"
    return Seen(one.kind, one.name, url, http=http, robots=robots, verdict=verdict, why=str(error))


def _timed_out(cause: BaseException) -> bool:
    return isinstance(cause, FetchError) and cause.error is ErrorClass.TIMEOUT


def _causes(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and error not in causes:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


def _moved(asked: str, answered: str) -> str:
    """The host that answers instead of the one asked; empty where it is that one, or one of its subdomains."""
    name = asked.removeprefix("www.")
    return "" if answered == name or answered.endswith(f".{name}") else answered.removeprefix("www.")
