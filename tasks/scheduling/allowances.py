"""What hosts allow, as bounds of a fluid plan: in pages a second, or in attempts at once where waiting holds a slot."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tasks.domain.views import HostView
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.ready_queue import ReadyQueue

Array = NDArray[np.float64]


def asked_for(ready: ReadyQueue, sites: Sequence[str]) -> list[tuple[list[int], float]]:
    """Of every host with a limit, the places of its sites, and pages a second that it may be asked for."""
    of = _sites_of_hosts(ready, sites)
    return [
        (places, ready.hosts[name].pages_per_s)
        for name, places in of.items()
        if math.isfinite(ready.hosts[name].pages_per_s)
    ]


def feeds(ready: ReadyQueue, sites: Sequence[str]) -> list[tuple[list[int], float]]:
    """Of every host, the places of its sites, and attempts at once that use up what it may be asked."""
    of = _sites_of_hosts(ready, sites)
    views = ready.hosts
    return [(places, views[name].room + sum(views[name].held.values())) for name, places in of.items()]


def alone(ready: ReadyQueue, sites: Sequence[str], asks: Array) -> Array:
    """By site and node, attempts at once that use up what one address may ask: in a part of its time, where below 1."""
    alone = np.full(asks.shape, np.inf)
    for place, site in enumerate(sites):
        for view in _views(ready, site):
            if math.isfinite(view.address_pages_per_s):
                most = view.address_pages_per_s / np.maximum(asks[place], 1e-9)
                alone[place] = np.minimum(alone[place], most)
    return alone


def address_limits(ready: ReadyQueue, sites: Sequence[str], like: Array) -> Array:
    """The same counted in attempts."""
    alone = np.full(like.shape, np.inf)
    for place, site in enumerate(sites):
        limits = [v.address_limit for v in _views(ready, site) if v.address_limit is not None]
        alone[place] = min(limits, default=math.inf)
    return alone


def restrained(
    ready: ReadyQueue, sites: Sequence[str], nodes: Sequence[str], backoff: PairBackoff, now_s: float
) -> Array:
    """By site and node, attempts at once that one may have after a refusal."""
    most = np.full((len(sites), len(nodes)), np.inf)
    for place, site in enumerate(sites):
        hosts = ready.sites[site].hosts
        if backoff.any(hosts):
            most[place] = [backoff.share(hosts, node, now_s) for node in nodes]
    return most


def _sites_of_hosts(ready: ReadyQueue, sites: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, site in enumerate(sites):
        for name in dict.fromkeys(ready.sites[site].hosts):
            if name in ready.hosts:
                places.setdefault(name, []).append(place)
    return places


def _views(ready: ReadyQueue, site: str) -> list[HostView]:
    return [ready.hosts[name] for name in ready.sites[site].hosts if name in ready.hosts]
