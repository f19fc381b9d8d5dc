from collections import Counter
from itertools import pairwise
from math import inf
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationSettings, still_waiting
from tasks.scheduling.pair_backoff import RECOVERY_S, PairBackoff
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge

META = frozenset({"meta"})
DOUBLES_S = 1000.0


def node(name, slots=8, free=None):
    return NodeFacts(name, META, slots if free is None else free, slots)


def subtask(number, site="a", hosts=("a",)):
    return SubtaskFacts(id=number, site=site, kind="meta", hosts=hosts, left=20, priority=0)


class Watched:
    """A ready queue whose hosts refuse nodes, and a backoff that looks at it."""

    def __init__(self, *nodes):
        self.ready = ReadyQueue(nodes or [node("n"), node("m")])
        self.backoff = PairBackoff(DOUBLES_S)

    def refuse(self, now_s, host="a", name="n"):
        """The host refuses the node, and lets it in again before long."""
        self.rest(now_s, host, name)
        self.ready.set_host(HostFacts(host=host, room=99))
        self.backoff.update(self.ready, now_s)

    def rest(self, now_s, host="a", name="n"):
        self.ready.set_host(HostFacts(host=host, room=99, resting=frozenset({name})))
        self.backoff.update(self.ready, now_s)

    def hold(self, count, host="a", name="n"):
        self.ready.set_host(HostFacts(host=host, room=99, held={name: count}))

    def share(self, now_s, *hosts, name="n"):
        return self.backoff.share(hosts or ("a",), name, now_s)

    def allows(self, now_s, *hosts, name="n"):
        return self.backoff.allows(hosts or ("a",), name, now_s, self.ready)


def test_an_address_whose_permits_are_kept_back_is_not_held_back_besides():
    watched = Watched()
    resting = frozenset({"n", "m"})
    watched.ready.set_host(HostFacts(host="a", room=99, resting=resting, shares={"n": 0.3}))
    watched.backoff.update(watched.ready, 0.0)
    assert watched.share(0.0) == inf
    assert watched.share(0.0, name="m") == 4.0


def test_a_host_that_does_not_answer_refuses_nobody():
    watched = Watched()
    silent = frozenset({"n"})
    watched.ready.set_host(HostFacts(host="a", room=99, resting=silent, unanswered=silent))
    watched.backoff.update(watched.ready, 0.0)
    assert watched.share(0.0) == inf
    assert not watched.backoff.active()


def test_who_was_never_refused_may_do_anything():
    watched = Watched()
    watched.backoff.update(watched.ready, 0.0)
    watched.hold(50)
    assert watched.share(0.0) == inf
    assert watched.allows(0.0)
    assert not watched.backoff.any(["a"])


def test_a_refusal_halves_what_the_node_may_do_there_and_nothing_else():
    watched = Watched()
    watched.refuse(10.0)
    assert watched.share(10.0) == 4.0
    assert watched.share(10.0, name="m") == inf
    assert watched.share(10.0, "b") == inf
    assert watched.backoff.any(["b", "a"])
    assert not watched.backoff.any(["b"])


def test_each_further_refusal_halves_again_down_to_a_least_share():
    watched = Watched()
    shares = []
    for _ in range(12):
        watched.refuse(0.0)
        shares.append(watched.share(0.0))
    assert shares[:6] == [4.0, 2.0, 1.0, 0.5, 0.25, 0.125]
    assert shares[-2] == shares[-1] == 1 / 64


def test_one_refusal_counts_once_however_often_it_is_looked_at():
    watched = Watched()
    for now_s in (0.0, 1.0, 2.0):
        watched.ready.put(subtask(int(now_s), f"site{now_s}"))  # the version changes
        watched.rest(now_s)
    assert watched.share(0.0) == 4.0


