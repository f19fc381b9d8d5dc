"""Stretches of time in which nothing changes for a node, and what each (site, node) costs and gives in them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from research.simulator.world import LANES, MOST_ATTEMPTS, Course, World

SILENT_S = 60.0
"""Seconds that a hanging attempt holds its slot."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """(site, piece) that can give a page; arrays of equal length.

    Attributes:
        piece: of which class of nodes, when.
        completion: chance that a page that is tried and not blocked is collected.
        per_attempt_s: expected seconds of slots spent for one attempt that comes to try pages, pages apart.
        most_per_s, most_at_once: pages that count are at most rate x time + so many, for each node; inf: any.
    """

    site: Ints
    piece: Ints
    seconds_per_page: Floats
    completion: Floats
    per_attempt_s: Floats
    most_per_s: Floats
    most_at_once: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """By piece: a class of equal nodes in an interval; and the pairs in them.

    Attributes:
        nodes, slots: of the class, in all.
        length_s, end_s: of the piece.
        interval: its interval of the common grid.
        crossing: pieces that the next one goes on from.
        spill_s: slot seconds by which what is begun in the piece may reach into the next.
        interval_s: length of each interval of the grid; the last is infinite where there is no end.
        attempts_per_slot: that a node has at work at once, at the most.
    """

    nodes: Floats
    slots: Floats
    length_s: Floats
    end_s: Floats
    interval: Ints
    crossing: Ints
    spill_s: Floats
    interval_s: Floats
    pairs: Pairs
    attempts_per_slot: float

    @property
    def count(self) -> int:
        """Number of pieces."""
        return len(self.length_s)

    def slack_s(self, largest: Floats) -> Floats:
        """Slot seconds a piece gains by attempts that began, and paid for it, before it.

        Args:
            largest: pages of the largest attempt by site.
        """
        pairs = self.pairs
        pages = np.minimum(largest[pairs.site], self.length_s[pairs.piece] / pairs.seconds_per_page + 1.0)
        credit = pairs.per_attempt_s * pages / largest[pairs.site]
        most = np.zeros(self.count)
        np.maximum.at(most, pairs.piece, credit)
        entered = np.zeros(self.count)
        entered[self.crossing + 1] = 1.0
        return np.asarray(most * entered * self.slots * self.attempts_per_slot, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Class:
    """Nodes that differ in nothing."""

    nodes: list[int]
    courses: list[Course]
    spans: list[tuple[float, float]]


def pieces_of(world: World, first_s: Mapping[int, float], checkpoints: list[float]) -> Pieces:
    """All pieces of a scenario.

    Args:
        world: the scenario.
        first_s: by site that has tasks, when the first is there.
        checkpoints: moments that every node's pieces end at, too.
    """
    scenario = world.scenario
    end_s = np.inf if scenario.duration_s is None else scenario.duration_s
    classes = _classes(world, sorted(first_s), end_s)
    own = [_moments(one, first_s, end_s) | set(checkpoints) for one in classes]
    common = scenario.until_done or any(site.spec.total_per_s is not None for site in world.sites)
    grid = sorted(set().union(*own) | {0.0, end_s}) if common else [0.0, end_s]
    at_work = MOST_ATTEMPTS if world.crowds else 1
    working = 1 if scenario.shared_slots else at_work  # at the same time, of a slot
    rows: list[tuple[float, float, float, float, int, bool, float]] = []
    columns: list[tuple[float, ...]] = []
    for one, moments in zip(classes, own, strict=True):
        slots = float(working * sum(world.nodes[n].spec.slots for n in one.nodes))
        for begin, until in one.spans:
            cuts = sorted({begin, until, *(t for t in (grid if common else moments) if begin < t < until)})
            for a, b in itertools.pairwise(cuts):
                ends = until < np.inf and a >= until - SILENT_S
                made = _columns(world, one, first_s, len(rows), a, b, ends)
                spill = max((c[7] for c in made), default=0.0)
                interval = int(np.searchsorted(grid, a, side="right")) - 1
                spill_s = spill * slots * at_work / working
                rows.append((float(len(one.nodes)), slots, b - a, b, interval, b < until, spill_s))
                columns += [c[:7] for c in made]
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 7).T
    data = np.array(columns, dtype=np.float64).reshape(len(columns), 7).T
    return Pieces(
        nodes=table[0],
        slots=table[1],
        length_s=table[2],
        end_s=table[3],
        interval=table[4].astype(np.int64),
        crossing=np.flatnonzero(table[5]),
        spill_s=table[6],
        interval_s=np.diff(np.array(grid)),
        attempts_per_slot=at_work / working,
        pairs=Pairs(
            site=data[0].astype(np.int64),
            piece=data[1].astype(np.int64),
            seconds_per_page=data[2],
            completion=data[3],
            per_attempt_s=data[4],
            most_per_s=data[5],
            most_at_once=data[6],
        ),
    )


def _classes(world: World, sites: list[int], end_s: float) -> list[_Class]:
    found: dict[tuple[object, ...], _Class] = {}
    for number, node in enumerate(world.nodes):
        courses = [world.course(site, number) for site in sites]
        spans = node.alive(end_s)
        key = (*map(id, courses), tuple(spans), node.spec.all_kinds, node.spec.slots)
        found.setdefault(key, _Class([], courses, spans)).nodes.append(number)
    return list(found.values())


def _moments(one: _Class, first_s: Mapping[int, float], end_s: float) -> set[float]:
    """When something changes for a class of nodes."""
    moments = {t for span in one.spans for t in span} | set(first_s.values())
    hangs = False
    for course in set(one.courses):
        moments |= set(course.from_s)
        hangs = hangs or any(rates.hang > 0 for rates in course.rates)
    if hangs:  # what hangs in a span's last minute is not paid for in full
        moments |= {until - SILENT_S for _, until in one.spans}
    return {t for t in moments if 0 <= t < end_s}


def _columns(
    world: World, one: _Class, first_s: Mapping[int, float], piece: int, a: float, b: float, ends: bool
) -> list[tuple[float, ...]]:
    """The piece's pairs: the fields of `Pairs`, and the most seconds of work that an attempt may have begun there."""
    until_done = world.scenario.until_done
    made: list[tuple[float, ...]] = []
    for site, course in zip(sorted(first_s), one.courses, strict=True):
        rates = course.rates[course.at(a)]
        hang = min(rates.hang, 1.0 - rates.fail)
        productive = 1.0 - rates.fail - hang
        if first_s[site] >= b or productive <= 1e-12 or not world.eligible(site, one.nodes[0]):
            continue
        spec = world.sites[site].spec
        paid_s = 0.0 if ends else SILENT_S
        attempt_s = ((1.0 - hang) * spec.overhead_s + hang * paid_s) / productive
        begun = LANES if spec.per_address_per_s is not None or spec.total_per_s is not None else 1
        lasts_s = max(begun * rates.seconds_per_page, spec.overhead_s, paid_s if hang else 0.0)
        rate, at_once = np.inf, np.inf
        if spec.per_address_per_s is not None:
            rate, at_once = spec.per_address_per_s, 1.0
        free = (rate, at_once)
        if rates.block is not None and rates.block.most_per_s < rate:
            rate, at_once = rates.block.most_per_s, float(rates.block.pages)
        common = (float(site), float(piece), rates.seconds_per_page)
        if rates.completion > 0 or until_done:
            made.append((*common, rates.completion, attempt_s, rate, at_once, lasts_s))
        if until_done and rates.block is not None:  # pages tried in vain count as tries
            made.append((*common, 0.0, attempt_s, *free, lasts_s))
    return made
