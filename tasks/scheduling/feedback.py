"""The `feedback` allocation: what earlier attempts revealed decides where a subtask goes.

1. The rules of the ready queue (`tasks.scheduling.ready_queue`): kind, rests, failures, requests by a person, capacity.
2. Priority levels strictly one after the other: a lower one gets what a higher one leaves.
3. A (site, node) is worth its expected pages per second of a slot (`tasks.scheduling.posterior`: completion rate
   and efficiency together, 2014 paper, allocation 2 and 3), drawn from its posterior, so that exploring is built in.
4. These rates and all that waits make a fluid plan (`tasks.scheduling.fluid`), every `replan_s` and whenever sites,
   nodes or rests change; how long a draw is kept, `tasks.scheduling.scores` says. A free slot goes to the planned site
   of its node that yields most now, compared with what the best node would make of it, unless it had much more of
   that site already than the plan gives it. So of one site a node that is fast at pages takes the large subtasks, and
   a slow one the small, where the overhead of an attempt counts for more. A host that refused a node is given fewer
   attempts of it for a while (`tasks.scheduling.pair_backoff`).
5. A node is given only what is done sooner by it than by waiting for better ones: the plan pours, a subtask can't be
   divided. Where nothing planned waits it takes other work by the same rule: of that, what it is comparatively best
   at. So the end of a backlog is not left to a node that takes ten times as long
   (the paper: where the efficiency is too poor, similar tasks no longer go to that node).
"""

from __future__ import annotations

from random import Random

from tasks.scheduling.decision import (
    MOST_TOLD,
    AllocationSettings,
    Assignment,
    Candidate,
    candidates,
    why_busy,
)
from tasks.scheduling.pair_backoff import PairBackoff
from tasks.scheduling.planner import Outlook, look_ahead
from tasks.scheduling.ready_queue import Group, Level, ReadyQueue
from tasks.scheduling.scores import Scores
from tasks.scheduling.statistics import HALF_LIFE_S, Knowledge

_SOON = 0.1
"""Share of `replan_s` after which a plan that fits no longer is made anew."""

_MANY_PAIRS = 10_000
"""With more pairs than this, plans are made less often: a plan's cost grows with their number."""

_SELDOM = 5.0
"""At most so many times less often."""


