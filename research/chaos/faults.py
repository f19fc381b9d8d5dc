"""The plan of a chaos run: which fault comes when, to what, for how long. Pure: a seed in, a list out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import count, islice
from random import Random

POSTGRES, REDIS = "postgres", "redis"
CONTROLS = ("control", "control-spare")
BEATS = ("beat", "beat-spare")


class FaultKind(StrEnum):
    """Kinds of faults."""

    KILL_NODE = "kill node"
    KILL_CONTROL = "kill control"
    KILL_BEAT = "kill beat"
    KILL_POSTGRES = "kill postgres"
    KILL_REDIS = "kill redis"
    FREEZE_NODE = "freeze node"
    FREEZE_CONTROL = "freeze control"
    FREEZE_BEAT = "freeze beat"
    FREEZE_POSTGRES = "freeze postgres"
    FREEZE_REDIS = "freeze redis"
    SILENT_DATABASE = "silent connection to postgres"
    SILENT_REDIS = "silent connection to redis"
    SLOW_DATABASE = "slow connection to postgres"
    SLOW_REDIS = "slow connection to redis"
    LOST_COMMIT = "lost COMMIT answers"
    LOST_MESSAGES = "lost messages"
    DOUBLED_MESSAGES = "doubled messages"
    LATE_MESSAGES = "late messages"
    CATALOG = "site leaves the catalog"
    ROW = "unreadable row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        no: its place in the plan, from 1.
        target: the program it happens to; of a connection the program at its near end; "" where it is the cluster.
        for_s: how long it lasts; 0: it is over at once.
        pause_s: how long the cluster is left alone after it.
        seed: of chance within the fault.
    """

    no: int
    kind: FaultKind
    target: str
    for_s: float
    pause_s: float
    seed: int

    @property
    def server(self) -> str | None:
        """The server this fault takes away from everybody; None: it stays."""
        return _SERVERS.get(self.kind)


_SERVERS = {
    FaultKind.KILL_POSTGRES: POSTGRES,
    FaultKind.FREEZE_POSTGRES: POSTGRES,
    FaultKind.KILL_REDIS: REDIS,
    FaultKind.FREEZE_REDIS: REDIS,
}

_PAUSE_S = (1.5, 3.5)

# A program that holds locks in the database is away for longer than its leases last and the others may take to go on
# without it, both at once: or a cluster that waits for it to wake would not be seen to wait.
_WITH_LOCKS_S = (33.0, 36.0)
_WITHOUT_S = (12.0, 18.0)
_POSTGRES_AWAY_S = (4.0, 45.0)
_REDIS_AWAY_S = (4.0, 66.0)
_SLOW_S = (5.0, 8.0)
# The nodes go on with their prefetched leases for a while, whatever happens to the scheduler.
_ROW_S = (22.0, 25.0)
_MESSAGES_S = (5.0, 8.0)

_LASTS: dict[FaultKind, tuple[float, float]] = {
    FaultKind.FREEZE_NODE: _WITH_LOCKS_S,
    FaultKind.FREEZE_CONTROL: _WITH_LOCKS_S,
    FaultKind.FREEZE_BEAT: (8.0, 12.0),
    FaultKind.FREEZE_POSTGRES: _POSTGRES_AWAY_S,
    FaultKind.FREEZE_REDIS: _REDIS_AWAY_S,
    FaultKind.SILENT_DATABASE: _WITH_LOCKS_S,
    FaultKind.SILENT_REDIS: _WITHOUT_S,
    FaultKind.SLOW_DATABASE: _SLOW_S,
    FaultKind.SLOW_REDIS: _SLOW_S,
    FaultKind.LOST_COMMIT: (5.0, 8.0),
    FaultKind.LOST_MESSAGES: _MESSAGES_S,
    FaultKind.DOUBLED_MESSAGES: _MESSAGES_S,
    FaultKind.LATE_MESSAGES: _MESSAGES_S,
    FaultKind.CATALOG: (7.0, 10.0),
    FaultKind.ROW: _ROW_S,
}
"""Seconds, at least and at most; a kind that is not here is over at once."""


def planned(
    seed: int, kills: int, nodes: Sequence[str], kinds: Sequence[FaultKind] = tuple(FaultKind)
) -> list[Fault]:
    """So many faults: every kind once, in an order drawn by the seed, then every kind again.

    The plan for more faults begins with the plan for fewer.

    Args:
        nodes: names of the crawl nodes; at least one.
        kinds: what may happen.
    """
    rng = Random(seed)
    targets = _targets(rng, nodes)

    def drawn() -> Sequence[FaultKind]:
        return rng.sample(kinds, len(kinds))

    kinds_in_order = (kind for _ in count() for kind in drawn())
    return [_fault(rng, targets, no, kind) for no, kind in enumerate(islice(kinds_in_order, kills), 1)]


def _fault(rng: Random, targets: Callable[[FaultKind], str], no: int, kind: FaultKind) -> Fault:
    return Fault(
        no=no,
        kind=kind,
        target=targets(kind),
        for_s=round(rng.uniform(*_LASTS[kind]), 1) if kind in _LASTS else 0.0,
        pause_s=round(rng.uniform(*_PAUSE_S), 1),
        seed=rng.randrange(2**32),
    )


def _targets(rng: Random, nodes: Sequence[str]) -> Callable[[FaultKind], str]:
    """Draws the program a fault of a kind happens to."""
    near_database = (*nodes, *CONTROLS)
    of_kind: dict[FaultKind, Sequence[str]] = {
        FaultKind.KILL_NODE: nodes,
        FaultKind.KILL_CONTROL: CONTROLS,
        FaultKind.KILL_BEAT: BEATS,
        FaultKind.KILL_POSTGRES: (POSTGRES,),
        FaultKind.KILL_REDIS: (REDIS,),
        FaultKind.FREEZE_NODE: nodes,
        FaultKind.FREEZE_CONTROL: CONTROLS,
        FaultKind.FREEZE_BEAT: BEATS,
        FaultKind.FREEZE_POSTGRES: (POSTGRES,),
        FaultKind.FREEZE_REDIS: (REDIS,),
        FaultKind.SILENT_DATABASE: near_database,
        FaultKind.SILENT_REDIS: (*near_database, *BEATS),
        FaultKind.SLOW_DATABASE: near_database,
        FaultKind.SLOW_REDIS: near_database,
        FaultKind.LOST_COMMIT: near_database,
        FaultKind.CATALOG: nodes,
    }
    return lambda kind: rng.choice(of_kind[kind]) if kind in of_kind else ""
