"""Rates of a recorded run's pairs: completion and seconds of a page, failures, blocks, and when the rates changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import lgamma, log

from research.simulator.recorded_blocks import Pair, blocks, refused
from research.simulator.recorded_overheads import FASTEST_S, Overheads
from research.simulator.recorded_rows import RecordedAttempt
from research.simulator.scenario import PairSpec
from research.simulator.world import Block
from tasks.domain.change_point import CHANGES, design_effect
from tasks.domain.failures import ErrorClass

_WEIGHTS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Weights that are tried, in pages: of what is usual against what a pair showed."""

_HALF = 0.5
"""Stored and missed pages that count as seen before a pair's rates changed, or not (Jeffreys' prior)."""

_LEAST = 1e-3
"""Least parameter of a beta distribution: what is certain is not."""


@dataclass(frozen=True, slots=True)
class Completions:
    """Completion of a run's pairs, with few pages treated as few (empirical Bayes, beta-binomial).

    A pair's completion is taken as drawn from a beta distribution around its site's: the mean over the site's pairs, to
    which that over all pairs counts as one more. Its weight in pages is the one that makes what was seen likeliest.

    Attributes:
        overall: mean over all pairs.
        by_site: mean over a site's.
        weight: of these against a pair's own, in pages.
    """

    overall: float
    by_site: Mapping[str, float]
    weight: float

    @classmethod
    def of_pairs(cls, by_pair: Mapping[Pair, Sequence[RecordedAttempt]]) -> Completions:
        """Those of a run."""
        seen = [(site, *_pages(of)) for (site, _), of in by_pair.items()]
        counted = [(site, stored, missed) for site, stored, missed in seen if stored + missed > 0]
        return max(
            (cls._with(counted, weight) for weight in _WEIGHTS), key=lambda one: one._evidence(counted)
        )

    @classmethod
    def _with(cls, seen: Sequence[tuple[str, float, float]], weight: float) -> Completions:
        rates: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for site, stored, missed in seen:
            pages = stored + missed
            rates[site].append((pages / (pages + weight), stored / pages))
        every = [one for of in rates.values() for one in of]
        overall = sum(w * rate for w, rate in every) / sum(w for w, _ in every) if every else 1.0
        by_site = {
            site: (overall + sum(w * rate for w, rate in of)) / (1.0 + sum(w for w, _ in of))
            for site, of in rates.items()
        }
        return cls(overall, by_site, weight)

    def _evidence(self, seen: Sequence[tuple[str, float, float]]) -> float:
        """Logarithm of the likelihood of what was seen."""
        total = 0.0
        for site, stored, missed in seen:
            a = max(_LEAST, self.weight * self.by_site[site])
            b = max(_LEAST, self.weight * (1.0 - self.by_site[site]))
            total += _log_beta(a + stored, b + missed) - _log_beta(a, b)
        return total

    def fresh(self, site: str | None = None) -> float:
        """Expected of a pair that was not seen; None: of a site that was not, either."""
        return self.overall if site is None else self.by_site.get(site, self.overall)

    def after(self, site: str, attempts: Sequence[RecordedAttempt]) -> float:
        """Expected of a pair after its attempts."""
        stored, missed = _pages(attempts)
        return (stored + self.weight * self.fresh(site)) / (stored + missed + self.weight)


def _pages(attempts: Sequence[RecordedAttempt]) -> tuple[int, int]:
    """Pages of attempts that were answered: stored, and not."""
    answered = [(max(0, one.tried - refused(one)), one.collected) for one in attempts]
    stored = sum(min(tried, collected) for tried, collected in answered)
    return stored, sum(tried for tried, _ in answered) - stored


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)


def pairs(
    attempts: Sequence[RecordedAttempt], sites: Collection[str], nodes: Collection[str], overhead: Overheads
) -> list[PairSpec]:
    """Entries of all pairs, of each site, then of each of its pairs, from the beginning and from each change on."""
    by_pair: dict[Pair, list[RecordedAttempt]] = defaultdict(list)
    by_site: dict[str, list[RecordedAttempt]] = defaultdict(list)
    known = [one for one in attempts if one.site in sites and one.node in nodes]
    for one in known:
        by_pair[one.site, one.node].append(one)
        by_site[one.site].append(one)
    blocked, usual = blocks(by_pair), Completions.of_pairs(by_pair)
    paged = {one.site for one in known if one.tried}
    entries = [PairSpec(**_rates(known, overhead, usual.fresh()))] if paged else []
    entries += [
        PairSpec(site=site, **_rates(of, overhead, usual.fresh(site)), **_block(blocked.get((site, ""))))
        for site, of in by_site.items()
        if site in paged
    ]
    begun = min((one.begun_at for one in known), default=None)
    for (site, node), of in by_pair.items():
        block = _block(blocked.get((site, node)))
        entries.append(PairSpec(site=site, node=node, **_rates(of, overhead, usual.after(site, of)), **block))
        periods = list(_periods([one for one in of if one.tried], overhead))
        for period in periods if len(periods) > 1 else ():
            assert begun is not None
            stored, missed = _pages(period)
            rates = _rates(period, overhead, (stored + _HALF) / (stored + missed + 2 * _HALF))
            del rates["fail"], rates["hang"]
            from_s = (
                round((period[0].begun_at - begun).total_seconds(), 1) if period is not periods[0] else 0.0
            )
            entries.append(PairSpec(site=site, node=node, from_s=from_s, **rates))
    return entries


