"""A fluid plan: the best division of all nodes' slots over sites, as if subtasks were divisible.

With r[j, i] pages per second of a slot expected of site j on node i, h[j] pages waiting, c[i] slots, and x[j, i]
the seconds of slots of node i that go to site j, the earliest end of everything is a linear program:

    T* = min T   subject to   sum_i r[j, i] x[j, i] >= h[j]           all pages are collected
                              sum_j x[j, i] <= c[i] T                  nodes have so many slots
                              sum_j,i q[j, i] x[j, i] <= l[k] T        limit of a host k for all addresses
                              x[j, i] <= a[j, i] T                     and for one address

where q[j, i] are pages requested per second of a slot; the sum with q is over the sites j of the host k.

More work may come, and a run may be stopped early. So of all plans that end within (1 + SLACK) T*, the one with most
pages by half of T* is chosen: x = y + z, y before it, z after it,

    max sum r y   subject to   sum_i r y <= h            sum_j y <= c T* / 2
                               sum_i r (y + z) >= h      sum_j z <= c (1/2 + SLACK) T*

with the hosts' bounds likewise. Each page requested from a host with a limit costs `REQUEST_COST` pages there, so that
of two ways to collect the same the one with fewer requests is chosen. The dual values of the first program are shadow
prices: the pages that one more permit of a host, or one more second of a node's slot, would add.

y is the division: a node works at the sites with a positive y. A greedy rule (each slot goes to the site with its
highest yield now) does worse: other nodes take the easy pages of a site whose only good node has no other work, and
the hard pages are left for the end.

An optimal corner of either program has at most as many positive x as rows, so a node has few sites. If there are very
many pairs, only those are used that are among the best nodes of their site (as many as its share of all work may
need) or among the best few sites of their node. With random rates, T* was at most 0.7 % later with these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from highspy import Highs, HighsLp, HighsModelStatus
from numpy.typing import NDArray

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_ALL_PAIRS = 1500
"""Maximum number of pairs that are all used."""

_BEST_NODES = 4
"""Number of best nodes of each site that are used if there are more pairs, ..."""

_SPARE = 3.0
"""... in addition to this multiple of the site's share of all work, counted in nodes, ..."""

_BEST_SITES = 3
"""... and the number of best sites of each node."""


SLACK = 0.01
"""Maximum share of T* that the division may end after T*."""

REQUEST_COST = 0.05
"""Minimum cost of a request to a host with a limit, in pages, even if it grants more than is asked for."""

EARLY = 0.5
"""Share of T* at which the number of collected pages is maximised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The work to divide, and its rates and limits.

    Attributes:
        rates: r, pages per second of a slot; 0 if the node may not crawl the site. (sites, nodes).
        pages: h, number of waiting pages. (sites,)
        slots: c, number of slots. (nodes,)
        asks: q, pages requested per second of a slot. (sites, nodes)
        hosts: for each host the places of its sites, and l, its limit in pages per second.
        alone: a, number of concurrent attempts that use up the limit of one address: below 1 if one attempt does so in
            a part of its time; inf without a limit. (sites, nodes)
    """

    rates: Array
    pages: Array
    slots: Array
    asks: Array
    hosts: Sequence[tuple[Sequence[int], float]]
    alone: Array


@dataclass(frozen=True, slots=True)
class Division:
    """A division of slots over sites.

    Attributes:
        seconds: y, in seconds of slots. (sites, nodes)
        drain_s: T*, seconds until all work that some node may take is done; inf if the program could not be solved.
        permit_worth: pages that one more request to each host would add, in the order of `Demand.hosts`.
        slot_worth: pages that one more second of a slot would add, of each node. (nodes,)
    """

    seconds: Array
    drain_s: float
    permit_worth: Array
    slot_worth: Array


def divide(demand: Demand) -> Division:
    """Divide the slots by the two programs above.

    Sites without pages, and sites that no node may crawl, get no slots.
    """
    found = np.zeros(demand.rates.shape)
    prices = np.zeros(len(demand.hosts)), np.zeros(demand.slots.size)
    site, node = _columns(demand)
    if not site.size:
        return Division(found, 0.0, *prices)
    program = _LinearProgram(demand, site, node)
    drained = program.drain()
    if drained is None:
        return Division(found, float("inf"), *prices)
    drain_s, seconds = drained
    early = program.early(drain_s)
    found[site, node] = seconds if early is None else early[0]
    return Division(found, drain_s, *(prices if early is None else early[1]))


def _columns(demand: Demand) -> tuple[Index, Index]:
    """Return the sites and nodes of the pairs that are used."""
    open_sites = demand.pages > 0
    useful = (demand.rates > 0) & (demand.alone > 0) & open_sites[:, None] & (demand.slots > 0)[None, :]
    if np.count_nonzero(useful) > _ALL_PAIRS:
        rates = np.where(useful, demand.rates, 0.0)
        work = np.where(open_sites, demand.pages, 0.0) / np.maximum(rates.max(axis=1), 1e-12)
        work[~useful.any(axis=1)] = 0.0
        wanted = _BEST_NODES + np.ceil(_SPARE * demand.slots.size * work / work.sum())
        useful &= (_rank(rates, 1) < wanted[:, None]) | (_rank(rates, 0) < _BEST_SITES)
    site, node = np.nonzero(useful)
    return site, node


def _rank(values: Array, axis: int) -> Index:
    """Return the rank of each value along an axis, 0 for the greatest."""
    order = np.argsort(-values, axis=axis, kind="stable")
    return np.asarray(np.argsort(order, axis=axis, kind="stable"))


