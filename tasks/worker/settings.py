"""What the crawl is told from above (app/config.py reads it from the environment)."""

from __future__ import annotations

from dataclasses import dataclass

from tasks.store.writer import MOST_AT_ONCE
from tasks.worker.seen import BATCH, REMEMBERED

MAX_TRIES = 3
"""Tries of one target before it is given up."""


@dataclass(frozen=True, slots=True)
class CrawlSettings:
    """Settings of the crawl on a node; times in seconds.

    Attributes:
        user_agent: says who asks.
        robots_token: the name robots.txt is read for.
        request_timeout_s: the most one request may last.
        lanes: requests of one attempt in flight at once.
        list_parts: the most parts of one review list that are read.
        longest_wait_s: a granted send time further ahead than this ends the attempt.
        rest_factor: multiplies the rests, and with them what Retry-After asks for (1.0 outside the lab).
        unreachable_after: errors in a row without any answer from a host after which it counts as unreachable.
        lab: host and port of the lab every host is sent to; None = the real web.
    """

    user_agent: str = "reviewloop/0.1 (+https://github.com/reviewloop)"
    robots_token: str = "reviewloop"
    request_timeout_s: float = 30.0
    lanes: int = 4
    list_parts: int = 20
    longest_wait_s: float = 30.0
    rest_factor: float = 1.0
    unreachable_after: int = 3
    lab: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Buffers:
    """What travels together between a node and its servers: the double buffer of [2022 buffering].

    Attributes:
        writer_most: most items of one database transaction.
        seen_remembered: most stored pages a node remembers by itself; 0: it always asks the shared set.
        seen_batch: most pages in one question to the shared set.
        lease_batch: most leases in one message to a node.
    """

    writer_most: int = MOST_AT_ONCE
    seen_remembered: int = REMEMBERED
    seen_batch: int = BATCH
    lease_batch: int = MOST_AT_ONCE
