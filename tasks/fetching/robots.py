"""robots.txt (RFC 9309): which URLs it allows. Text in, verdicts out; the caller fetches it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from protego import Protego

from tasks.domain.address import MAX_URL_CHARS

ROBOTS_TOKEN = "reviewloop"
"""Name of the crawler in robots.txt."""

# Parsed at most this far (RFC 9309, 2.5 asks for at least 500 KiB).
MAX_CHARS = 500 * 1024
MAX_LINES = 10_000
MAX_LINE_CHARS = 4096
"""Maximum length of a line; no address is that long."""
_AGENT = ("user-agent", "useragent", "user agent")
_FOR_WHOLE_SITE = ("sitemap", "site-map", "host")
_VERSION = re.compile(r"/\S*+")
_NAMES = re.compile(r"[a-z0-9_*-]+")
_SMALL_CHARS = 32 * 1024

LONGEST_CHECK_S = 2e-3
"""Maximum CPU seconds of the rules for one address. Beyond it, rules with stars count as refusals."""

# Measured on one core of a small server: a piece of a rule between two stars, looked for in no text; and one character
# of an address that it is looked for in.
_PIECE_S = 3e-7
_CHAR_S = 8e-10


class RobotsState(StrEnum):
    """The source of the verdicts."""

    RULES = "rules"  # there is a robots.txt, its rules hold
    ALLOW_ALL = "allow_all"  # there is none: everything is allowed
    DISALLOW_FOR_NOW = "disallow_for_now"  # the host has trouble answering: nothing is, until asked again
    UNKNOWN = "unknown"  # the host could not be reached: nothing is known of it, robots least of all

    @property
    def answered(self) -> bool:
        """True if the verdicts rest on an answer and may be kept."""
        return self in (RobotsState.RULES, RobotsState.ALLOW_ALL)


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """The rules of one host's robots.txt.

    Attributes:
        state: basis of the verdicts. DISALLOW_FOR_NOW and UNKNOWN should be asked again soon; a refusal
            that rests on them is no refusal by robots.txt.
    """

    state: RobotsState
    _rules: Protego | None = None
    _strict: Protego | None = None
    _stars: _StarCost | None = None

    def check_s(self, url_chars: int) -> float:
        """Return the CPU time that rules with stars take at most for an address of this length."""
        return self._stars.seconds(url_chars) if self._stars is not None else 0.0

    @classmethod
    def parse(cls, text: str, status: int | None) -> Self:
        """Return the rules that follow from the answer to a request for robots.txt (RFC 9309, 2.3.1).

        If it is "unavailable" (4xx) or a web page, all is allowed; a server error, and 429, which is a
        refusal to answer just now, allow nothing until asked again.

        Args:
            text: its body, cut at `MAX_CHARS`; looked at only with a 2xx status.
            status: of the answer; None if there was none.
        """
        if status is None:
            return cls(RobotsState.UNKNOWN)
        if status >= 500 or status == 429:
            return cls(RobotsState.DISALLOW_FOR_NOW)
        text = text[:MAX_CHARS].lstrip("\ufeff").replace("\0", "")
        if status >= 300 or text.lstrip()[:1] == "<":
            return cls(RobotsState.ALLOW_ALL)
        lines = list(_own_lines(text))
        stars = _StarCost.measure(lines)
        strict = None
        if stars.seconds(MAX_URL_CHARS) > LONGEST_CHECK_S:
            strict = _parse(_cut_at_stars(lines))
        return cls(RobotsState.RULES, _parse(lines), strict, stars)

    @classmethod
    async def read(cls, text: str, status: int | None) -> Self:
        """Make the rules on an event loop: a large text is parsed in a thread, so that the loop goes on."""
        if len(text) <= _SMALL_CHARS:
            return cls.parse(text, status)
        return await asyncio.to_thread(cls.parse, text, status)

    def allows(self, url: str, user_agent: str) -> bool:
        """Return True if this address may be asked: never if the state is DISALLOW_FOR_NOW or UNKNOWN.

        If the stars of a rule would take longer than `LONGEST_CHECK_S`, it refuses all addresses that begin like it.

        Args:
            user_agent: the crawler's product token (``reviewloop``), without version.
        """
        if self._rules is None:
            return self.state is RobotsState.ALLOW_ALL
        rules = self._rules
        if self._strict is not None and self.check_s(len(url)) > LONGEST_CHECK_S:
            rules = self._strict
        return bool(rules.can_fetch(url, user_agent))

    def crawl_delay_s(self, user_agent: str) -> float | None:
        """Return the seconds between requests that the host asks for, if it does."""
        delay = self._rules.crawl_delay(user_agent) if self._rules else None
        return None if delay is None else float(delay)


@dataclass(frozen=True, slots=True)
class _StarCost:
    """Maximum cost of the rules with stars, whose pieces between stars are searched one after the other.

    Attributes:
        pieces: of all rules.
        compared: characters compared per character of the address.
    """

    pieces: int
    compared: int

    @classmethod
    def measure(cls, lines: Sequence[str]) -> _StarCost:
        starred = [line.partition("*")[2].split("*") for line in lines if _has_star(line)]
        pieces = [piece for rule in starred for piece in rule]
        return cls(len(starred) + len(pieces), sum(map(_repetition, pieces)))

    def seconds(self, url_chars: int) -> float:
        """Return the CPU time for an address of this length."""
        return self.pieces * _PIECE_S + self.compared * url_chars * _CHAR_S


def _repetition(piece: str) -> int:
    """Return how often a text is compared with one character while a piece is looked for in it.

    It is 1 or 2 except for a piece whose beginning repeats itself (`aaaab`): each repetition may be tried again. The
    periods of the beginnings are those of Knuth, Morris and Pratt (Fast pattern matching in strings, 1977).
    """
    borders = [0] * len(piece)
    most = 1
    border = 0
    for place in range(1, len(piece)):
        while border and piece[place] != piece[border]:
            border = borders[border - 1]
        if piece[place] == piece[border]:
            border += 1
        borders[place] = border
        most = max(most, (place + 1) // (place + 1 - border))
    return most + 1


def _parse(lines: Iterable[str]) -> Protego:
    rules = Protego.parse("\n".join(lines))
    rules.can_fetch("/", ROBOTS_TOKEN)  # it sorts out the rules of a group with the first question
    return rules


def _has_star(line: str) -> bool:
    return "*" in line and not line.startswith("User-agent:")


def _cut_at_stars(lines: Sequence[str]) -> Iterator[str]:
    """Yield lines whose rules end at their first star: a refusal refuses more, and what allows is left out."""
    for line in lines:
        if not _has_star(line):
            yield line
        elif not line.lower().startswith("allow"):
            beginning = line.partition("*")[0].rstrip()
            yield beginning if "/" in beginning else f"{beginning} /"


def _own_lines(text: str) -> Iterator[str]:
    """Yield the lines of the groups that are for us or for all, of bounded length and number."""
    is_ours = False
    is_named = False
    for line in text.splitlines()[:MAX_LINES]:
        line = line.partition("#")[0].strip()
        lower = line.lower()
        if not line or len(line) > MAX_LINE_CHARS or lower.startswith(_FOR_WHOLE_SITE):
            continue
        if lower.startswith(_AGENT):
            names = _own_names(lower)
            # Names that follow each other have one group.
            is_ours = bool(names) or (is_named and is_ours)
            is_named = True
            for name in names:
                yield f"User-agent: {name}"
        else:
            is_named = False
            if is_ours:
                yield line


def _own_names(line: str) -> list[str]:
    """Return the names in a group's line that are for us.

    These are `*` and our token, also with a version and in a list, and a beginning of our token alone.
    """
    _, colon, named = line.partition(":")
    if not colon:
        named = line.rpartition("agent")[2]
    names = _NAMES.findall(_VERSION.sub(" ", named))
    if "*" in names:
        return ["*"]
    bare = [name.replace("*", "") for name in names]
    if len(bare) == 1 and bare[0] and ROBOTS_TOKEN.startswith(bare[0]):
        return bare
    return [ROBOTS_TOKEN] if ROBOTS_TOKEN in bare else []
