"""The `feedback` allocation: what earlier attempts revealed decides where a subtask goes.

The rules, in this order:

1. Kind, rests, failures, requests by a person and capacity, as `tasks.strategies.round` has them.
2. Priority levels strictly one after the other: a lower one gets what a higher one leaves.
3. Within a level a (site, node) is worth its expected pages per second of a slot
   (`tasks.strategies.estimate`: completion rate and efficiency together), drawn from its posterior, so that
   exploring is built in.
4. Worth is set against what is lost by it. A page of a site whose best node is slow costs more to get
   elsewhere, so index = draw / (best mean yield of any node that may run it) ** scarcity. And nodes choose
   in the order of their regret, the gap between the index of a node's best group and of its second best:
   who loses most by coming late chooses first (Vogel's approximation of the transportation problem;
   Reinfeld and Vogel, 1958). With plenty of work each node gets its own best; where work or a host's room
   is scarce, nodes don't take from each other what they need less.
5. No slot stays idle while there is work it may do, but for one case, the paper's "where the efficiency is
   too poor, similar tasks no longer go to that node": its drawn yield is below `poor_fraction` of the best
   other node's, and the subtask would be done sooner by waiting: its pages take the poor node longer than
   the nodes that are not poor here need for all that waits like it, plus one turn on the best. The draw
   lets a pair in again every now and then, more often as its old failures fade.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tasks.model import HostView, NodeView, PairStats, SubtaskView
from tasks.strategies.decision import Allocation, AllocationSettings, Assignment
from tasks.strategies.estimate import Estimates
from tasks.strategies.round import Group, Round


@dataclass(frozen=True, slots=True)
class _Prospect:
    """What a group promises.

    Attributes:
        index: by node with a free slot that is not too poor: what groups are compared by (rule 4).
        poor: by node that is too poor, why.
    """

    index: dict[str, float] = field(default_factory=dict)
    poor: dict[str, str] = field(default_factory=dict)


def allocate(
    subtasks: Sequence[SubtaskView],
    nodes: Sequence[NodeView],
    hosts: Mapping[str, HostView],
    stats: Mapping[tuple[str, str], PairStats],
    settings: AllocationSettings,
    rng: Random,
) -> Allocation:
    """Give waiting subtasks to nodes by the module's rules. Arguments: see `AllocationStrategy`."""
    play = Round(subtasks, nodes, hosts, stats)
    judge = _Judge(play, Estimates(stats, settings.estimate), settings, rng)
    assignments: list[Assignment] = []
    held_back: dict[int, str] = {}
    for level in play.levels:
        if not any(play.free.values()):
            break
        ready = [group for group in level.groups if _startable(play, group)]
        prospects = {id(group): judge.prospect(group) for group in ready}
        for group, node in _match(play, ready, prospects):
            assignments += _give(play, group, node, judge, prospects[id(group)])
        for group in ready:
            if group.count and _startable(play, group):
                held_back[id(group)] = "; ".join(prospects[id(group)].poor.values())
    return Allocation(tuple(assignments), play.left_over(held_back))


def _startable(play: Round, group: Group) -> bool:
    return any(play.takes(group, node.name) for node in group.eligible)


class _Judge:
    """Values sites on nodes, once a round each, so that groups of one site compare fairly.

    Yields are those of attempts of the mean size that waits of a site, up to `typical_pages`.
    """

    def __init__(self, play: Round, estimates: Estimates, settings: AllocationSettings, rng: Random) -> None:
        self._play = play
        self._estimates = estimates
        self._settings = settings
        self._rng = rng
        self._expected: dict[tuple[str, str], float] = {}
        self._drawn: dict[tuple[str, str], float] = {}
        self._pages = _mean_pages(play, settings.typical_pages)

    def expected(self, site: str, node: str) -> float:
        """Pages per second of a slot by the posterior's means."""
        rate = self._expected.get((site, node))
        if rate is None:
            rate = self._estimates.posterior(site, node).mean().rate(self._pages[site])
            self._expected[site, node] = rate
        return rate

    def drawn(self, site: str, node: str) -> float:
        """Pages per second of a slot by a draw from the posterior."""
        rate = self._drawn.get((site, node))
        if rate is None:
            rate = self._estimates.posterior(site, node).draw(self._rng).rate(self._pages[site])
            self._drawn[site, node] = rate
        return rate

    def scores(self, group: Group) -> dict[str, float]:
        """By eligible node, pages per second of a slot: as drawn, where a slot was free, else as expected."""
        site = group.first.site
        return {
            node.name: self.drawn(site, node.name) if node.free > 0 else self.expected(site, node.name)
            for node in group.eligible
        }

    def prospect(self, group: Group) -> _Prospect:
        """Index and poor nodes of a group (rules 3 to 5)."""
        site, found, free = group.first.site, _Prospect(), self._play.free
        expected = {node.name: self.expected(site, node.name) for node in group.eligible}
        best = max(expected.values())
        worth = best**-self._settings.scarcity
        for name in expected:
            if not free[name]:
                continue
            score = self.drawn(site, name)
            poor = None
            if score < self._settings.poor_fraction * best and group.first.assigned is None:
                poor = self._too_poor(group, name, score, expected)
            if poor:
                found.poor[name] = poor
            else:
                found.index[name] = score * worth
        return found

    def _too_poor(self, group: Group, node: str, score: float, expected: Mapping[str, float]) -> str | None:
        """Why the node should rather stay idle than take the group (rule 5); None where it should not."""
        pages, fraction = self._pages[group.first.site], self._settings.poor_fraction
        best = max((rate for name, rate in expected.items() if name != node), default=0.0)
        if score >= fraction * best:
            return None
        together = sum(
            expected[one.name] * max(1, one.slots)
            for one in group.eligible
            if one.name != node and expected[one.name] >= fraction * best
        )
        if pages / max(score, 1e-9) <= group.left / together + pages / best:
            return None
        return f"too poor on {node}: {score:.3g} pages/s, others reach {best:.3g} and will be done sooner"