class _LinearProgram:
    """The rows that both programs share, as entries of a sparse matrix. Its columns are the pairs that are used."""

    def __init__(self, demand: Demand, site: Index, node: Index) -> None:
        self._rates = demand.rates[site, node]
        wanted, at_site = np.unique(site, return_inverse=True)
        users, at_node = np.unique(node, return_inverse=True)
        self._rationed = np.zeros(site.size)
        self._pages = demand.pages[wanted]
        self._users, self._nodes, self._all_hosts = users, demand.slots.size, len(demand.hosts)
        self._limited: list[int] = []  # hosts with a row, after the rows of the nodes
        column = np.arange(site.size)
        self._collects = _Entries(at_site, column, self._rates, wanted.size)
        uses, bounds = [_Entries(at_node, column, np.ones(site.size), users.size)], [demand.slots[users]]
        for number, (places, per_s) in enumerate(demand.hosts):
            of_host = np.zeros(demand.pages.size, np.bool_)
            of_host[places] = True
            inside = np.flatnonzero(of_host[site])
            if inside.size:
                asked = demand.asks[site[inside], node[inside]]
                self._rationed[inside] = asked
                uses.append(_Entries(np.zeros(inside.size, np.intp), inside, asked, 1))
                bounds.append(np.array([per_s]))
                self._limited.append(number)
        alone = demand.alone[site, node]
        limited = np.flatnonzero(alone < demand.slots[node])
        if limited.size:
            uses.append(_Entries(np.arange(limited.size), limited, np.ones(limited.size), limited.size))
            bounds.append(alone[limited])
        self._uses = _below(uses)
        self._bounds = np.concatenate(bounds)

    def drain(self) -> tuple[float, Array] | None:
        """Return T* and its x; `None` if the program can't be solved."""
        count, uses = self._rates.size, self._uses
        cost = np.zeros(count + 1)
        cost[-1] = 1.0
        time = _Entries(np.arange(uses.rows), np.full(uses.rows, count), -self._bounds, uses.rows)
        matrix = _below([uses.combine(time), self._collects.times(-1.0)])
        right = np.concatenate([np.zeros(uses.rows), -self._pages])
        found = _least(cost, matrix, right)
        return None if found is None else (float(found[0][-1]), found[0][:-1])

    def early(self, drain_s: float) -> tuple[Array, tuple[Array, Array]] | None:
        """Return y of the second program, and the shadow prices of permits and slots; `None` if it can't be solved."""
        count, uses, collects = self._rates.size, self._uses, self._collects
        cost = np.concatenate([REQUEST_COST * self._rationed - self._rates, np.zeros(count)])
        both = collects.times(-1.0).combine(collects.times(-1.0).shift(count))
        matrix = _below([uses, uses.shift(count), collects, both])
        right = np.concatenate(
            [
                self._bounds * (EARLY * drain_s),
                self._bounds * ((1.0 + SLACK - EARLY) * drain_s),
                self._pages,
                -self._pages * (1.0 - 1e-6),
            ]
        )
        found = _least(cost, matrix, right)
        if found is None:
            return None
        values, prices = found
        permit_worth, slot_worth = np.zeros(self._all_hosts), np.zeros(self._nodes)
        slot_worth[self._users] = prices[: self._users.size]
        permit_worth[self._limited] = prices[self._users.size : self._users.size + len(self._limited)]
        return values[:count], (permit_worth, slot_worth)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of a sparse matrix with a number of rows."""

    row: Index
    column: Index
    value: Array
    rows: int

    def times(self, factor: float) -> _Entries:
        return _Entries(self.row, self.column, self.value * factor, self.rows)

    def shift(self, columns: int) -> _Entries:
        """Return the entries moved to the right by `columns`."""
        return _Entries(self.row, self.column + columns, self.value, self.rows)

    def combine(self, other: _Entries) -> _Entries:
        """Return these entries together with those of another, in the same rows."""
        return _Entries(
            np.concatenate([self.row, other.row]),
            np.concatenate([self.column, other.column]),
            np.concatenate([self.value, other.value]),
            self.rows,
        )


def _below(parts: list[_Entries]) -> _Entries:
    """Return the parts stacked below each other."""
    first = np.cumsum([0, *(part.rows for part in parts)])
    return _Entries(
        np.concatenate([part.row + start for part, start in zip(parts, first[:-1], strict=True)]),
        np.concatenate([part.column for part in parts]),
        np.concatenate([part.value for part in parts]),
        int(first[-1]),
    )


class _SilentHighs(Highs):
    """HiGHS that prints nothing. Its constructor prints a banner when it enables callbacks, which nothing here uses."""

    def enableCallbacks(self) -> None:  # noqa: N802
        self.setOptionValue("output_flag", False)


def _least(cost: Array, entries: _Entries, right: Array) -> tuple[Array, Array] | None:
    """Return the x >= 0 with entries @ x <= right that minimises cost @ x (HiGHS), and the decrease of this cost per
    unit of `right`; `None` if there is no x."""
    order = np.lexsort((entries.row, entries.column))
    ends = np.cumsum(np.bincount(entries.column, minlength=cost.size))
    program = HighsLp()
    program.num_col_, program.num_row_ = cost.size, right.size
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = np.zeros(cost.size), np.full(cost.size, np.inf)
    program.row_lower_, program.row_upper_ = np.full(right.size, -np.inf), right
    program.a_matrix_.start_ = np.concatenate([[0], ends])
    program.a_matrix_.index_ = entries.row[order]
    program.a_matrix_.value_ = entries.value[order]
    solver = _SilentHighs()  # type: ignore[no-untyped-call]
    solver.passModel(program)
    solver.run()
    if solver.getModelStatus() != HighsModelStatus.kOptimal:
        return None
    found = solver.getSolution()
    return np.asarray(found.col_value, np.float64), -np.asarray(found.row_dual, np.float64)
