"""robots.txt (RFC 9309): which URLs it allows. Text in, verdicts out; the caller fetches it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from protego import Protego

ROBOTS_TOKEN = "reviewloop"
"""The name robots.txt is read for."""

# Parsed at most this far (RFC 9309, 2.5 asks for at least 500 KiB).
MAX_CHARS = 500 * 1024
MAX_LINES = 10_000
MAX_LINE_CHARS = 4096
"""Of a line; no address is that long."""
# Of a rule; real ones have five. What stands behind them is cut off, so that a rule refuses rather more.
_MAX_STARS = 20
_AGENT = ("user-agent", "useragent", "user agent")
_SMALL_CHARS = 32 * 1024


class RobotsState(StrEnum):
    """The source of the verdicts."""

    RULES = "rules"  # there is a robots.txt, its rules hold
    ALLOW_ALL = "allow_all"  # there is none: everything is allowed
    DISALLOW_FOR_NOW = "disallow_for_now"  # the host has trouble answering: nothing is, until asked again
    UNKNOWN = "unknown"  # the host could not be reached: nothing is known of it, robots least of all

    @property
    def answered(self) -> bool:
        """True where the verdicts rest on an answer and may be kept."""
        return self in (RobotsState.RULES, RobotsState.ALLOW_ALL)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one host's robots.txt.

    Attributes:
        state: what the verdicts rest on. DISALLOW_FOR_NOW and UNKNOWN should be asked again soon; a refusal
            that rests on them is no refusal by robots.txt.
    """

    state: RobotsState
    _rules: Protego | None = None

    @classmethod
    def parse(cls, text: str, status: int | None) -> Self:
        """The rules that follow from the answer to a request for robots.txt (RFC 9309, 2.3.1).

        Where it is "unavailable" (4xx) or a web page, all is allowed; a server error, and 429, which is a
        refusal to answer just now, allow nothing until asked again.

        Args:
            text: its body, cut at `MAX_CHARS`; looked at only with a 2xx status.
            status: of the answer; None where there was none.
        """
        if status is None:
            return cls(RobotsState.UNKNOWN)
        if status >= 500 or status == 429:
            return cls(RobotsState.DISALLOW_FOR_NOW)
        text = text[:MAX_CHARS].lstrip("\ufeff").replace("\0", "")
        if status >= 300 or text.lstrip()[:1] == "<":
            return cls(RobotsState.ALLOW_ALL)
        rules = Protego.parse(_within_bounds(text))
        rules.can_fetch("/", ROBOTS_TOKEN)  # it sorts out the rules of a group with the first question
        return cls(RobotsState.RULES, rules)

    @classmethod
    async def read(cls, text: str, status: int | None) -> Self:
        """The same on an event loop: what is large is parsed in a thread, so that it holds nobody up."""
        if len(text) <= _SMALL_CHARS:
            return cls.parse(text, status)
        return await asyncio.to_thread(cls.parse, text, status)

    def allows(self, url: str, user_agent: str) -> bool:
        """May this address be asked? Never where the state is DISALLOW_FOR_NOW or UNKNOWN.

        Args:
            user_agent: the crawler's product token (``reviewloop``), without version.
        """
        if self._rules is None:
            return self.state is RobotsState.ALLOW_ALL
        return bool(self._rules.can_fetch(url, user_agent))

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Seconds between requests that the host asks for, where it does."""
        delay = self._rules.crawl_delay(user_agent) if self._rules else None
        return None if delay is None else float(delay)


def _within_bounds(text: str) -> str:
    """The lines that may matter, each of bounded cost.

    Of the groups of other crawlers one name stays: a rule is kept once for each name of its group, so two thousand
    names and twenty thousand rules would be forty million.
    """
    kept: list[str] = []
    for line in text.splitlines()[:MAX_LINES]:
        line = line.partition("#")[0].strip()
        if not line or len(line) > MAX_LINE_CHARS:
            continue
        if line.lower().startswith(_AGENT):
            line = f"User-agent: {_agent(line)}"
            if kept and kept[-1] == line:
                continue
        elif line.count("*") > _MAX_STARS:
            line = "*".join(line.split("*", _MAX_STARS + 1)[:-1])
        kept.append(line)
    return "\n".join(kept)


def _agent(line: str) -> str:
    """The name of a group, where it may be ours: a star, or the beginning of our token; else one for all others."""
    _, _, named = line.partition(":") if ":" in line else line.lower().rpartition("agent")
    name = named.strip().lower()
    bare = name.replace("*", "").strip()
    return name if name == "*" or (bare and bare in ROBOTS_TOKEN) else "another"