def _mean_pages(play: Round, most: int) -> dict[str, float]:
    """By site, mean number of targets left of what waits, in [1, most]."""
    sums: dict[str, tuple[int, int]] = {}
    for level in play.levels:
        for group in level.groups:
            left, count = sums.get(group.first.site, (0, 0))
            sums[group.first.site] = left + group.left, count + len(group.ids)
    return {site: min(max(1.0, left / count), float(most)) for site, (left, count) in sums.items()}


def _match(
    play: Round, groups: Sequence[Group], prospects: Mapping[int, _Prospect]
) -> Iterator[tuple[Group, str]]:
    """Nodes choose groups in the order of their regret, until no group fits a free slot (rule 4).

    Whoever reads a pair gives the node as many of the group as it, the group and their hosts allow.
    """
    wishes: dict[str, list[tuple[float, Group]]] = {}
    for group in groups:
        for name, index in prospects[id(group)].index.items():
            wishes.setdefault(name, []).append((index, group))
    for wish in wishes.values():
        wish.sort(key=lambda entry: -entry[0])
    turn: list[tuple[float, str]] = []
    while wishes:
        if not turn:
            turn = sorted((_regret(play, name, wish), name) for name, wish in wishes.items())
        _, name = turn.pop()
        if not wishes[name]:
            del wishes[name]
            continue
        group = wishes[name][0][1]
        yield group, name
        if not play.free[name]:
            del wishes[name]
        if not group.count or not play.room(group):
            turn = []  # others may have lost their best or second best: regrets change


def _regret(play: Round, node: str, wish: list[tuple[float, Group]]) -> float:
    """Gap between the node's best and second best group; groups that are used up are dropped on the way."""
    while wish and not play.takes(wish[0][1], node):
        del wish[0]
    while len(wish) > 1 and not play.takes(wish[1][1], node):
        del wish[1]
    if not wish:
        return 0.0
    return wish[0][0] - (wish[1][0] if len(wish) > 1 else 0.0)


def _give(play: Round, group: Group, chosen: str, judge: _Judge, prospect: _Prospect) -> list[Assignment]:
    """Give the node as many of the group as it, the group and their hosts allow."""
    scores, notes = judge.scores(group), dict(prospect.poor)
    for node in group.eligible:
        name, score = node.name, scores[node.name]
        if name == chosen:
            notes[name] = f"chosen: {score:.3g} pages/s of a slot" + _history(group, name)
        elif node.free <= 0:
            notes[name] = f"busy: no free slot ({score:.3g} pages/s here)"
        elif not play.free[name]:
            notes[name] = f"its slots went to work it is better at ({score:.3g} pages/s here)"
        elif name not in notes:
            less = "less than the one chosen" if score < scores[chosen] else "but is worth more elsewhere"
            notes[name] = f"{score:.3g} pages/s: {less}"
    candidates = play.candidates(group, scores, notes)
    forgiven = chosen if chosen == group.forgiven else None
    return [
        Assignment(play.take(group, chosen), chosen, scores[chosen], forgiven, candidates)
        for _ in range(play.takes(group, chosen))
    ]


def _history(group: Group, chosen: str) -> str:
    if group.first.assigned == chosen:
        return "; a person asked for it"
    return "; its failure is forgiven, nobody else is left" if group.forgiven == chosen else ""
