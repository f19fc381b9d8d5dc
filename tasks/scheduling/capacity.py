"""Capacity: how many attempts hosts can take now, in all and from one address.

`host_views` works it out from what hosts grant (limits times pace, rests, reserved permits), measured request times and
running attempts. `HostCapacity` counts it down while
subtasks are given away. The other functions turn it into bounds of a plan (`tasks.scheduling.fluid`).
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
"""Seconds a request takes, where nothing is known."""

IDLE_S = 0.5
"""A host whose permits are reserved no further ahead is not asked as often as it grants."""

_ROUNDING = 1e-9
"""Rounding error: below this, a fraction is not another attempt."""


def attempt_rate(limits: Limits, request_s: float, lanes: int, share: float = 1.0) -> float:
    """Requests a second of one attempt at a host: as many as its lanes can send, and one address may.

    Args:
        limits: of the host, in requests per second.
        request_s: seconds of one request, from one to the next in a lane; positive.
        lanes: requests an attempt has in flight at once.
        share: of the limit, that the address is granted.
    """
    return min(limits.per_address_per_s * share, lanes / request_s)


def attempts_in_all(total_per_s: float, per_s: float, load_per_s: float = 0.0) -> int:
    """Attempts, beside those that run, that use up what a host grants all addresses.

    Args:
        total_per_s: requests a second it grants.
        per_s: requests a second of one attempt there; positive.
        load_per_s: requests a second of those that run.
    """
    return max(0, math.ceil((total_per_s - load_per_s) / per_s - _ROUNDING))


def attempts_per_address(limits: Limits, per_s: float) -> int:
    """Attempts that use up what a host allows to one address; at least 1.

    Args:
        limits: of the host.
        per_s: requests a second of one attempt there; positive.
    """
    return max(1, math.ceil(limits.per_address_per_s / per_s - _ROUNDING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawled:
    """The work under way, and what is known of hosts.

    Attributes:
        running: (site, node, whether they were given result pages, number of such attempts there, those of them that
            are well under way).
        asking: by node, the share of its attempts that send requests; 1 where it is missing.
        rests: (host, node it refused or did not answer, seconds until its rest there is over, whether it did not
            answer); with 0 s or less it is over, without a page since.
        sites: that are about to be crawled.
        grants: what hosts grant.
        addresses: by node, the address its permits are granted to.
    """

    running: Sequence[tuple[str, str, bool, int, int]]
    asking: Mapping[str, float]
    rests: Sequence[tuple[str, str, float, bool]]
    sites: Collection[str]
    grants: Grants
    addresses: Mapping[str, str]

    def grant(self, host: str, node: str) -> AddressGrants:
        """The grant of a host to a node."""
        return self.grants.get(host, _ALL).of(self.addresses.get(node, node))


def host_views(
    crawled: Crawled,
    hosts_of: Callable[[str], tuple[str, str]],
    limits_of: Callable[[str], Limits],
    request_s: Mapping[str, float],
    lanes: int,
    hits_per_result_page: int,
) -> dict[str, HostFacts]:
    """The hosts of these sites, and every other that is crawled or refuses somebody.

    An attempt sends requests to its site's host as fast as one address may and its lanes can. To its engine's host it
    sends only those for result pages: one in `hits_per_result_page` + 1, or none where it was given only hits. The next
    attempt is expected to send as many as the mean of those that run and of one on each waiting site. (Were it as many
    as the fastest sends, one site that answers at once would hold back all others of its engine.) Attempts begin, wait
    for result pages and end, so they ask for less than this. A host whose permits go unused, though all its attempts
    are well under way, can take one more.

    Args:
        crawled: see there.
        hosts_of: (engine's host, site's host) of a site.
        limits_of: limits of a host.
        request_s: by site, seconds from one request of an attempt to the next, where that is known.
        lanes: requests of one attempt in flight at once.
        hits_per_result_page: hits that one result page lists.
    """
    held: dict[str, dict[str, int]] = {}
    load: dict[str, float] = {}  # requests a second
    begun: dict[str, bool] = {}  # whether all its attempts are under way
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
    """Capacity left at each host while subtasks are given away. A host that is not set has no limit.

    Attributes:
        views: by host, as it was set last; what was given away since is not taken off.
    """

    def __init__(self, views: Iterable[HostFacts] = ()) -> None:
        self.views: dict[str, HostFacts] = {}
        self._left: dict[str, int] = {}
        self._held: dict[str, dict[str, int]] = {}
        for view in views:
            self.set(view)

    def set(self, view: HostFacts) -> None:
        """Replace what is known of a host."""
        self.views[view.host] = view
        self._left[view.host] = max(0, view.room)
        self._held[view.host] = dict(view.held)

    def drop(self, host: str) -> HostFacts:
        """Forget a host that was set."""
        del self._left[host], self._held[host]
        return self.views.pop(host)

    def take(self, hosts: Iterable[str], node: str) -> None:
        """The node is given an attempt at these hosts."""
        for host in set(hosts):  # an engine may be its site's own search: one host, one attempt
            held = self._held.setdefault(host, {})
            held[node] = held.get(node, 0) + 1
            if host in self._left:
                self._left[host] -= 1

    def held(self, host: str, node: str) -> int:
        """Attempts of the node at the host, given away ones included."""
        return self._held.get(host, {}).get(node, 0)

    def left(self, hosts: Iterable[str]) -> float:
        """Attempts that all of these hosts can still take; infinite where none has a limit."""
        left = math.inf
        for host in hosts:
            left = min(left, self._left.get(host, math.inf))
        return left

    def left_for(self, hosts: Iterable[str], node: str) -> float:
        """Attempts by which the node sends no more requests to these hosts than one address may.

        More would only wait. After a rest at a host the node probes it with one attempt at a time.
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
                limit = _of_address(view, node)
            if limit is not None:
                left = min(left, max(0, limit - self.held(host, node)))
        return left


