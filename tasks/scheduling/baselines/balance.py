"""The `balance` allocation: waiting URLs divided so that predicted run times end together (2019 balance paper).

Every `replan_s`, and whenever nodes come, go or are refused, the targets that wait of each kind are divided over the
nodes of that kind, exactly (`tasks.scheduling.balance.exact`), by each node's curve of run time over URLs. In queue
order, each subtask then goes to the node with a free slot that has most left of its share, whatever the site, until
shares are used up: what a node is good at plays no part.

Curves: as a trained network predicts them (`curve_of`), else as observed: the overhead of an attempt, then the
node's seconds per page pooled over sites, divided by its slots. Assumed where the paper says nothing: kinds are divided
one after the other, the one with the fewest nodes first, and what a node got of one comes before what it gets of the
next; a subtask for which no node with a share is left (its nodes failed, a person asked for one) goes to any that
may run it, or it would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random

from tasks.domain.views import NodeView
from tasks.scheduling import posterior as estimate
from tasks.scheduling.balance.curves import Curve, Curves, linear
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.baselines.dispatch import Choice, DecisionContext, push
from tasks.scheduling.decision import AllocationSettings, Assignment
from tasks.scheduling.ready_queue import Group, ReadyQueue
from tasks.scheduling.statistics import Knowledge

_ANY_SITE = ("",)
"""No site is called so: what is expected of it is the node's own mean over all sites."""


@dataclass(slots=True)
class _Shares:
    """A division in force.

    Attributes:
        left: targets a node may still be given, by kind and node; below 0 where its last subtask was larger than that.
        seen: the ready queue's version it was made for.
    """

    at_s: float
    left: dict[tuple[str, str], int]
    seen: int


class Balance:
    """The strategy; it remembers its division, which it can make anew at any time."""

    split = None

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._shares: _Shares | None = None

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """See `AllocationStrategy`."""
        if not ready.free or not ready.waiting:
            return []
        context = DecisionContext(ready, knowledge, now_s, rng, tell)
        left = self._divided(context).left
        return push(context, lambda group: _choose(context, left, group))

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Whose shares are used up."""
        if self._shares is None:
            return None
        names = ", ".join([name for name in ready.free if ready.takes(group, name)][:5])
        return f"the share of {names} is used up; others have some of theirs left"

    def _divided(self, context: DecisionContext) -> _Shares:
        shares, ready = self._shares, context.ready
        fits = shares is not None and shares.seen == ready.version
        if shares is not None and fits and 0 <= context.now_s - shares.at_s < self._settings.replan_s:
            return shares
        nodes = list(ready.nodes.values())
        curves = self._curves(context.knowledge, context.now_s, nodes)
        self._shares = _Shares(context.now_s, _divide(ready, nodes, curves), ready.version)
        return self._shares

    def _curves(self, knowledge: Knowledge, now_s: float, nodes: Sequence[NodeView]) -> list[Curve]:
        if self._settings.curve_of is not None:
            return [self._settings.curve_of(node) for node in nodes]
        names = [node.name for node in nodes]
        belief = estimate.posterior(knowledge, now_s, _ANY_SITE, names, self._settings.estimate).mean()
        overhead_s, each_s = float(belief.overhead_s[0, 0]), belief.seconds_per_page[0].tolist()
        return [
            linear(overhead_s, page_s / max(1, node.slots))
            for node, page_s in zip(nodes, each_s, strict=True)
        ]


def _divide(ready: ReadyQueue, nodes: Sequence[NodeView], curves: list[Curve]) -> dict[tuple[str, str], int]:
    """Targets by kind and node: each kind's over its nodes, by curves that begin after what they got before."""
    totals: dict[str, int] = {}
    for site, waits in ready.backlog.items():
        kind = ready.sites[site].kind
        totals[kind] = totals.get(kind, 0) + waits.left
    able = {kind: [place for place, node in enumerate(nodes) if kind in node.kinds] for kind in totals}
    left: dict[tuple[str, str], int] = {}
    for kind in sorted(totals, key=lambda kind: (len(able[kind]), kind)):
        if not able[kind]:
            continue
        its = Curves([curves[place] for place in able[kind]])
        counts = exact(its, totals[kind])
        for place, count, seconds in zip(
            able[kind], counts.tolist(), its.without_idle().seconds(counts).tolist(), strict=True
        ):
            left[kind, nodes[place].name] = count
            if count:
                curves[place] = _after(curves[place], count, seconds)
    return left


def _after(curve: Curve, count: int, seconds: float) -> Curve:
    """What more URLs take a node that has got so many, which take it so long."""
    return replace(
        curve, points=((0.0, seconds), *((n - count, s) for n, s in curve.points if n > count)), idle_s=0.0
    )


def _choose(context: DecisionContext, left: dict[tuple[str, str], int], group: Group) -> Choice | None:
    ready, kind = context.ready, group.first.kind
    able = context.able(group)
    if not able:
        return None
    chosen = max(able, key=lambda name: left.get((kind, name), 0))
    if left.get((kind, chosen), 0) <= 0 and any(
        left.get((kind, name), 0) > 0 and ready.may(group, name) for name in ready.nodes
    ):
        return None
    had = {name: max(0, left.get((kind, name), 0)) for name in ready.nodes} if context.tell else {}
    left[kind, chosen] = left.get((kind, chosen), 0) - group.pages
    return Choice(chosen, _reason(chosen, had), had.get if context.tell else None)


def _reason(chosen: str, had: dict[str, int]) -> Callable[[str], str]:
    def reason(name: str) -> str:
        share = f"{had[name]} targets of its share are left" if had[name] else "its share is used up"
        if name != chosen:
            return share
        return f"chosen: {share}" + ("" if had[name] else ", and so are those of all that may run it")

    return reason
