"""What a world would give to somebody who knew all its rates from the start: a bound by linear programming.

Time is cut where the world changes, and into even steps between. Variables, by step i (ends at e_i, lasts d_i):
x[a,h,i] requests that address a sends to host h, z[s,n,i] result pages answered that list n pages of site s, y[s,i]
pages of site s stored. The program maximises the sum of y under

    sum_a x[a,h,i] <= T_h d_i + 1,  sum_a,j<=i x[a,h,j] <= T_h e_i + 1        what a host grants in all
    x[a,h,i] <= A_h d_i + 1,        sum_j<=i x[a,h,j] <= A_h e_i + 1          and to one address
    sum_j<=i x[a,h,j] <= k_ah ceil(e_i / w)                                   more are refused, or block the address
    sum_h,j<=i x[a,h,j] l_ah,j <= S (e_i + max l)                             S requests of an address in flight at once
    y[s,i] <= sum_a p_as,i x[a,s,i]                                           a page needs a request that succeeds
    sum_s,n c_n z[s,n,i] <= sum_a p_ae,i x[a,e,i]                             and so does a result page, c_n times
    sum_j<=i y[s,j] <= sum_n,j<=i n z[s,n,j]                                  a page is listed before it is asked for
    sum_i y[s,i] <= pages of s,  sum_i z[s,n,i] <= result pages of s with n

with T, A a host's limits (requests a second), p the chance that a request succeeds, l its latency, all of the lab's
own profile. The 1 is the first request, which waits for none. Whoever decides from what was seen so far keeps all of
this on average, so no strategy stores more on average; a single run may, by luck.

Left out, so that the bound is higher than what can be reached: the time of start, robots.txt, a page's own latency,
whole requests (a fraction of one counts), that a hit shared by two products is listed twice, leases, sweeps, and that
it is not known beforehand which result page lists most. A hang costs no more than its latency.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from urllib.parse import urlsplit

import numpy as np

from app.lab.answers import LabAnswer
from app.lab.profile import Block, Conduct, Conducts, HostRole
from research.bench.field.worlds import TaskHits, World
from research.simulator.linear import Program, solve
from splitter.catalog.model import Limits

LONGEST_S = 3600.0
_STEP_S = 5.0
_MOST_STEPS = 24
_ROUNDING = 1e-6
_TIME_S, _TIME_SHARE = 0.1, 0.005


@dataclass(frozen=True, slots=True)
class Piece:
    """How a host treats an address from a moment on.

    Attributes:
        success: chance that a request is answered well.
        latency_s: of a request.
    """

    from_s: float
    success: float
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What a host gives.

    Attributes:
        per_address_per_s, total_per_s: its limits.
        pieces: by address, in the order of time, the first one from 0 on.
        thresholds: by address, where it has one.
    """

    per_address_per_s: float
    total_per_s: float
    pieces: Mapping[str, tuple[Piece, ...]]
    thresholds: Mapping[str, Block] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteWork:
    """What is to be fetched of a site.

    Attributes:
        site, engine: hosts.
        pages: different ones, in all.
        listed: how many tasks need so many result pages, of which the last one lists so many pages.
    """

    site: str
    engine: str
    pages: int
    listed: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A world as the bound sees it.

    Attributes:
        in_flight: requests of one address at once.
    """

    hosts: Mapping[str, Host]
    work: tuple[SiteWork, ...]
    in_flight: int

    @property
    def pages(self) -> int:
        """All that are there."""
        return sum(one.pages for one in self.work)


def facts_of(world: World, tasks: Iterable[TaskHits], in_flight: int) -> Facts:
    """What the bound needs to know of a world: from its lab profile, its catalog, and its tasks' hits."""
    conducts = Conducts(world.profile)
    moments = sorted({0.0, *(pair.from_s for pair in world.profile.pairs)})
    catalog = world.catalog
    places: list[tuple[str, str, HostRole, Limits | None]] = [
        (name, urlsplit(engine.url).hostname or "", "engine", engine.limits)
        for name, engine in catalog.engines.items()
    ]
    places += [(name, name, "site", site.limits) for name, site in catalog.sites.items()]
    hosts = {}
    for name, host, role, own in places:
        limits = own or catalog.limits
        seen = {
            address: [(t, conducts.find(address, host, role, t)) for t in moments]
            for address in world.addresses
        }
        blocks = {address: conduct[0][1].block for address, conduct in seen.items()}
        hosts[name] = Host(
            per_address_per_s=limits.per_address_per_s,
            total_per_s=limits.total_per_s,
            pieces={address: tuple(_piece(*each) for each in told) for address, told in seen.items()},
            thresholds={address: block for address, block in blocks.items() if block is not None},
        )
    by_site: dict[str, list[TaskHits]] = {}
    for task in tasks:
        by_site.setdefault(task.site, []).append(task)
    work = tuple(
        SiteWork(
            site=site,
            engine=told[0].engine,
            pages=len(frozenset().union(*(task.pages for task in told))),
            listed=Counter((task.result_pages, len(task.pages)) for task in told if task.pages),
        )
        for site, told in by_site.items()
    )
    return Facts(hosts=hosts, work=work, in_flight=in_flight)


def _piece(from_s: float, conduct: Conduct) -> Piece:
    success = 0.0 if conduct.dead else 1.0 - sum(conduct.faults.values()) - sum(conduct.lost.values())
    hangs = conduct.faults.get(LabAnswer.HANG, 0.0) == 1.0
    return Piece(from_s, 0.0 if hangs else max(0.0, success), sum(conduct.latency_ms) / 2000)