def test_a_refusal_of_another_node_or_host_meanwhile_does_not_count_for_who_rests_already():
    watched = Watched()
    watched.rest(0.0)
    watched.ready.set_host(HostFacts(host="a", room=99, resting=frozenset({"n", "m"})))
    watched.ready.set_host(HostFacts(host="b", room=99, resting=frozenset({"m"})))
    watched.backoff.update(watched.ready, 0.0)
    assert [watched.share(0.0, host, name=name) for host in "ab" for name in "nm"] == [4.0, 4.0, inf, 4.0]


def test_time_gives_it_back():
    watched = Watched()
    watched.refuse(100.0)
    assert watched.share(100.0 + DOUBLES_S / 2) == pytest.approx(4.0 * 2**0.5)
    assert watched.share(100.0 + DOUBLES_S) == pytest.approx(8.0)
    watched.refuse(100.0 + DOUBLES_S / 2)
    assert watched.share(100.0 + DOUBLES_S / 2) == pytest.approx(2.0 * 2**0.5)


def test_after_a_long_time_a_refusal_halves_the_slots_again_and_not_what_they_grew_to():
    watched = Watched()
    watched.refuse(0.0)
    watched.refuse(100 * DOUBLES_S)
    assert watched.share(100 * DOUBLES_S) == 4.0
    assert watched.share(1e12) < inf


def test_a_refused_node_that_is_not_on_the_ready_queue_counts_as_one_of_one_slot():
    watched = Watched(node("m"))
    watched.refuse(0.0)
    assert watched.share(0.0) == 0.5


@given(
    slots=st.integers(0, 64),
    gaps_s=st.lists(st.floats(0, 3 * DOUBLES_S), min_size=1, max_size=12),
    later_s=st.floats(0, 20 * DOUBLES_S),
)
def test_a_share_is_half_of_what_was_allowed_and_doubles_in_the_time_of_recovery(slots, gaps_s, later_s):
    watched, now_s = Watched(node("n", slots)), 0.0
    for gap_s in gaps_s:
        now_s += gap_s
        before = min(watched.share(now_s), max(1, slots))
        watched.refuse(now_s)
        assert watched.share(now_s) == pytest.approx(max(1 / 64, before / 2))
    refused = watched.share(now_s)
    assert watched.share(now_s + later_s) == pytest.approx(refused * 2 ** (later_s / DOUBLES_S))


@pytest.mark.parametrize(("held", "allowed"), [(0, True), (3, True), (4, False), (9, False)])
def test_no_more_attempts_at_once_than_the_share(held, allowed):
    watched = Watched()
    watched.refuse(0.0)
    watched.hold(held)
    assert watched.allows(0.0) is allowed
    assert watched.allows(0.0, name="m")


def test_a_share_that_is_no_whole_number_is_filled_up():
    watched = Watched(node("n", 5))
    watched.refuse(0.0)
    assert watched.share(0.0) == 2.5
    allowed = []
    for held in range(5):
        watched.hold(held)
        allowed.append(watched.allows(0.0))
    assert allowed == [True, True, True, False, False]


def test_below_one_attempt_at_once_it_waits_between_attempts():
    watched = Watched(node("n", 1))
    watched.refuse(0.0)
    watched.refuse(0.0)
    assert watched.share(0.0) == 0.25
    assert watched.allows(0.0)
    watched.backoff.begun(("a",), "n", 0.0, expected_s=10.0)
    assert [watched.allows(now_s) for now_s in (0.0, 10.0, 39.9, 40.0)] == [False, False, False, True]
    watched.hold(1)
    assert not watched.allows(40.0)  # and never two at once


def test_with_a_share_of_one_or_more_nobody_waits_between_attempts():
    watched = Watched(node("n", 2))
    watched.refuse(0.0)
    assert watched.share(0.0) == 1.0
    watched.backoff.begun(("a",), "n", 0.0, expected_s=10.0)
    assert watched.allows(0.0)


def test_a_wait_ends_early_where_the_share_has_grown_to_one():
    watched = Watched(node("n", 1))
    watched.refuse(0.0)
    watched.backoff.begun(("a",), "n", 0.0, expected_s=10 * DOUBLES_S)
    assert not watched.allows(0.99 * DOUBLES_S)
    assert watched.allows(1.01 * DOUBLES_S)