def _block(found: Block | None) -> dict[str, float]:
    """Keys of an entry."""
    if found is None:
        return {}
    return {
        "block_after_pages": found.pages,
        "block_window_s": found.window_s,
        "block_for_s": round(found.for_s, 1),
    }


def _rates(attempts: Sequence[RecordedAttempt], overhead: Overheads, completion: float) -> dict[str, float]:
    """Keys of an entry: rates of pages where some were answered."""
    paged = [one for one in attempts if one.tried]
    tried = sum(max(0, one.tried - refused(one)) for one in paged)
    collected = sum(one.collected for one in paged)
    failed = sum(one.outcome == "failed" and not one.tried and not refused(one) for one in attempts)
    silent = sum(one.outcome == "silent" for one in attempts)
    rates = {"fail": round(failed / len(attempts), 4), "hang": round(silent / len(attempts), 4)}
    if tried:
        paged_s = sum(one.active_s - overhead.of(one) for one in paged)
        rates["seconds_per_page"] = round(max(FASTEST_S, paged_s / sum(one.tried for one in paged)), 4)
        rates["completion"] = round(completion, 4)
        faults = sum(
            count for one in paged for kind, count in one.errors.items() if ErrorClass(kind).facts.is_fault
        )
        rates["fault"] = round(min(1.0, faults / max(1, tried - collected)), 4)
    return rates


def _periods(attempts: Sequence[RecordedAttempt], overhead: Overheads) -> Iterator[Sequence[RecordedAttempt]]:
    """Attempts of a pair, cut where its rates changed (binary segmentation).

    There is a change where two pairs of rates explain the pages and their seconds better than one, by more than the
    odds against a change between two attempts (`tasks.domain.change_point.CHANGES`).
    """
    if len(attempts) < 2:
        yield attempts
        return
    sums = list(accumulate((_Sums.of(one, overhead) for one in attempts), initial=_Sums()))
    usual_s = sums[-1].seconds / (sums[-1].stored + sums[-1].missed)
    whole = sums[-1].evidence(usual_s)
    gain, place = max(
        (sums[n].evidence(usual_s) + (sums[-1] - sums[n]).evidence(usual_s) - whole, n)
        for n in range(1, len(attempts))
    )
    if gain <= log((1.0 - CHANGES) / CHANGES):
        yield attempts
        return
    yield from _periods(attempts[:place], overhead)
    yield from _periods(attempts[place:], overhead)


@dataclass(frozen=True, slots=True)
class _Sums:
    """Independent pages (`tasks.domain.change_point.design_effect`) of attempts: stored, missed, their seconds."""

    stored: float = 0.0
    missed: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, attempt: RecordedAttempt, overhead: Overheads) -> _Sums:
        tried = max(0, attempt.tried - refused(attempt))
        effect = design_effect(tried)
        stored = min(attempt.collected, tried)
        seconds = max(FASTEST_S * tried, attempt.active_s - overhead.of(attempt))
        return cls(stored / effect, (tried - stored) / effect, seconds / effect)

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.stored + other.stored, self.missed + other.missed, self.seconds + other.seconds)

    def __sub__(self, other: _Sums) -> _Sums:
        return _Sums(self.stored - other.stored, self.missed - other.missed, self.seconds - other.seconds)

    def evidence(self, usual_s: float) -> float:
        """Logarithm of the likelihood over all rates: beta-binomial for the pages, gamma for their seconds.

        Args:
            usual_s: mean of the prior of a page's seconds, which counts as one page.
        """
        pages = self.stored + self.missed
        stored = _log_beta(self.stored + _HALF, self.missed + _HALF) - _log_beta(_HALF, _HALF)
        took = lgamma(pages + 1.0) + log(usual_s) - (pages + 1.0) * log(usual_s + self.seconds)
        return stored + took
