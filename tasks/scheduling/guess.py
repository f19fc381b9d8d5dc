"""What a page should cost on a pair that was never tried, told from the distance of its node and site (2010 paper).

The line through the pairs that have data (`tasks.scheduling.proximity.prior`) is `feedback`'s first guess for those
that have none, in place of what their site and their node do elsewhere. Where distance explains nothing, or is not
known, there is no such guess.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling import posterior as estimate
from tasks.scheduling.decision import Distances
from tasks.scheduling.posterior import EstimateSettings
from tasks.scheduling.proximity import prior
from tasks.scheduling.statistics import Knowledge

Array = NDArray[np.float64]


def by_distance(
    distances: Distances,
    knowledge: Knowledge,
    now_s: float,
    sites: Sequence[str],
    nodes: Sequence[str],
    settings: EstimateSettings,
) -> Array | None:
    """Seconds per page to expect of pairs without data; NaN for the others, and where the distance is unknown.

    Returns:
        Array of (sites, nodes), for `estimate.posterior`; None where distance explains nothing.
    """
    seen_sites, seen_nodes = list(knowledge.sites), list(knowledge.nodes)
    if not seen_sites:
        return None
    pages, seconds = _observed(knowledge, now_s, seen_sites, seen_nodes, settings)
    line = prior.fit(distances.ms(seen_sites, seen_nodes).ravel(), seconds.ravel(), pages.ravel())
    if line is None:
        return None
    own, _ = _observed(knowledge, now_s, sites, nodes, settings)
    return np.where(own > 0, np.nan, line.seconds(distances.ms(sites, nodes)))


def _observed(
    knowledge: Knowledge, now_s: float, sites: Sequence[str], nodes: Sequence[str], settings: EstimateSettings
) -> tuple[Array, Array]:
    """Independent pages of each pair, and its seconds per tried page without the overhead; 0 where it has no data."""
    # A first guess of 0 s leaves in the posterior what the pair's own data say, as it counts them.
    nothing = np.zeros((len(sites), len(nodes)))
    found = estimate.posterior(knowledge, now_s, sites, nodes, settings, nothing)
    pages = np.maximum(0.0, found.seconds_shape - settings.prior_pages)
    pages = np.where(pages < 1e-6, 0.0, pages)
    return pages, found.seconds_total / np.maximum(pages, 1e-6)
