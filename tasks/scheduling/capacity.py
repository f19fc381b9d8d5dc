"""Compute how many attempts hosts can take now, in total and from one address.

`host_views` computes it from the grants of hosts (limits times pace, rests, reserved permits), measured request times
and running attempts. `HostCapacity` counts it down while subtasks are given. The other functions turn it into bounds
of a plan (`tasks.scheduling.fluid`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.domain.facts import HostFacts, SubtaskFacts
from tasks.domain.grants import LONGEST_QUEUE_S, AddressGrants, Grants, HostGrants

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from splitter.catalog.model import Limits

    Array = NDArray[np.float64]


REQUEST_S = 0.2
"""Assumed seconds of a request without data."""

IDLE_S = 0.5
"""A host whose permits are reserved less far ahead than this, in seconds, is asked less often than it grants."""

_ROUNDING = 1e-9
"""Rounding error: below this, a fraction is not another attempt."""


def attempt_rate(limits: Limits, request_s: float, lanes: int, share: float = 1.0) -> float:
    """Return the requests per second of one attempt at a host, limited by its lanes and by the limit of one address.

    Args:
        limits: limits of the host, in requests per second.
        request_s: seconds from one request to the next in a lane; positive.
        lanes: maximum number of concurrent requests of an attempt.
        share: share of the limit that the address is granted.
    """
    return min(limits.per_address_per_s * share, lanes / request_s)


def attempts_in_all(total_per_s: float, per_s: float, load_per_s: float = 0.0) -> int:
    """Return the number of attempts, in addition to running ones, that use up a host's rate for all addresses.

    Args:
        total_per_s: requests per second that it grants.
        per_s: requests per second of one attempt; positive.
        load_per_s: requests per second of running attempts.
    """
    return max(0, math.ceil((total_per_s - load_per_s) / per_s - _ROUNDING))


def attempts_per_address(limits: Limits, per_s: float) -> int:
    """Return the number of attempts that use up a host's limit for one address; at least 1.

    Args:
        limits: limits of the host.
        per_s: requests per second of one attempt; positive.
    """
    return max(1, math.ceil(limits.per_address_per_s / per_s - _ROUNDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """The running work, and facts about hosts.

    Attributes:
        running: (site, node, whether they were given result pages, number of such attempts there, those of them that
            are well under way).
        asking: share of attempts that send requests, by node; 1 for a missing node.
        rests: (host, node that it refused or did not answer, seconds until the end of the rest, True if it did not
            answer). With 0 s or less the rest is over, but no page has come since.
        sites: sites that will be crawled.
        grants: rates that hosts grant.
        addresses: addresses that permits are granted to, by node.
    """

    running: Sequence[tuple[str, str, bool, int, int]]
    asking: Mapping[str, float]
    rests: Sequence[tuple[str, str, float, bool]]
    sites: Collection[str]
    grants: Grants
    addresses: Mapping[str, str]

    def grant(self, host: str, node: str) -> AddressGrants:
        """Return the grant of a host to a node."""
        return self.grants.get(host, _ALL).grant_for(self.addresses.get(node, node))


def host_views(
    crawled: Crawled,
    hosts_of: Callable[[str], tuple[str, str]],
    limits_of: Callable[[str], Limits],
    request_s: Mapping[str, float],
    lanes: int,
    hits_per_result_page: int,
) -> dict[str, HostFacts]:
    """Return the hosts of these sites, and all other hosts that are crawled or refuse a node.

    An attempt sends requests to its site's host as fast as one address may and its lanes can. To its engine's host it
    sends only those for result pages: one in `hits_per_result_page` + 1, or none if it got only hits. The next attempt
    is expected to send as many as the mean of the running ones and of one on each waiting site. (With the rate of the
    fastest one, a single fast site would hold back all other sites of its engine.) Attempts begin, wait for result
    pages and end, so they ask for less than this. A host with unused permits can take one more attempt if all its
    attempts are well under way.

    Args:
        crawled: the running work, and facts about hosts.
        hosts_of: (engine's host, site's host) of a site.
        limits_of: limits of a host.
        request_s: seconds between two requests of an attempt, by site; unknown sites are missing.
        lanes: maximum number of concurrent requests of an attempt.
        hits_per_result_page: number of hits on a result page.
    """
    held: dict[str, dict[str, int]] = {}
    load: dict[str, float] = {}  # requests a second
    begun: dict[str, bool] = {}  # True if all its attempts are well under way
    paces: dict[str, list[tuple[float, float]]] = {}  # requests a second of an attempt; of how many attempts
    requests_per_result_page = hits_per_result_page + 1

    def rates(site: str, share: float = 1.0) -> dict[str, float]:
        engine_host, site_host = hosts_of(site)
        per_s = attempt_rate(limits_of(site_host), request_s.get(site, REQUEST_S), lanes, share)
        return {engine_host: per_s / requests_per_result_page, site_host: per_s}

    for site, node, searches, attempts, started in crawled.running:
        asking = attempts * crawled.asking.get(node, 1.0)
        site_host = hosts_of(site)[1]
        for host, per_s in rates(site, crawled.grant(site_host, node).share).items():
            if host != site_host and not searches:
                continue
            by_node = held.setdefault(host, {})
            by_node[node] = by_node.get(node, 0) + math.ceil(asking)
            load[host] = load.get(host, 0.0) + asking * per_s
            begun[host] = begun.get(host, True) and started == attempts
            paces.setdefault(host, []).append((per_s, asking))
    for site in crawled.sites:
        for host, per_s in rates(site).items():
            paces.setdefault(host, []).append((per_s, 1.0))
    engine_hosts = {engine for engine, site in map(hosts_of, crawled.sites) if engine != site}
    rests: dict[str, dict[str, tuple[float, bool]]] = {}
    for host, node, rest_s, is_unanswered in crawled.rests:
        rests.setdefault(host, {})[node] = rest_s, is_unanswered
    views = {}
    for host in {*paces, *rests}:
        of_host = rests.get(host, {})
        resting = {node: rest_s for node, (rest_s, _) in of_host.items() if rest_s > 0}
        limits, grants = limits_of(host), crawled.grants.get(host, _ALL)
        per_s = _mean(paces[host]) if host in paces else limits.per_address_per_s
        total_per_s = limits.total_per_s * grants.share
        pages_per_request = requests_per_result_page if host in engine_hosts else 1
        idle = begun.get(host, False) and grants.next_s < IDLE_S
        room = attempts_in_all(total_per_s, per_s, load.get(host, 0.0))
        addresses = {node: crawled.grant(host, node) for node in crawled.addresses}
        views[host] = HostFacts(
            host=host,
            room=0 if grants.next_s > LONGEST_QUEUE_S else max(room, int(idle)),
            resting=frozenset(resting),
            rests_s=resting,
            unanswered=frozenset(node for node in resting if of_host[node][1]),
            address_limit=attempts_per_address(limits, per_s) + int(idle),
            held=held.get(host, {}),
            probing=frozenset(of_host.keys() - resting.keys()),
            waits_s={name: one.next_s for name, one in addresses.items() if one.next_s > LONGEST_QUEUE_S},
            shares={name: one.share for name, one in addresses.items() if one.share < 1.0},
            pages_per_s=pages_per_request * total_per_s,
            address_pages_per_s=pages_per_request * limits.per_address_per_s,
        )
    return views


_ALL = HostGrants()


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    """Mean of values with their weights."""
    return sum(value * weight for value, weight in weighted) / sum(weight for _, weight in weighted)


class HostCapacity:
    """Remaining capacity of hosts while subtasks are given. A host that is not set has no limit.

    Attributes:
        views: hosts by name, as last set, without the attempts given since.
    """

    def __init__(self, views: Iterable[HostFacts] = ()) -> None:
        self.views: dict[str, HostFacts] = {}
        self._left: dict[str, int] = {}
        self._held: dict[str, dict[str, int]] = {}
        for view in views:
            self.set(view)

    def set(self, view: HostFacts) -> None:
        """Add or update a host."""
        self.views[view.host] = view
        self._left[view.host] = max(0, view.room)
        self._held[view.host] = dict(view.held)

    def drop(self, host: str) -> HostFacts:
        """Remove a host and return it."""
        del self._left[host], self._held[host]
        return self.views.pop(host)

    def take(self, hosts: Iterable[str], node: str) -> None:
        """Record that the node gets an attempt at these hosts."""
        for host in set(hosts):  # an engine may be its site's own search: one host, one attempt
            held = self._held.setdefault(host, {})
            held[node] = held.get(node, 0) + 1
            if host in self._left:
                self._left[host] -= 1

    def held(self, host: str, node: str) -> int:
        """Return the number of the node's attempts at the host, including newly given ones."""
        return self._held.get(host, {}).get(node, 0)

    def remaining(self, hosts: Iterable[str]) -> float:
        """Return the number of attempts that all of these hosts can still take; infinite if none has a limit."""
        left = math.inf
        for host in hosts:
            left = min(left, self._left.get(host, math.inf))
        return left

    def remaining_for(self, hosts: Iterable[str], node: str) -> float:
        """Return how many more attempts keep the node within the limits of these hosts for one address.

        Further attempts would only wait. After a rest at a host the node probes it with one attempt at a time.
        """
        left = math.inf
        for host in hosts:
            view = self.views.get(host)
            if view is None:
                continue
            if node in view.waits_s:
                limit: int | None = 0
            elif node in view.probing:
                limit = 1
            else:
                limit = _address_limit(view, node)
            if limit is not None:
                left = min(left, max(0, limit - self.held(host, node)))
        return left


