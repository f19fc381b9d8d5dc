"""How long what is left takes, and what it waits for: the one reckoning of `run`, `status` and the dashboard.

The end comes with the slowest site, so the time left is reckoned by site. Its hits h, and those that its unread result
pages will list, are asked for by one node at a time at the end, so that they come at

    r = U max over nodes of c min(A, v)

pages a second, where A is what the host grants an address (a Crawl-delay included), c the share of the pages that the
node asked the site for and got, v the requests a second it sends there where no permit holds it up, and U the share of
permits that are used. (Both of a node that has not asked it yet: 1, A.) Before that, sites share the slots of all
nodes: pages of all of them come no faster than C, the highest rate so far, of which each site with work gets an equal
part but no more than its r. What rests until a known time begins then. Unread result pages of an engine come at what
its host grants all nodes; the hits of the last one come behind it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

_USED = 0.95
"""Share of a busy host's permits that are used (docs/strategies.md: `bench.field.trace`)."""
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


def site_rate(
    per_address_per_s: float, nodes: Sequence[tuple[float, float, float]], used: float = _USED
) -> float:
    """Pages a second that come from a site while its best node asks it.

    Args:
        per_address_per_s: requests a second that its host grants one address.
        nodes: of each, pages it asked for, those it got, and the seconds that took it without permits.
    """
    allowed = per_address_per_s
    return used * max(
        (
            (got + 1) / (asked + 1) * min(allowed, (asked + 1) / (active_s + 1 / allowed))
            for asked, got, active_s in nodes
        ),
        default=allowed,
    )


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