def pages_by(facts: Facts, t: float) -> float:
    """The most pages that can be stored on average in the first ``t`` seconds."""
    if t <= 0:
        return 0.0
    program = _Program(facts, t)
    return program.solved()


def times_of(facts: Facts, shares: Sequence[float]) -> list[float | None]:
    """When, to 0.1 s or 0.5 %, these shares of all pages can be stored; None: beyond `LONGEST_S`."""
    stored = cache(lambda t: pages_by(facts, t))
    return [_time_of(stored, share * facts.pages - _ROUNDING * max(1, facts.pages)) for share in shares]


def _time_of(stored: Callable[[float], float], wanted: float) -> float | None:
    """By bisection, of what can be stored by a time."""
    low, high = 0.0, 1.0
    while stored(high) < wanted:
        low, high = high, 2 * high
        if high > LONGEST_S:
            return None
    while high - low > max(_TIME_S, _TIME_SHARE * high):
        middle = (low + high) / 2
        low, high = (low, middle) if stored(middle) >= wanted else (middle, high)
    return round(high, 1)


def _edges(facts: Facts, t: float) -> list[float]:
    """Where time is cut: 0, t, where rates change, and even steps."""
    step_s = max(_STEP_S, t / _MOST_STEPS)
    even = {step_s * n for n in range(math.ceil(t / step_s))}
    changes = {
        piece.from_s for host in facts.hosts.values() for told in host.pieces.values() for piece in told
    }
    return sorted({edge for edge in even | changes if 0 <= edge < t} | {t})


class _Program:
    """The linear program up to one time; see the module for its formula."""

    def __init__(self, facts: Facts, t: float) -> None:
        self._steps = list(pairwise(_edges(facts, t)))
        self._program = Program(tries=0, pairs=0)
        self._sent = {
            (name, address): self._variables(
                [host.per_address_per_s * (end - begin) + 1 for begin, end in self._steps]
            )
            for name, host in facts.hosts.items()
            for address in host.pieces
        }
        self._facts = facts
        for name, host in facts.hosts.items():
            self._limit_host(name, host)
        self._limit_addresses()
        self._demand()

    def solved(self) -> float:
        """The greatest sum of pages."""
        return -solve(self._program)

    def _variables(self, most: Sequence[float], gain: float = 0.0) -> list[int]:
        """New variables, by step; none is negative."""
        columns: list[int] = self._program.columns(len(most), upper=np.array(most), cost=-gain).tolist()
        return columns

    def _at_most(self, terms: Sequence[tuple[int, float]], limit: float) -> None:
        columns, values = (np.array(part) for part in zip(*terms, strict=True))
        self._program.set(np.full(len(terms), self._program.rows(1, limit)), columns, values)

    def _limit_host(self, name: str, host: Host) -> None:
        by_address = {address: self._sent[name, address] for address in host.pieces}
        for place, (begin, end) in enumerate(self._steps):
            now = [(sent[place], 1.0) for sent in by_address.values()]
            so_far = [(column, 1.0) for sent in by_address.values() for column in sent[: place + 1]]
            self._at_most(now, host.total_per_s * (end - begin) + 1)
            self._at_most(so_far, host.total_per_s * end + 1)
            for address, sent in by_address.items():
                most = host.per_address_per_s * end + 1
                if (threshold := host.thresholds.get(address)) is not None:
                    most = min(most, threshold.requests * math.ceil(end / threshold.window_s))
                self._at_most([(column, 1.0) for column in sent[: place + 1]], most)

    def _limit_addresses(self) -> None:
        for address in dict.fromkeys(address for _, address in self._sent):
            taken: list[tuple[int, float]] = []
            for place, (_, end) in enumerate(self._steps):
                taken += [
                    (sent[place], self._piece(name, address, place).latency_s)
                    for (name, other), sent in self._sent.items()
                    if other == address
                ]
                longest_s = max(
                    piece.latency_s
                    for host in self._facts.hosts.values()
                    for piece in host.pieces.get(address, ())
                )
                self._at_most(taken, self._facts.in_flight * (end + longest_s))

    def _piece(self, host: str, address: str, place: int) -> Piece:
        pieces = self._facts.hosts[host].pieces[address]
        begin = self._steps[place][0]
        return next(piece for piece in reversed(pieces) if piece.from_s <= begin)

    def _successes(self, host: str, place: int) -> Iterator[tuple[int, float]]:
        """The terms of what succeeds at a host in a step, negative."""
        for address in self._facts.hosts[host].pieces:
            yield self._sent[host, address][place], -self._piece(host, address, place).success

    def _demand(self) -> None:
        asked: dict[str, list[tuple[float, list[int]]]] = {}
        for work in self._facts.work:
            stored = self._variables([math.inf] * len(self._steps), gain=1.0)
            listed = [
                (hits, count, requests, self._variables([math.inf] * len(self._steps)))
                for (requests, hits), count in work.listed.items()
            ]
            asked.setdefault(work.engine, []).extend(
                (requests, columns) for _, _, requests, columns in listed
            )
            for place in range(len(self._steps)):
                self._at_most([(stored[place], 1.0), *self._successes(work.site, place)], 0)
                so_far = [(column, 1.0) for column in stored[: place + 1]]
                there = [
                    (column, -float(hits))
                    for hits, _, _, columns in listed
                    for column in columns[: place + 1]
                ]
                self._at_most([*so_far, *there], 0)
            self._at_most([(column, 1.0) for column in stored], work.pages)
            for _, count, _, columns in listed:
                self._at_most([(column, 1.0) for column in columns], count)
        for engine, wanted in asked.items():
            for place in range(len(self._steps)):
                terms = [(columns[place], float(requests)) for requests, columns in wanted]
                self._at_most([*terms, *self._successes(engine, place)], 0)
