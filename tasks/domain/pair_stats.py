"""Node-run control as arithmetic: what closed attempts say about a (site, node).

Every sum of a `PairStats` is a weighted count over closed attempts. With w_i = 2 ** -(age of attempt i /
half-life):

    attempts = sum w_i                       collected = sum w_i * collected_i     (and so on for each field)

Fading is multiplicative, so sums need no history: to fold an attempt in, fade the stored sums by the time
    since they
were last written, then add 1 (or the attempt's counts). From them (2014 paper, allocation, steps 2 and 3):

    completion rate = collected / offered            (higher is better; None without an offered hit)
    efficiency      = active seconds / collected     (lower is better; None without a collected page)

Both are ratios of sums, not means of ratios, so they pool over nodes or sites by adding sums.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from tasks.domain.model import PairStats

ANY = "*"
"""Stands for the site or node that a pooled `PairStats` was added up over."""


class Outcome(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"  # with a typed reason
    SILENT = "silent"  # taken back: never started, or no progress until the lease ran out
    RELEASED = "released"  # given back by a drained or overfull node: nobody's fault


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """A closed attempt, as far as the node-run control counts it.

    Attributes:
        offered: hits it was responsible for and not stored already; hits that quota or budget kept it from
            are left out, hits that a failure, a block or silence kept it from are not.
        tried, collected: hits it requested; pages it stored.
        active_s: seconds with a request in flight or a page being read.
        lost_s: of a silent attempt, seconds between its last sign of life and its recall; otherwise 0.
    """

    site: str
    node: str
    outcome: Outcome
    offered: int = 0
    tried: int = 0
    collected: int = 0
    active_s: float = 0.0
    lost_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Pools:
    """Sums over pairs: per site over its nodes, per node over its sites, and over all."""

    by_site: dict[str, PairStats]
    by_node: dict[str, PairStats]
    total: PairStats


def fade(stats: PairStats, age_s: float, half_life_s: float) -> PairStats:
    """The same knowledge `age_s` seconds later: every sum times 2 ** -(age_s / half_life_s).

    Ratios stay as they are; only the weight of the evidence shrinks. A negative age (a clock set back)
    counts as 0.

    Raises:
        ValueError: the half-life is not positive.
    """
    if half_life_s <= 0:
        raise ValueError(f"half_life_s must be positive, not {half_life_s}")
    return _times(stats, 2.0 ** -(max(0.0, age_s) / half_life_s))


def remember(stats: PairStats, memory: float) -> PairStats:
    """The same knowledge as it counts beside one more attempt: every sum times 1 - 1 / memory.

    Of a pair that is crawled all the time, what counts is then its last `memory` attempts or so: a change is seen
    within as many, however much was seen before it. Ratios stay as they are.
    """
    return _times(stats, 1.0 - 1.0 / memory)


def _times(stats: PairStats, keep: float) -> PairStats:
    return PairStats(
        stats.site,
        stats.node,
        stats.attempts * keep,
        stats.failed * keep,
        stats.silent * keep,
        stats.offered * keep,
        stats.tried * keep,
        stats.collected * keep,
        stats.active_s * keep,
        stats.lost_s * keep,
    )


def counts(result: AttemptResult) -> bool:
    """Whether an attempt says anything: one that was given back untouched does not, and nothing fades for it."""
    return result.outcome is not Outcome.RELEASED or result.tried > 0 or result.collected > 0


def fold(stats: PairStats, result: AttemptResult) -> PairStats:
    """Add one closed attempt to sums that are already faded to the moment it closed.

    A released attempt says nothing against the node: without a hit tried or collected it changes nothing,
        otherwise
    it counts like an attempt over the hits it tried (those it gave back leave `offered`).

    Raises:
        ValueError: the attempt belongs to another (site, node).
    """
    if (stats.site, stats.node) != (result.site, result.node):
        raise ValueError(
            f"attempt of ({result.site}, {result.node}) is no part of ({stats.site}, {stats.node})"
        )
    if not counts(result):
        return stats
    offered = result.offered
    if result.outcome is Outcome.RELEASED:
        offered = min(result.offered, max(result.tried, result.collected))
    return PairStats(
        stats.site,
        stats.node,
        stats.attempts + 1.0,
        stats.failed + (result.outcome is Outcome.FAILED),
        stats.silent + (result.outcome is Outcome.SILENT),
        stats.offered + offered,
        stats.tried + result.tried,
        stats.collected + result.collected,
        stats.active_s + result.active_s,
        stats.lost_s + result.lost_s,
    )


def completion(stats: PairStats) -> float | None:
    """Completion rate: collected / offered, in [0, 1]; None where nothing was offered."""
    return min(1.0, stats.collected / stats.offered) if stats.offered > 0 else None


def efficiency_s(stats: PairStats) -> float | None:
    """Efficiency: active seconds per collected page, lower is better; None where nothing was collected."""
    return stats.active_s / stats.collected if stats.collected > 0 else None


def pool(stats: Iterable[PairStats]) -> Pools:
    """Add pairs up over nodes, over sites, and over all. One pass; pairs must be faded to the same moment."""
    sites: dict[str, list[float]] = {}
    nodes: dict[str, list[float]] = {}
    total = [0.0] * 8
    for one in stats:
        row = _sums(one)
        for into, name in ((sites, one.site), (nodes, one.node)):
            known = into.get(name)
            if known is None:
                into[name] = row.copy()
            else:
                _add(known, row)
    for row in sites.values():
        _add(total, row)
    return Pools(
        {name: PairStats(name, ANY, *row) for name, row in sites.items()},
        {name: PairStats(ANY, name, *row) for name, row in nodes.items()},
        PairStats(ANY, ANY, *total),
    )


def _add(sums: list[float], row: list[float]) -> None:
    for place, value in enumerate(row):
        sums[place] += value


def _sums(stats: PairStats) -> list[float]:
    return [
        stats.attempts,
        stats.failed,
        stats.silent,
        stats.offered,
        stats.tried,
        stats.collected,
        stats.active_s,
        stats.lost_s,
    ]
