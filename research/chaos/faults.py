"""The plan of a chaos run: which fault comes when, to what, for how long. Pure: a seed in, a list out."""

from __future__ import annotations

from collections.abc import Sequence
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

    @property
    def kills(self) -> bool:
        """True if it kills a program."""
        return self.startswith("kill ")

    @property
    def freezes(self) -> bool:
        """True if it stops a program where it is."""
        return self.startswith("freeze ")

    @property
    def silences(self) -> bool:
        """True if it silences a connection."""
        return self.startswith("silent ")

    @property
    def slows(self) -> bool:
        """True if it slows a connection."""
        return self.startswith("slow ")

    @property
    def steals(self) -> bool:
        """True if it takes messages out of their queues."""
        return self.endswith(" messages")

    @property
    def server(self) -> str | None:
        """The server that this fault takes away from every program, or None."""
        what = self.rpartition(" ")[2]
        return what if (self.kills or self.freezes) and what in (POSTGRES, REDIS) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault.

    Attributes:
        no: its place in the plan, from 1.
        target: the program it happens to. For a connection this is the program at the near end; "" is the cluster.
        for_s: how long it lasts; 0: it is over at once.
        pause_s: how long the cluster is left alone after it.
        seed: seed of chance within the fault.
    """

    no: int
    kind: FaultKind
    target: str
    for_s: float
    pause_s: float
    seed: int


_PAUSE_S = (1.5, 3.5)

# A program that holds locks in the database is away for longer than its leases last plus the time the others may take
# to go on without it. Otherwise a cluster that waits for it to wake would not be noticed.
_WITH_LOCKS_S = (33.0, 36.0)
_SLOW_S = (5.0, 8.0)

_LASTS: dict[FaultKind, tuple[float, float]] = {
    FaultKind.FREEZE_NODE: _WITH_LOCKS_S,
    FaultKind.FREEZE_CONTROL: _WITH_LOCKS_S,
    FaultKind.FREEZE_BEAT: (8.0, 12.0),
    FaultKind.FREEZE_POSTGRES: (4.0, 45.0),
    FaultKind.FREEZE_REDIS: (4.0, 66.0),
    FaultKind.SILENT_DATABASE: _WITH_LOCKS_S,
    FaultKind.SILENT_REDIS: (12.0, 18.0),
    FaultKind.SLOW_DATABASE: _SLOW_S,
    FaultKind.SLOW_REDIS: _SLOW_S,
    FaultKind.LOST_COMMIT: _SLOW_S,
    FaultKind.LOST_MESSAGES: _SLOW_S,
    FaultKind.DOUBLED_MESSAGES: _SLOW_S,
    FaultKind.LATE_MESSAGES: _SLOW_S,
}
"""Shortest and longest duration in seconds; a kind that is not listed is over at once."""


def plan_faults(
    seed: int, kills: int, nodes: Sequence[str], kinds: Sequence[FaultKind] = tuple(FaultKind)
) -> list[Fault]:
    """Return `kills` faults: every kind once, in an order drawn by the seed, then every kind again.

    The plan for more faults begins with the plan for fewer.

    Args:
        nodes: names of the crawl nodes; at least one.
        kinds: what may happen.
    """
    rng = Random(seed)
    in_order = (kind for _ in count() for kind in rng.sample(kinds, len(kinds)))
    return [
        Fault(
            no=no,
            kind=kind,
            target=rng.choice(_targets(kind, nodes)),
            for_s=round(rng.uniform(*_LASTS[kind]), 1) if kind in _LASTS else 0.0,
            pause_s=round(rng.uniform(*_PAUSE_S), 1),
            seed=rng.randrange(2**32),
        )
        for no, kind in enumerate(islice(in_order, kills), 1)
    ]


def _targets(kind: FaultKind, nodes: Sequence[str]) -> Sequence[str]:
    """Return the programs that a fault of a kind may happen to."""
    if kind.kills or kind.freezes:
        what = kind.rpartition(" ")[2]
        return {"node": nodes, "control": CONTROLS, "beat": BEATS}.get(what, (what,))
    if kind is FaultKind.SILENT_REDIS:
        return (*nodes, *CONTROLS, *BEATS)
    if kind.silences or kind.slows or kind is FaultKind.LOST_COMMIT:
        return (*nodes, *CONTROLS)
    return ("",)
