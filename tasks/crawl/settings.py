"""What the crawl is told from above (app/config.py reads it from the environment)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from tasks.crawl.model import ErrorClass

MAX_TRIES = 3
"""Tries of one target before it is given up."""

_RESTS: Mapping[ErrorClass, float] = MappingProxyType(
    {
        ErrorClass.RATE_LIMITED: 60.0,
        ErrorClass.FORBIDDEN: 300.0,
        ErrorClass.CAPTCHA: 600.0,
        ErrorClass.LOGIN_WALL: 900.0,
    }
)


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Settings of the crawl on a node; times in seconds.

    Attributes:
        user_agent: says who asks.
        robots_token: the name robots.txt is read for.
        request_timeout_s: the most one request may last.
        lanes: requests of one attempt in flight at once.
        longest_wait_s: a granted send time further ahead than this ends the attempt.
        rest_s: how long a host rests for a node's address, by cause.
        rest_factor: multiplies `rest_s` and what Retry-After asks for (1.0 outside the lab).
        unreachable_after: errors in a row without any answer from a host after which it counts as unreachable.
        lab: host and port of the lab every host is sent to; None = the real web.
    """

    user_agent: str = "reviewloop/0.1 (+https://github.com/reviewloop)"
    robots_token: str = "reviewloop"
    request_timeout_s: float = 30.0
    lanes: int = 4
    longest_wait_s: float = 30.0
    rest_s: Mapping[ErrorClass, float] = field(default_factory=lambda: _RESTS)
    rest_factor: float = 1.0
    unreachable_after: int = 3
    lab: tuple[str, int] | None = None