class Feedback:
    """The strategy; it remembers its plan, which it can make anew at any time, and who was refused not long ago."""

    split = None

    def __init__(self, settings: AllocationSettings) -> None:
        self._settings = settings
        self._outlook: Outlook | None = None
        self._backoff = PairBackoff(HALF_LIFE_S)
        self._scores = Scores()
        self._now_s = 0.0

    def decide(
        self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random, *, tell: bool = False
    ) -> list[Assignment]:
        """Give waiting subtasks to nodes by the module's rules. Arguments: see `AllocationStrategy`."""
        given: list[Assignment] = []
        if not ready.free or not ready.waiting:
            return given
        self._now_s = now_s
        self._backoff.look(ready, now_s)
        outlook = self._current(ready, knowledge, now_s, rng)
        for level in ready.levels():
            for node in list(ready.free):
                if outlook.idle.get(node) == ready.changes:
                    continue
                while node in ready.free and level.sites:
                    group = self._pick(ready, level, node, outlook)
                    if group is None and outlook.shares.get(node) and self._old(outlook, now_s):
                        # What was planned for it is used up: a newer plan may have something.
                        outlook = self._replan(ready, knowledge, now_s, rng)
                        group = self._pick(ready, level, node, outlook)
                    if group is None:
                        break
                    given.append(self._give(ready, knowledge, now_s, group, node, outlook, tell))
            if not ready.free:
                break
        if not self._backoff.held_back():  # who only waits for time to pass looks again
            for node in ready.free:
                outlook.idle[node] = ready.changes
        return given

    def holds_back(self, ready: ReadyQueue, group: Group) -> str | None:
        """Which free nodes would take longer than waiting does, or were refused not long ago."""
        outlook, hosts = self._outlook, group.first.hosts
        free = [name for name in ready.free if ready.takes(group, name)]
        if outlook is None or not free:
            return None
        calm = [name for name in free if self._backoff.allows(hosts, name, self._now_s, ready)]
        if not calm:
            return f"held back: {', '.join(hosts)} refused {', '.join(free[:5])} not long ago"
        known = [name for name in calm if outlook.knows(group.first.site, name)]
        if not known:
            return None
        rates = ", ".join(f"{outlook.rate(group, name):.3g} on {name}" for name in known[:5])
        best = outlook.best[outlook.sites[group.first.site]]
        return f"done sooner by waiting: {rates} pages/s, others reach {best:.3g}"

    def _current(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> Outlook:
        """The plan in force; a new one where it is too old, or not for these sites and nodes."""
        outlook = self._outlook
        if outlook is None:
            return self._replan(ready, knowledge, now_s, rng)
        age_s = now_s - outlook.at_s
        if (
            age_s >= outlook.lasts_s
            or age_s < 0
            or (outlook.seen != ready.version and self._old(outlook, now_s))
        ):
            return self._replan(ready, knowledge, now_s, rng)
        if any(name not in outlook.nodes for name in ready.free):
            return self._replan(ready, knowledge, now_s, rng)
        return outlook

    def _old(self, outlook: Outlook, now_s: float) -> bool:
        return now_s - outlook.at_s >= _SOON * self._settings.replan_s

    def _replan(self, ready: ReadyQueue, knowledge: Knowledge, now_s: float, rng: Random) -> Outlook:
        pairs = len(ready.sites) * len(ready.nodes)
        lasts_s = self._settings.replan_s * min(_SELDOM, max(1.0, pairs / _MANY_PAIRS))
        self._outlook = look_ahead(
            ready, knowledge, now_s, rng, self._settings, self._backoff, self._scores, lasts_s
        )
        return self._outlook

    def _pick(self, ready: ReadyQueue, level: Level, node: str, outlook: Outlook) -> Group | None:
        """What of a level the node should be given next; None: nothing."""
        best: tuple[tuple[bool, float], Group] | None = None
        for site in outlook.shares.get(node, ()):
            groups = level.sites.get(site, ())
            in_time = bool(groups) and not outlook.hasty(site, node, self._now_s)
            for group in groups:
                key = in_time, outlook.worth(group, node, self._settings.scarcity)
                if best is not None and key <= best[0]:
                    continue  # cheaper to know than whether it takes
                if self._takes(ready, group, node) and outlook.sooner(ready, group, node):
                    best = key, group
        return best[1] if best is not None else self._other(ready, level, node, outlook)

    def _other(self, ready: ReadyQueue, level: Level, node: str, outlook: Outlook) -> Group | None:
        """Work that is not planned for the node but done sooner by it than by waiting (rule 5)."""
        for site in outlook.strongest(node):
            for group in level.sites.get(site, ()):
                if self._takes(ready, group, node) and outlook.sooner(ready, group, node):
                    return group
        for site, groups in level.sites.items():
            if site in outlook.sites:
                continue
            for group in groups:  # new since the plan was made: nothing is known that speaks against it
                if self._takes(ready, group, node):
                    return group
        return None

    def _takes(self, ready: ReadyQueue, group: Group, node: str) -> bool:
        return ready.takes(group, node) and self._backoff.allows(group.first.hosts, node, self._now_s, ready)

    def _give(
        self,
        ready: ReadyQueue,
        knowledge: Knowledge,
        now_s: float,
        group: Group,
        node: str,
        outlook: Outlook,
        tell: bool,
    ) -> Assignment:
        site, score, others = group.first.site, None, []
        if outlook.knows(site, node):
            score, others = outlook.rate(group, node), outlook.fastest(site)[:MOST_TOLD] if tell else []
            self._backoff.begun(group.first.hosts, node, now_s, outlook.seconds(group, node))
            outlook.gave(group, node)
        forgiven = ready.forgiven(group)
        told: tuple[Candidate, ...] = ()
        if tell:
            told = candidates(
                ready,
                knowledge,
                now_s,
                group,
                lambda name: self._note(ready, group, name, node, outlook),
                [node, *others],
            )
        return Assignment(ready.take(group, node), node, score, forgiven if forgiven == node else None, told)

    def _note(
        self, ready: ReadyQueue, group: Group, name: str, chosen: str, outlook: Outlook
    ) -> tuple[str, float | None]:
        """Why a node was or was not chosen for a group, and its score."""
        if not outlook.knows(group.first.site, name):
            new = "chosen: nothing is known of its site yet"
            return (new if name == chosen else why_busy(ready, group, name)), None
        score = outlook.rate(group, name)
        here = group.first.site in outlook.shares.get(name, ())
        if name == chosen:
            how = "planned here" if here else "nothing planned for it waits, and it is sooner done by it"
            return f"chosen: {score:.3g} pages/s of a slot, {how}" + _history(group, name), score
        if not ready.takes(group, name):
            return f"{why_busy(ready, group, name)} ({score:.3g} pages/s here)", score
        if not self._backoff.allows(group.first.hosts, name, self._now_s, ready):
            return f"{score:.3g} pages/s, but it was refused here not long ago", score
        if here:
            return f"{score:.3g} pages/s: planned here too, another was first", score
        return f"{score:.3g} pages/s: worth more at other sites, by the plan", score


def _history(group: Group, chosen: str) -> str:
    if group.first.assigned == chosen:
        return "; a person asked for it"
    return "; its failure is forgiven, nobody else is left" if chosen in group.first.failed_on else ""
