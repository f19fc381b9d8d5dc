"""What runs of several strategies in the same worlds come to: ratios to the bound, and differences seed by seed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from scipy.stats import t as students_t

from research.bench.field.measured import Measured, Runner
from research.bench.field.records import Record

_SAME_PAGES = 0.98
"""A run is done only if it stored at least this share of the pages that `random` stored."""

Difference = dict[str, float | None]


def difference(ours: Sequence[float], others: Sequence[float]) -> Difference:
    """Return the mean of ours / theirs - 1 over pairs, and its lower 95 % bound: mean - t(0.95, n - 1) s / sqrt(n).

    Args:
        ours, others: by seed, in the same order; pairs without a positive other are left out.

    Returns:
        ``seeds`` (pairs that count), ``mean`` and ``lower_95`` (one-sided, by Student's t; None below two pairs).
    """
    shares = [a / b - 1 for a, b in zip(ours, others, strict=True) if b > 0]
    mean = statistics.fmean(shares) if shares else None
    lower = None
    if mean is not None and len(shares) > 1:
        error = statistics.stdev(shares) / math.sqrt(len(shares))
        lower = round(mean - float(students_t.ppf(0.95, len(shares) - 1)) * error, 4)
    return {"seeds": len(shares), "mean": None if mean is None else round(mean, 4), "lower_95": lower}


def ratios(records: Sequence[Record]) -> dict[str, float | None]:
    """Return means over the seeds, by `REGIME.STRATEGY.NAME`; None if a run has no such figure.

    ``pages_of_bound``: pages at the mark over what the bound allows by then; ``requests_per_page``: requests to sites;
    ``done_of_bound``: end of the run over the time at which all could be stored, if every run is done.
    """
    found: dict[str, float | None] = {}
    for (label, strategy), runs in _grouped(records).items():
        by_name: dict[str, list[float | None]] = {
            "pages_of_bound": [one.measured.pages_at_mark / one.bound.pages_at_mark for one in runs],
            "requests_per_page": [one.measured.requests_per_page for one in runs],
            "done_of_bound": [_done_of_bound(one, is_done(one, records)) for one in runs],
        }
        for name, values in by_name.items():
            known = [value for value in values if value is not None]
            mean = round(statistics.fmean(known), 3) if len(known) == len(values) else None
            found[f"{label}.{strategy}.{name}"] = mean
    return found


def _done_of_bound(one: Record, done: bool) -> float | None:
    possible_s = one.bound.possible_at["all"]
    return one.measured.ended_s / possible_s if done and possible_s else None


def is_done(one: Record, records: Iterable[Record]) -> bool:
    """Return True if a run ended well, with at least 98 % of the pages that `random`, if it ran, stored in the same world."""
    of_random = [
        other.measured.pages
        for other in records
        if (other.label, other.seed, other.strategy) == (one.label, one.seed, "random")
    ]
    return one.measured.ended_well and one.measured.pages >= _SAME_PAGES * max(of_random, default=0)


def compared(records: Sequence[Record], ours: str) -> dict[str, dict[str, Difference]]:
    """Compare our strategy with each other one, and the cluster with the embedded runner, in the same worlds.

    By `LABEL.OURS_vs_OTHER`: ours / theirs - 1 of the pages at the mark and in the end; theirs / ours - 1 of the time
    at which half was stored (positive: ours was sooner).
    """
    grouped = _grouped(records)
    found = {}
    for (label, strategy), runs in grouped.items():
        alone = label.removesuffix(f"-{Runner.CLUSTER}")
        if strategy != ours:
            name, pairs = f"{label}.{ours}_vs_{strategy}", _pairs(grouped.get((label, ours), ()), runs)
        elif alone != label:
            name, pairs = f"{label}.{ours}_vs_{Runner.EMBEDDED}", _pairs(runs, grouped.get((alone, ours), ()))
        else:
            continue
        if pairs:
            found[name] = _differences(pairs)
    return found


def _pairs(ours: Iterable[Record], theirs: Iterable[Record]) -> list[tuple[Measured, Measured]]:
    """Return runs of the same seeds; those without a page are left out."""
    mine = {one.seed: one.measured for one in ours if one.measured.pages}
    return [(mine[one.seed], one.measured) for one in theirs if one.seed in mine and one.measured.pages]


def _differences(pairs: Sequence[tuple[Measured, Measured]]) -> dict[str, Difference]:
    halves = [(a.stored_at["half"], b.stored_at["half"]) for a, b in pairs]
    both = [(a, b) for a, b in halves if a is not None and b is not None]
    return {
        "pages_at_mark": difference([a.pages_at_mark for a, _ in pairs], [b.pages_at_mark for _, b in pairs]),
        "pages": difference([a.pages for a, _ in pairs], [b.pages for _, b in pairs]),
        "half_sooner": difference([b for _, b in both], [a for a, _ in both]),
    }


def shown(one: Record, records: Iterable[Record]) -> dict[str, Any]:
    """Return the figures of one run."""
    measured, bound = one.measured, one.bound
    same = ("there", "pages_at_mark", "pages", "engine_requests", "ended_s", "status", "settled", "manual")
    more = ("given_up", "attempts", "released", "recalls", "start_cpu_s", "load", "violations")
    return {
        **{name: getattr(measured, name) for name in (*same, *more)},
        "bound_at_mark": round(bound.pages_at_mark),
        "requests_per_page": _rounded(measured.requests_per_page),
        "cpu_ms_per_page": _rounded(measured.cpu_ms_per_page),
        **{f"{name}_stored_s": at for name, at in measured.stored_at.items()},
        **{f"{name}_possible_s": at for name, at in bound.possible_at.items()},
        "done": is_done(one, records),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)


def _grouped(records: Iterable[Record]) -> dict[tuple[str, str], list[Record]]:
    """Group runs by label and strategy, in the order they come in."""
    groups: dict[tuple[str, str], list[Record]] = {}
    for one in records:
        groups.setdefault((one.label, one.strategy), []).append(one)
    return groups
