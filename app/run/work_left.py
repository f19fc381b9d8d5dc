"""How long what is left takes, and what it waits for: the one reckoning of `run`, `status` and the dashboard.

The end comes with the slowest site, so the time left is reckoned by site. Its hits h, and those that its unread result
pages will list, are asked for by its best node at the end, and by others with it part of the time, so that they come at

    r = U (max over nodes of q + B min(T - A, sum of q over the others that have a lease there)),  q = c min(A, v)

pages a second, where T is what the host grants all, A what it grants an address (a Crawl-delay included), c the share
of the pages that the node asked the site for and got, v the requests a second it sends there where no permit holds it
up, and U the share of permits that are used. (Of a node that has not asked it yet: c = 1, v = A.) Before that, sites
share the slots of all nodes: pages of all of them come no faster than C, the highest rate so far, of which each site
with work gets an equal part but no more than its r. What rests until a known time begins then. Unread result pages of
an engine come at what its host grants all nodes; the hits of the last one come behind it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_USED = 0.95
"""Share of a busy host's permits that are used (docs/strategies.md: `research.bench.field.trace`)."""
_BESIDE = 0.25
"""Part of the time that a second node asks a site at its end, of those with a lease there: by runs of `bench field`."""
_DONE = 1e-6


class Ending(StrEnum):
    """What is known of the end: there is no work, or none left; a host is asked next in, or all is done in, a time."""

    NO_WORK = "no work"
    NOTHING_LEFT = "nothing left"
    HOSTS = "hosts"
    DONE_IN = "done in"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The known facts about the end.

    Attributes:
        seconds: of `HOSTS` until the next host is asked, of `DONE_IN` until all is done; else 0.
        waiting: subtasks that wait for a host.
        silent: those of them whose host does not answer: nobody knows how long they take.
        next_s: where all of them wait, seconds until the first host is asked; None: not all wait.
    """

    ending: Ending
    seconds: float = 0.0
    waiting: int = 0
    silent: int = 0
    next_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteLeft:
    """The work left at a site.

    Attributes:
        hits: to ask for; `results`: result pages to read, by `engine`, its host.
        per_s: pages a second that come while it is asked, above 0.
        after_s: it is not asked earlier.
    """

    hits: float
    results: float = 0.0
    engine: str = ""
    per_s: float
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Paces:
    """What all sites share.

    Attributes:
        pages_per_s: most pages that come in a second, of all sites; infinite where it is not known.
        hits_per_result: that an unread result page will list.
        results_per_s: by host of an engine, result pages that it grants a second.
    """

    pages_per_s: float
    hits_per_result: float
    results_per_s: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class NodeSeen:
    """What a node did at a site.

    Attributes:
        asked, got: pages it asked for, and those it got, in `active_s` seconds without waiting for permits.
        there: it has a lease there now.
    """

    asked: float = 0.0
    got: float = 0.0
    active_s: float = 0.0
    there: bool = False

    def pages_per_s(self, per_address_per_s: float) -> float:
        """That it gets, where its address may send so many requests a second."""
        sent = self.asked + 1
        return (self.got + 1) / sent * min(per_address_per_s, sent / (self.active_s + 1 / per_address_per_s))


def site_rate(per_address_per_s: float, total_per_s: float, nodes: Sequence[NodeSeen]) -> float:
    """Pages a second that come from a site.

    Args:
        per_address_per_s, total_per_s: requests a second that its host grants one address, and all.
        nodes: that may ask it.
    """
    rates = sorted(((one.pages_per_s(per_address_per_s), one.there) for one in nodes), reverse=True)
    best = rates[0][0] if rates else per_address_per_s
    beside = sum(rate for rate, there in rates[1:] if there)
    return _USED * (best + _BESIDE * min(beside, max(0.0, total_per_s - per_address_per_s)))


def work_left_s(sites: Sequence[SiteLeft], paces: Paces) -> float:
    """Seconds until all is done: see the module."""
    behind_results_s = 0.0
    results: defaultdict[str, float] = defaultdict(float)
    for one in sites:
        results[one.engine] += one.results
    for one in sites:
        if one.results:
            read_s = results[one.engine] / paces.results_per_s.get(one.engine, math.inf)
            behind_results_s = max(behind_results_s, one.after_s + read_s + paces.hits_per_result / one.per_s)
    return max(behind_results_s, _shared_s(sites, paces))


def _shared_s(sites: Sequence[SiteLeft], paces: Paces) -> float:
    """Seconds until all hits are asked for, where sites share what comes in a second."""
    left = {n: one.hits + one.results * paces.hits_per_result for n, one in enumerate(sites)}
    rested_s = max((one.after_s for one in sites), default=0.0)
    left, now_s = {n: hits for n, hits in left.items() if hits > 0}, 0.0
    while left:
        begun = [n for n in left if sites[n].after_s <= now_s + _DONE]
        next_s = min((sites[n].after_s for n in left if n not in begun), default=math.inf)
        rates = _rates({n: sites[n].per_s for n in begun}, paces.pages_per_s)
        step_s = min([next_s - now_s, *(left[n] / rate for n, rate in rates.items())])
        for n, rate in rates.items():
            left[n] -= rate * step_s
        left = {n: hits for n, hits in left.items() if hits > _DONE}
        now_s += step_s
    return max(rested_s, now_s)


def _rates(most: Mapping[int, float], in_all: float) -> dict[int, float]:
    """Equal parts of what there is, none above its own most."""
    rates = {}
    for place, n in enumerate(sorted(most, key=lambda n: most[n])):
        rates[n] = min(most[n], in_all / (len(most) - place))
        in_all -= rates[n]
    return rates
