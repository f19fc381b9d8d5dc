"""Settings of the crawl on a node (app/run/settings.py reads them from the environment)."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.domain.batches import LANES

REMEMBERED = 200_000
"""Stored pages that a node remembers in its own memory, unless the settings say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlSettings:
    """Settings of the crawl on a node; times in seconds.

    Attributes:
        user_agent: sent with every request.
        request_timeout_s: the most one request may last.
        lanes: requests of one attempt in flight at once.
        list_parts: the most parts of one review list that are read.
        longest_wait_s: a permit further ahead than this ends the attempt.
        rest_factor: multiplies the rests, and with them what Retry-After asks for (1.0 outside the lab).
        lab: host and port of the lab every host is sent to; None = the real web.
    """

    user_agent: str = "reviewloop/0.1 (+https://github.com/reviewloop)"
    request_timeout_s: float = 30.0
    lanes: int = LANES
    list_parts: int = 20
    longest_wait_s: float = 30.0
    rest_factor: float = 1.0
    lab: tuple[str, int] | None = None
