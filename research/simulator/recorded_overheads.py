"""Seconds of a recorded run's attempts that are no page's: of result pages, or of an attempt as such."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from research.simulator.recorded_rows import RecordedAttempt

_FEWEST_SIZED = 3
"""Attempts that tried pages, before overhead and page time are separated by their sizes; attempts that only read result
pages, before their time is taken as measured."""

FASTEST_S = 1e-3
"""A page takes at least so long."""

_ALIKE = 1e-3
"""Spread of 1 / pages, an attempt, below which sizes are the same."""


@dataclass(frozen=True, slots=True)
class Overheads:
    """Seconds of attempts that are no page's.

    Attributes:
        by_site: of an attempt there; what was measured of its engine is left out.
        by_engine: of a result page, where attempts read some and nothing else.
        engines: by site, where its result pages come from.
    """

    by_site: Mapping[str, float]
    by_engine: Mapping[str, float]
    engines: Mapping[str, str]

    @classmethod
    def of_attempts(cls, attempts: Sequence[RecordedAttempt], engines: Mapping[str, str]) -> Overheads:
        """Those of a run; ``engines``: by site."""
        read: dict[str, list[RecordedAttempt]] = defaultdict(list)
        for one in attempts:
            if one.site in engines and one.requests and not one.tried and one.outcome == "succeeded":
                read[engines[one.site]].append(one)
        by_engine = {
            engine: sum(one.active_s for one in of) / sum(one.requests for one in of)
            for engine, of in read.items()
            if len(of) >= _FEWEST_SIZED
        }
        return cls(overheads(attempts), by_engine, engines)

    def of(self, attempt: RecordedAttempt) -> float:
        """Of an attempt: at most what it took."""
        page_s = self.by_engine.get(self.engines.get(attempt.site, ""))
        if page_s is None:
            return min(attempt.active_s, self.by_site.get(attempt.site, 0.0))
        return min(attempt.active_s, page_s * max(0, attempt.requests - attempt.tried))

    def of_result_page(self, engine: str) -> float:
        """Of a result page: as measured, else the mean of its sites' overheads; 0.1 s if nothing is known."""
        took = [
            self.by_site[site]
            for site, name in self.engines.items()
            if name == engine and site in self.by_site
        ]
        page_s = self.by_engine.get(engine, sum(took) / len(took) if took else 0.1)
        return max(FASTEST_S, round(page_s, 4))


def overheads(attempts: Sequence[RecordedAttempt]) -> dict[str, float]:
    """Seconds of an attempt that are no page's, by site with an attempt that tried pages.

    Active seconds of attempts are overhead + pages tried x seconds per page: where attempts of several sizes were
    made, the least squares line through them, of each node with a slope of its own and weighted by 1 / pages, since the
    variance of a sum of page times grows with their number. Elsewhere, and as its bounds: not below 0, nor more than
    half of what attempts of the site take on average (`tasks.scheduling.posterior`), nor more than the shortest took.
    Where sizes don't differ the two cannot be separated: then it is what attempts without a page took on average,
    within the same bounds, or 0.
    """
    by_site: dict[str, list[RecordedAttempt]] = defaultdict(list)
    for one in attempts:
        if one.outcome != "silent":
            by_site[one.site].append(one)
    found = {}
    for site, of in by_site.items():
        took = [one.active_s for one in of if one.tried]
        if not took:
            continue
        fitted = _intercept_s(of)
        if fitted is None:
            vain = [one.active_s for one in of if not one.tried]
            fitted = sum(vain) / len(vain) if vain else 0.0
        found[site] = round(max(0.0, min(fitted, 0.5 * sum(took) / len(took), min(took))), 4)
    return found


def _intercept_s(attempts: Sequence[RecordedAttempt]) -> float | None:
    """The overhead of the line (see `overheads`); None where sizes don't differ, or data are fewer than three."""
    by_node: dict[str, list[RecordedAttempt]] = defaultdict(list)
    for one in attempts:
        if one.tried:
            by_node[one.node].append(one)
    # With weights 1 / n, a node's slope is (sum of seconds - attempts x overhead) / pages: put in, one unknown is left.
    above = below = 0.0
    count = 0
    for of in by_node.values():
        count += len(of)
        pages, seconds = sum(one.tried for one in of), sum(one.active_s for one in of)
        inverse = sum(1.0 / one.tried for one in of)
        above += sum(one.active_s / one.tried for one in of) - len(of) * seconds / pages
        below += inverse - len(of) ** 2 / pages
    return above / below if count >= _FEWEST_SIZED and below > _ALIKE * count else None
