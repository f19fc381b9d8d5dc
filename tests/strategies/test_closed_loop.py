"""The loop in small: attempts with fixed rates in virtual time, so that what allocation learns shows in pages."""

import heapq
from dataclasses import dataclass
from random import Random

import pytest

from tasks.control import AttemptResult, Outcome, fade, fold
from tasks.model import NodeView, PairStats, Reason, SubtaskView
from tasks.strategies import ALLOCATION
from tasks.strategies.decision import AllocationSettings
from tasks.strategies.recall import Recall, RecallSettings, after_failure

SITES = ("12315.com", "315tousu.org", "t.163.com", "cca.org.cn", "weibo.com")
PAGES, WINDOW = 20, 200


@dataclass(frozen=True)
class Rates:
    seconds: float = 1.2
    completion: float = 0.45
    fail: float = 0.03
    hang: float = 0.005
    overhead: float = 1.0


# Each node is good at the two sites it ends good at in figure 4 of the 2014 paper; all else is the default.
GOOD = {
    ("node1", "12315.com"): Rates(0.5, 0.9),
    ("node1", "315tousu.org"): Rates(0.6, 0.7),
    ("node2", "12315.com"): Rates(0.6, 0.75),
    ("node2", "t.163.com"): Rates(0.4, 0.93),
    ("node3", "315tousu.org"): Rates(0.5, 0.93),
    ("node3", "t.163.com"): Rates(0.5, 0.7),
    ("node4", "cca.org.cn"): Rates(0.7, 0.75),
    ("node4", "weibo.com"): Rates(0.4, 0.93),
}


class Loop:
    """Four nodes of two slots each, five sites with more work than they can do."""

    def __init__(self, strategy, rates, seed, half_life_s=3600.0):
        self.allocate, self.rates, self.half_life_s = ALLOCATION[strategy], rates, half_life_s
        self.chance, self.rng = Random(seed), Random(seed + 1)
        self.stats, self.written = {}, {}
        self.free = {f"node{number}": 2 for number in range(1, 5)}
        self.queue = [(number, SITES[number % 5], ()) for number in range(4000)]
        self.delayed, self.running, self.now = [], [], 0.0
        self.pages = self.attempts = self.manual = 0
        self.recalls = {}

    def run(self, until_s):
        while True:
            self.give()
            if not self.running or self.running[0][0] > until_s:
                return self
            self.now, _, number, result, failed_on = heapq.heappop(self.running)
            self.close(number, result, failed_on)

    def give(self):
        waiting = self.queue[:WINDOW]
        views = [
            SubtaskView(number, site, "meta", (site,), PAGES, 0, failed_on)
            for number, site, failed_on in waiting
        ]
        nodes = [NodeView(name, frozenset({"meta"}), free, 2) for name, free in self.free.items()]
        known = {
            pair: fade(stats, self.now - self.written[pair], self.half_life_s)
            for pair, stats in self.stats.items()
        }
        decision = self.allocate(views, nodes, {}, known, AllocationSettings(), self.rng)
        given = {one.subtask_id: one.node for one in decision.assignments}
        for entry in waiting:
            if entry[0] in given:
                self.queue.remove(entry)
                self.start(entry, given[entry[0]])

    def start(self, entry, node):
        number, site, failed_on = entry
        self.free[node] -= 1
        self.attempts += 1
        rates = self.rates.get((node, site), Rates())
        if self.chance.random() < rates.fail:
            taken = rates.overhead
            result = AttemptResult(site, node, Outcome.FAILED, PAGES, active_s=taken)
        elif self.chance.random() < rates.hang:
            taken = 60.0
            result = AttemptResult(site, node, Outcome.SILENT, PAGES, lost_s=taken)
        else:
            taken = rates.overhead + PAGES * rates.seconds
            stored = sum(self.chance.random() < rates.completion for _ in range(PAGES))
            result = AttemptResult(site, node, Outcome.SUCCEEDED, PAGES, PAGES, stored, taken)
        heapq.heappush(self.running, (self.now + taken, self.attempts, number, result, failed_on))

    def close(self, number, result, failed_on):
        pair = result.site, result.node
        self.free[result.node] += 1
        self.pages += result.collected
        old = fade(
            self.stats.get(pair, PairStats(*pair)),
            self.now - self.written.get(pair, self.now),
            self.half_life_s,
        )
        self.stats[pair], self.written[pair] = fold(old, result), self.now
        if result.outcome is Outcome.SUCCEEDED:
            return
        recalls = self.recalls.get(number, 0)
        reason = Reason.SILENT if result.outcome is Outcome.SILENT else Reason.BLOCKED
        after = after_failure(reason, result.node, recalls, failed_on, RecallSettings(), self.rng)
        if isinstance(after, Recall):
            self.recalls[number] = recalls + 1
            self.queue.append((number, result.site, after.avoid))
        else:
            self.manual += 1


@pytest.mark.parametrize("seed", [1, 2])
def test_feedback_collects_clearly_more_than_random_where_nodes_differ(seed):
    feedback = Loop("feedback", GOOD, seed).run(900)
    random = Loop("random", GOOD, seed).run(900)
    assert feedback.attempts > 400
    assert feedback.pages > 1.6 * random.pages


def test_feedback_loses_nothing_where_all_nodes_are_alike():
    feedback, random = (Loop(name, {}, 4).run(900).pages for name in ("feedback", "random"))
    assert feedback > 0.95 * random


def test_a_node_that_fails_everywhere_is_left_alone_but_for_a_few_tries():
    rates = {("node1", site): Rates(fail=1.0) for site in SITES}
    feedback, random = (Loop(name, rates, 1).run(900) for name in ("feedback", "random"))
    assert 0 < failures(feedback) < 0.2 * failures(random)
    assert feedback.pages > 0.95 * random.pages
    assert feedback.manual == 0


def failures(loop):
    return sum(loop.recalls.values())


def test_a_node_that_recovers_is_found_again_as_old_failures_fade():
    loop = Loop("feedback", {("node1", site): Rates(fail=1.0) for site in SITES}, 1, half_life_s=300.0)
    loop.run(900)
    stored_before = stored_by(loop, "node1")
    loop.rates = {("node1", site): Rates(0.4, 0.9) for site in SITES}
    loop.run(2400)
    assert stored_before == 0
    assert stored_by(loop, "node1") > stored_by(loop, "node2")


def stored_by(loop, node):
    return sum(stats.collected for (_, name), stats in loop.stats.items() if name == node)


def test_the_same_seed_gives_the_same_run():
    first, second = (Loop("feedback", GOOD, 7).run(300) for _ in range(2))
    assert first.stats == second.stats
