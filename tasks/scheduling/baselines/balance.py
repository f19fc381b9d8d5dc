"""The `balance` allocation: waiting URLs divided so that predicted run times end at once (2019 balance paper).

Every `REPLAN_S`, and whenever nodes come, go or are refused, the targets that wait of each kind are divided over the
nodes of that kind, exactly (`tasks.scheduling.balance.exact`), by each node's curve of run time over URLs: the trained
network's of its machine (`AllocationSettings.run_times`); without one the overhead of an attempt, then the node's
seconds per page pooled over sites. Slots divide a node's URLs evenly among them. In queue order, each subtask
then goes to the node with a free slot that has most left of its share, whatever the site, until shares are used up:
the sites at which a node is good play no part.

Assumed, as the paper leaves it open: kinds are divided one after the other, the one with the fewest nodes first, and
a node's share of one comes before its share of the next; a subtask for which no node with a share is left (its
nodes failed, a person asked for one) goes to any that may take it, or it would wait for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from tasks.domain.reasons import Explanation, Reason, because
from tasks.scheduling.balance.curves import Curve, Curves, linear
from tasks.scheduling.balance.exact import exact
from tasks.scheduling.baselines.dispatch import Baseline, DecisionContext
from tasks.scheduling.decision import REPLAN_S, AllocationSettings, Assignment, join_names
from tasks.scheduling.posterior import posterior
from tasks.scheduling.ready_queue import ReadyQueue, SubtaskGroup

_ANY_SITE = ("",)
"""Key of a node's own mean over all sites. No site has this name."""


class Balance(Baseline):
    """The strategy. It remembers its division, which it can repeat at any time."""

    def __init__(self, settings: AllocationSettings) -> None:
        super().__init__(settings)
        self._left: dict[str, Counter[str]] = {}

    def assign(self, context: DecisionContext) -> Iterator[Assignment]:
        """See `Baseline`."""
        ready = context.ready
        if ready.free and ready.waiting and self.is_outdated(context, REPLAN_S):
            self._left = _divide(context, self._settings.run_times)
        for group, able in context.choices():
            left = self._left.setdefault(group.first.kind, Counter())
            chosen = max(able, key=left.__getitem__)
            sharers = (name for name, share in left.items() if share > 0 and ready.may_take(group, name))
            if left[chosen] > 0 or not any(sharers):
                had = left.copy()
                left[chosen] -= group.pages
                yield context.give(group, chosen, partial(self._explain, had), had.__getitem__)

    def _explain(self, left: Counter[str], name: str) -> Explanation:
        if left[name] <= 0:
            return because(Reason.SHARE_USED)
        is_trained = name in self._settings.run_times
        return because(Reason.SHARE_LEFT_TRAINED if is_trained else Reason.SHARE_LEFT, targets=left[name])

    def why_held_back(self, ready: ReadyQueue, group: SubtaskGroup) -> Explanation | None:
        """Return the reason why the group waits: its nodes have used up their shares."""
        return because(Reason.SHARES_USED, nodes=join_names(ready.able(group)))


def _divide(context: DecisionContext, run_times: Mapping[str, Curve]) -> dict[str, Counter[str]]:
    """Return the targets a node may still get, by kind and node; below 0 if its last subtask was larger than that."""
    ready, totals = context.ready, Counter[str]()
    for site, waits in ready.backlog.items():
        totals[ready.sites[site].kind] += waits.left
    names = list(ready.nodes)
    belief = posterior(context.knowledge, context.now_s, _ANY_SITE, names).mean()
    curves = {
        name: _slots_curve(
            run_times.get(name) or linear(float(belief.overhead_s[0, 0]), page_s), ready.nodes[name].slots
        )
        for name, page_s in zip(names, belief.seconds_per_page[0].tolist(), strict=True)
    }
    able = {kind: [name for name in names if kind in ready.nodes[name].kinds] for kind in totals}
    left: dict[str, Counter[str]] = {}
    for kind in sorted(totals, key=lambda kind: (len(able[kind]), kind)):
        if not able[kind]:
            continue
        of_kind = Curves([curves[name] for name in able[kind]])
        counts = exact(of_kind, totals[kind])
        seconds = of_kind.drop_idle().seconds(counts).tolist()
        left[kind] = Counter(dict(zip(able[kind], counts.tolist(), strict=True)))
        for name, after_s in zip(able[kind], seconds, strict=True):
            if left[kind][name]:
                curves[name] = _remaining_curve(curves[name], left[kind][name], after_s)
    return left


def _slots_curve(curve: Curve, slots: int) -> Curve:
    """Return the curve of a node with `slots` slots, given the curve of one slot."""
    many = max(1, slots)
    points = tuple((n * many, seconds) for n, seconds in curve.points)
    return replace(curve, points=points, seconds_per_url=curve.seconds_per_url / many)


def _remaining_curve(curve: Curve, count: int, seconds: float) -> Curve:
    """Return a node's curve for further URLs, after `count` URLs that take `seconds`."""
    later = ((n - count, s) for n, s in curve.points if n > count)
    return replace(curve, points=((0.0, seconds), *later), idle_s=0.0)
