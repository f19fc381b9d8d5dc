"""What runs of several strategies in the same worlds come to: ratios to the bound, and differences seed by seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as students_t

from research.bench.field.measured import Measured, Runner
from research.bench.field.records import Record

RATIOS = ("pages_of_bound", "requests_per_page", "done_of_bound")
"""Names of the ratios of a strategy in a regime."""
_SAME_PAGES = 0.98
"""A run is done only with so much of what `random` stores in the end."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A paired difference, as shares of the other's value.

    Attributes:
        mean: over the seeds.
        lower_95: lower bound of the mean, one-sided, by Student's t of the pairs; None: one seed only.
    """

    seeds: int
    mean: float
    lower_95: float | None


def difference(ours: Sequence[float], others: Sequence[float]) -> Difference:
    """The mean of ours / theirs - 1 over pairs, and its lower 95 % bound: mean - t(0.95, n - 1) s / sqrt(n).

    Args:
        ours: by seed; at least one.
        others: in the same order; positive.
    """
    shares = [a / b - 1 for a, b in zip(ours, others, strict=True)]
    mean = statistics.fmean(shares)
    if len(shares) < 2:
        return Difference(1, mean, None)
    error = statistics.stdev(shares) / math.sqrt(len(shares))
    return Difference(len(shares), mean, mean - float(students_t.ppf(0.95, len(shares) - 1)) * error)


def ratios(records: Sequence[Record]) -> dict[str, float | None]:
    """Means over the seeds, by `REGIME.STRATEGY.NAME`; None where a run has no such figure.

    ``pages_of_bound``: pages at the mark over what the bound allows by then; ``requests_per_page``: requests to sites;
    ``done_of_bound``: end of the run over the time at which all could be stored, where every run is done.
    """
    told: dict[str, float | None] = {}
    for (label, strategy), runs in _grouped(records).items():
        by_name: dict[str, list[float | None]] = {
            "pages_of_bound": [one.measured.pages_at_mark / one.bound.pages_at_mark for one in runs],
            "requests_per_page": [one.measured.requests_per_page for one in runs],
            "done_of_bound": [_done_of_bound(one, is_done(one, records)) for one in runs],
        }
        for name, values in by_name.items():
            known = [value for value in values if value is not None]
            mean = round(statistics.fmean(known), 3) if len(known) == len(values) else None
            told[f"{label}.{strategy}.{name}"] = mean
    return told


def _done_of_bound(one: Record, done: bool) -> float | None:
    possible_s = one.bound.possible_at["all"]
    return one.measured.ended_s / possible_s if done and possible_s else None


def is_done(one: Record, records: Iterable[Record]) -> bool:
    """Whether a run ended well, with at least 98 % of the pages that `random`, if it ran, stored in the same world."""
    of_random = [
        other.measured.pages
        for other in records
        if (other.label, other.seed, other.strategy) == (one.label, one.seed, "random")
    ]
    return one.measured.ended_well and one.measured.pages >= _SAME_PAGES * max(of_random, default=0)


def compared(records: Sequence[Record], ours: str) -> dict[str, dict[str, dict[str, float | None]]]:
    """Our strategy against each other one, and on a cluster against embedded, in the same worlds.

    By `LABEL.OURS_vs_OTHER`: ours / theirs - 1 of the pages at the mark and in the end; theirs / ours - 1 of the time
    at which half was stored (positive: ours was sooner).
    """
    grouped = _grouped(records)
    told = {}
    for (label, other), runs in grouped.items():
        if other != ours and (pairs := _pairs(grouped.get((label, ours), ()), runs)):
            told[f"{label}.{ours}_vs_{other}"] = _differences(pairs)
    embedded = {one.label: runs for (_, name), runs in grouped.items() if name == ours for one in runs}
    for label, runs in embedded.items():
        alone = label.removesuffix(f"-{Runner.CLUSTER}")
        if alone != label and (pairs := _pairs(runs, embedded.get(alone, ()))):
            told[f"{label}.{ours}_vs_{Runner.EMBEDDED}"] = _differences(pairs)
    return told


def _pairs(ours: Iterable[Record], theirs: Iterable[Record]) -> list[tuple[Measured, Measured]]:
    """Runs of the same seeds; those without a page are left out."""
    mine = {one.seed: one.measured for one in ours if one.measured.pages}
    return [(mine[one.seed], one.measured) for one in theirs if one.seed in mine and one.measured.pages]


def _differences(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, dict[str, float | None]]:
    halves = [(b.stored_at["half"], a.stored_at["half"]) for a, b in pairs]
    return {
        "pages_at_mark": _shown([(a.pages_at_mark, b.pages_at_mark) for a, b in pairs]),
        "pages": _shown([(a.pages, b.pages) for a, b in pairs]),
        "half_sooner": _shown([(b, a) for b, a in halves if a is not None and b is not None]),
    }


def _shown(pairs: Sequence[tuple[float, float]]) -> dict[str, float | None]:
    kept = [(a, b) for a, b in pairs if b > 0]
    if not kept:
        return {"seeds": 0, "mean": None, "lower_95": None}
    found = difference([a for a, _ in kept], [b for _, b in kept])
    lower = None if found.lower_95 is None else round(found.lower_95, 4)
    return {"seeds": found.seeds, "mean": round(found.mean, 4), "lower_95": lower}


def shown(one: Record, records: Iterable[Record]) -> dict[str, Any]:
    """The figures of one run."""
    measured, bound = one.measured, one.bound
    stored_at = {f"{name}_stored_s": at for name, at in measured.stored_at.items()}
    possible_at = {f"{name}_possible_s": at for name, at in bound.possible_at.items()}
    return {
        "there": measured.there,
        "pages_at_mark": measured.pages_at_mark,
        "bound_at_mark": round(bound.pages_at_mark),
        "pages": measured.pages,
        "requests_per_page": _rounded(measured.requests_per_page),
        "engine_requests": measured.engine_requests,
        **stored_at,
        **possible_at,
        "ended_s": measured.ended_s,
        "status": measured.status,
        "settled": measured.settled,
        "done": is_done(one, records),
        "manual": measured.manual,
        "given_up": measured.given_up,
        "attempts": measured.attempts,
        "released": measured.released,
        "released_share": _rounded(measured.released_share),
        "recalls": measured.recalls,
        "most_attempts": measured.most_attempts,
        "cpu_ms_per_page": _rounded(measured.cpu_ms_per_page),
        "crawl_cpu_ms_per_page": _rounded(measured.crawl_cpu_ms_per_page),
        "lab_cpu_share": _rounded(measured.lab_cpu_s / measured.ended_s) if measured.ended_s > 0 else None,
        "load": measured.load,
        "database_kb": round(measured.database_bytes / 1000),
        "violations": measured.violations,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _grouped(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """By label and strategy, in the order they come in."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in records:
        groups.setdefault((one.label, one.strategy), []).append(one)
    return groups