def test_an_attempt_of_someone_else_or_elsewhere_makes_nobody_wait():
    watched = Watched(node("n", 1), node("m", 1))
    watched.refuse(0.0)
    watched.refuse(0.0, name="m")
    watched.refuse(0.0, host="b")
    watched.backoff.begun(("b", "unknown"), "n", 0.0, expected_s=10.0)
    watched.backoff.begun(("a",), "m", 0.0, expected_s=10.0)
    assert watched.allows(1.0, "a")
    assert not watched.allows(1.0, "b")
    assert not watched.allows(1.0, "a", name="m")


def test_of_several_hosts_the_strictest_decides():
    watched = Watched()
    watched.refuse(0.0, "a")
    watched.refuse(0.0, "b")
    watched.refuse(0.0, "b")
    assert watched.share(0.0, "c", "a", "b") == 2.0
    assert watched.share(0.0, "a", "c") == 4.0
    watched.hold(2, "b")
    assert not watched.allows(0.0, "a", "b")
    assert watched.allows(0.0, "a", "c")
    assert PairBackoff(DOUBLES_S).share((), "n", 0.0) == inf


class Going:
    """`feedback` with a long backlog of one site, whose hosts are set by hand."""

    def __init__(self, *nodes, seed=0):
        self.strategy = ALLOCATION["feedback"](AllocationSettings())
        self.ready = ReadyQueue(nodes)
        self.knowledge, self.rng = Knowledge(), Random(seed)
        for number in range(400):
            self.ready.put(subtask(number))

    def decide(self, now_s, *, resting=(), held=()):
        """What each node is given at the site."""
        self.ready.set_host(HostFacts(host="a", room=99, resting=frozenset(resting), held=dict(held)))
        given = self.strategy.decide(self.ready, self.knowledge, now_s, self.rng, explain=True)
        return Counter(one.node for one in given)

    def all_free(self):
        for one in self.ready.nodes.values():
            self.ready.set_free(one.name, one.slots)


@pytest.mark.parametrize("seed", range(5))
def test_feedback_gives_a_node_that_was_refused_fewer_attempts_until_time_gives_them_back(seed):
    going = Going(node("n"), node("m"), seed=seed)
    assert going.decide(0.0) == {"n": 8, "m": 8}
    going.all_free()
    assert going.decide(30.0, resting={"n"}) == {"m": 8}
    going.all_free()
    assert going.decide(60.0) == {"n": 5, "m": 8}  # share 4 * 2 ** (30 / 1800), filled up
    going.all_free()
    assert going.decide(30.0 + 0.6 * RECOVERY_S) == {"n": 7, "m": 8}
    going.all_free()
    assert going.decide(30.0 + RECOVERY_S) == {"n": 8, "m": 8}


def test_feedback_counts_what_a_refused_node_holds_already_and_says_why_the_rest_waits():
    going = Going(node("n"))
    going.decide(0.0, resting={"n"})
    assert going.decide(1.0, held={"n": 3}) == {"n": 2}
    assert {str(one.why) for one in still_waiting(going.ready, going.strategy)} == {
        "held back: a refused n not long ago"
    }


def test_feedback_lets_a_node_of_one_slot_wait_between_attempts_after_a_refusal():
    going = Going(node("n", 1))
    going.decide(0.0, resting={"n"})
    given_at_s = []
    for now_s in range(1, 400):
        going.all_free()
        if going.decide(float(now_s)):
            given_at_s.append(now_s)
    gaps_s = [later - sooner for sooner, later in pairwise(given_at_s)]
    expected_s = 20.0
    assert given_at_s[0] == 1
    assert 1.5 * expected_s < sum(gaps_s) / len(gaps_s) < 5 * expected_s  # the draw of its seconds varies
    assert min(gaps_s) > 5
