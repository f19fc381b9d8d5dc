"""Facts that decisions are made from: nodes, hosts and waiting subtasks as a strategy sees them, frozen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """A node as a strategy sees it: alive and not drained, or it is not shown.

    Attributes:
        kinds: "meta", "microblog".
        free: attempts it can be given now (free slots and room in its buffer).
        slots: attempts it runs at once; 0: no subtask should wait for it.
        lacks: sites that it can't crawl: its catalog does not have them as the scheduler's has them, or it has no
            browser for their pages.
    """

    name: str
    kinds: frozenset[str]
    free: int
    slots: int
    lacks: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """A host as a strategy sees it.

    Attributes:
        room: attempts it can feed at its rate beyond those that run now.
        resting: names of nodes for whose address it rests at present.
        rests_s: seconds until the rests of these are over, as far as known.
        unanswered: those of them that it does not answer; it refuses the others.
        address_limit: attempts that use up what one address may ask; None: no such limit.
        held: attempts there now, by node.
        probing: names of nodes whose rest there is over without a page since: one attempt at a time.
        waits_s: by node, seconds until its address is granted a permit, if that is too long to wait.
        shares: by node, the share of its limit that its address is granted, if that is below 1.
        pages_per_s: pages a second that may be asked for at its rate, by all addresses; inf: no limit.
        address_pages_per_s: the same from one address.
    """

    host: str
    room: int
    resting: frozenset[str] = frozenset()
    rests_s: Mapping[str, float] = field(default_factory=dict)
    unanswered: frozenset[str] = frozenset()
    address_limit: int | None = None
    held: Mapping[str, int] = field(default_factory=dict)
    probing: frozenset[str] = frozenset()
    waits_s: Mapping[str, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    pages_per_s: float = math.inf
    address_pages_per_s: float = math.inf


class Entrant(NamedTuple):
    """A subtask in PRIORITY that may be let into WAIT."""

    id: int
    site: str
    priority: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskFacts:
    """A waiting subtask as a strategy sees it.

    Attributes:
        hosts: every host it is sure to ask (the engine's, if a result page is still to be read; the site's).
        left: targets left to fetch, as far as known (hits; an unread result page counts as a full one).
        failed_on: nodes that failed it in this round, the oldest failure first.
        assigned: a node a person asked for (`failed assign`); None otherwise.
        quota: most hits of an attempt, as a person asked for (`failed edit`); None otherwise.
        reads_results: a result page is still to be read.
    """

    id: int
    site: str
    kind: str
    hosts: tuple[str, ...] = ()
    left: int
    priority: int
    failed_on: tuple[str, ...] = ()
    assigned: str | None = None
    quota: int | None = None
    reads_results: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefetchedLease(SubtaskFacts):
    """A subtask whose lease was not begun.

    Attributes:
        attempt_id: numbers grow with time: the lease granted last has the greatest.
    """

    node: str
    attempt_id: int
    granted_at: datetime