def _of_address(view: HostFacts, node: str) -> int | None:
    """Attempts that use up what a host grants a node's address now; None: any."""
    if view.address_limit is None:
        return None
    return math.ceil(view.address_limit * view.shares.get(node, 1.0) - _ROUNDING)


def total_pages(
    examples: Sequence[SubtaskFacts], hosts: Mapping[str, HostFacts]
) -> list[tuple[list[int], float]]:
    """Of every host with a limit: places of its sites, and pages a second that may be requested by all addresses.

    Args:
        examples: one subtask of each site.
        hosts: by name.
    """
    of = _sites_of_hosts(examples, hosts)
    return [(p, hosts[name].pages_per_s) for name, p in of.items() if math.isfinite(hosts[name].pages_per_s)]


def address_pages(
    examples: Sequence[SubtaskFacts], nodes: Sequence[str], hosts: Mapping[str, HostFacts], pages_per_s: Array
) -> Array:
    """Attempts at once that use up what an address may request; below 1, one attempt waits for the rest of its time.

    Args:
        examples: one subtask of each site.
        nodes: names.
        hosts: by name.
        pages_per_s: that an attempt requests. (sites, nodes)
    """
    import numpy as np  # commands that only list do without it

    most = np.full(pages_per_s.shape, np.inf)
    for place, one in enumerate(examples):
        for view in _views(one, hosts):
            if math.isfinite(view.address_pages_per_s):
                shares = np.array([view.shares.get(name, 1.0) for name in nodes]) if view.shares else 1.0
                attempts = view.address_pages_per_s * shares / np.maximum(pages_per_s[place], 1e-9)
                most[place] = np.minimum(most[place], attempts)
    return most


def tightest(names: Iterable[str], hosts: Mapping[str, HostFacts]) -> HostFacts | None:
    """The host that grants the fewest pages a second to all addresses; None where none of these has a limit."""
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