def _address_limit(view: HostFacts, node: str) -> int | None:
    """Return the number of attempts that use up a host's grant to a node's address; `None` without a limit."""
    if view.address_limit is None:
        return None
    return math.ceil(view.address_limit * view.shares.get(node, 1.0) - _ROUNDING)


def total_pages(
    examples: Sequence[SubtaskFacts], hosts: Mapping[str, HostFacts]
) -> list[tuple[list[int], float]]:
    """Return for every host with a limit the places of its sites, and the pages per second for all addresses.

    Args:
        examples: one subtask of each site.
        hosts: hosts by name.
    """
    of = _sites_of_hosts(examples, hosts)
    return [(p, hosts[name].pages_per_s) for name, p in of.items() if math.isfinite(hosts[name].pages_per_s)]


def address_pages(
    examples: Sequence[SubtaskFacts], nodes: Sequence[str], hosts: Mapping[str, HostFacts], pages_per_s: Array
) -> Array:
    """Return the number of concurrent attempts that use up the limit of an address. Below 1, one attempt waits in part.

    Args:
        examples: one subtask of each site.
        nodes: names of nodes.
        hosts: hosts by name.
        pages_per_s: pages per second that an attempt requests. (sites, nodes)
    """
    import numpy as np  # commands that only list things don't need it

    most = np.full(pages_per_s.shape, np.inf)
    for place, one in enumerate(examples):
        for view in _views(one, hosts):
            if math.isfinite(view.address_pages_per_s):
                shares = np.array([view.shares.get(name, 1.0) for name in nodes]) if view.shares else 1.0
                attempts = view.address_pages_per_s * shares / np.maximum(pages_per_s[place], 1e-9)
                most[place] = np.minimum(most[place], attempts)
    return most


def tightest(names: Iterable[str], hosts: Mapping[str, HostFacts]) -> HostFacts | None:
    """Return the host that grants the fewest pages per second to all addresses; `None` if none of these has a limit."""
    views = (hosts[name] for name in names if name in hosts and math.isfinite(hosts[name].pages_per_s))
    return min(views, key=lambda one: one.pages_per_s, default=None)


def _sites_of_hosts(examples: Sequence[SubtaskFacts], hosts: Mapping[str, HostFacts]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, one in enumerate(examples):
        for view in _views(one, hosts):
            places.setdefault(view.host, []).append(place)
    return places


def _views(subtask: SubtaskFacts, hosts: Mapping[str, HostFacts]) -> list[HostFacts]:
    return [hosts[name] for name in dict.fromkeys(subtask.hosts) if name in hosts]
