from collections import Counter
from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.domain.pair_stats import PairStats
from tasks.domain.reasons import Reason
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.decision import AllocationSettings, Assignment, still_waiting
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge

BOTH = frozenset({"meta", "microblog"})
every_strategy = pytest.mark.parametrize("strategy", ["feedback", "random"])


def node(name, free=1, kinds=BOTH, slots=2):
    return NodeFacts(name, frozenset(kinds), free, slots)


def subtask(number, site="a", *, kind="meta", left=20, priority=0, hosts=None, **more):
    return SubtaskFacts(
        id=number,
        site=site,
        kind=kind,
        hosts=(site,) if hosts is None else hosts,
        left=left,
        priority=priority,
        **more,
    )


def known(site, name, *, pages_per_s=1.0, attempts=200, failed=0.0, completion=0.9):
    """(site, node, much data of it), at so many pages per active second."""
    tried = 20.0 * (attempts - failed)
    collected = completion * tried
    active = attempts + collected / pages_per_s
    offered = 20.0 * attempts
    stats = PairStats(
        attempts=attempts, failed=failed, offered=offered, tried=tried, collected=collected, active_s=active
    )
    return site, name, stats


def knowledge_of(stats):
    knowledge = Knowledge()
    for one in stats:
        knowledge.put(*one, 0.0)
    return knowledge


@dataclass(frozen=True)
class Decided:
    """What was given away, and why the rest waits."""

    assignments: list[Assignment]
    waiting: dict[int, str]


class Round:
    """A ready queue, what is known, and a strategy with what it remembers."""

    def __init__(self, strategy, subtasks, nodes, hosts=(), stats=(), seed=0, ready=ReadyQueue):
        self.strategy = ALLOCATION[strategy](AllocationSettings())
        self.ready = ready(nodes, {host.host: host for host in hosts})
        for one in subtasks:
            self.ready.put(one)
        self.knowledge = knowledge_of(stats)
        self.rng = Random(seed)

    def decide(self, now_s=0.0, *, explain=True):
        given = self.strategy.decide(self.ready, self.knowledge, now_s, self.rng, explain=explain)
        waiting = {
            number: str(one.why)
            for one in still_waiting(self.ready, self.strategy)
            for number in one.subtask_ids
        }
        return Decided(given, waiting)


def decide(strategy, subtasks, nodes, hosts=(), stats=(), seed=0):
    return Round(strategy, subtasks, nodes, hosts, stats, seed).decide()


def given_to(decided):
    return {one.subtask.id: one.node for one in decided.assignments}


def why_waiting(decided):
    return decided.waiting


@every_strategy
def test_a_task_goes_only_to_its_kind(strategy):
    nodes = [node("m", kinds={"meta"}), node("w", kinds={"microblog"})]
    decided = decide(strategy, [subtask(1), subtask(2, "weibo.com", kind="microblog"), subtask(3)], nodes)
    assert given_to(decided) == {1: "m", 2: "w"}


@every_strategy
def test_without_a_node_of_its_kind_it_waits_and_says_so(strategy):
    decided = decide(strategy, [subtask(1, kind="microblog")], [node("m", kinds={"meta"})])
    assert why_waiting(decided) == {1: "no live node crawls microblog sites"}


@every_strategy
def test_nobody_alive_is_said(strategy):
    assert why_waiting(decide(strategy, [subtask(1)], [])) == {1: "no node is alive"}


@every_strategy
def test_a_node_whose_address_a_host_refuses_is_left_out(strategy):
    hosts = [HostFacts(host="engine", room=9), HostFacts(host="a", room=9, resting=frozenset({"n1"}))]
    waiting = subtask(1, hosts=("engine", "a"))
    assert given_to(decide(strategy, [waiting], [node("n1"), node("n2")], hosts)) == {1: "n2"}
    assert why_waiting(decide(strategy, [waiting], [node("n1")], hosts)) == {
        1: "no node may run it now: a refuses its address at present"
    }


@every_strategy
def test_nodes_that_failed_it_are_avoided_and_waited_around(strategy):
    waiting = subtask(1, failed_on=("n1",))
    assert given_to(decide(strategy, [waiting], [node("n1"), node("n2")])) == {1: "n2"}
    busy = decide(strategy, [waiting], [node("n1"), node("n2", free=0)])
    assert why_waiting(busy) == {1: "every node that may run it is busy (n2)"}


@every_strategy
def test_the_oldest_failure_is_forgiven_first_where_nobody_else_exists(strategy):
    waiting = subtask(1, failed_on=("n2", "n1"))
    decided = decide(strategy, [waiting], [node("n1"), node("n2")])
    assert given_to(decided) == {1: "n2"}
    assert decided.assignments[0].forgiven == "n2"
    kinds = [node("n1"), node("n2"), node("n3", kinds={"microblog"})]
    assert decide(strategy, [waiting], kinds).assignments[0].forgiven == "n2"


@every_strategy
def test_a_forgiven_node_that_is_busy_is_waited_for(strategy):
    decided = decide(strategy, [subtask(1, failed_on=("n2", "n1"))], [node("n1"), node("n2", free=0)])
    assert why_waiting(decided) == {1: "waits for a free slot of n2, whose failure would be forgiven"}


@every_strategy
def test_a_failed_node_that_a_host_refuses_is_not_forgiven(strategy):
    hosts = [HostFacts(host="a", room=9, resting=frozenset({"n2"}))]
    decided = decide(strategy, [subtask(1, failed_on=("n2", "n1"))], [node("n1"), node("n2")], hosts)
    assert decided.assignments[0].forgiven == "n1"


@every_strategy
def test_a_node_a_person_asked_for_is_the_only_one(strategy):
    waiting = subtask(1, failed_on=("n1",), assigned="n1")
    nodes = [node("n1"), node("n2")]
    assert given_to(decide(strategy, [waiting], nodes)) == {1: "n1"}
    assert decide(strategy, [waiting], nodes).assignments[0].forgiven == "n1"
    assert why_waiting(decide(strategy, [waiting], nodes[1:])) == {
        1: "n1, which a person asked for, is not alive or is drained"
    }


@every_strategy
def test_an_attempt_takes_room_of_each_of_its_hosts(strategy):
    hosts = [HostFacts(host="engine", room=2), HostFacts(host="a", room=5), HostFacts(host="b", room=5)]
    waiting = [subtask(number, site, hosts=("engine", site)) for number, site in enumerate("aabb")]
    decided = decide(strategy, waiting, [node("n1", free=4)], hosts)
    assert len(decided.assignments) == 2
    assert set(why_waiting(decided).values()) == {
        "engine is asked as often as it allows: no room for another attempt"
    }


@every_strategy
def test_a_host_that_is_engine_and_site_counts_an_attempt_once(strategy):
    waiting = [subtask(number, hosts=("a", "a")) for number in range(2)]
    assert (
        len(decide(strategy, waiting, [node("n1", free=2)], [HostFacts(host="a", room=2)]).assignments) == 2
    )


@every_strategy
def test_higher_priority_first_then_first_in(strategy):
    waiting = [subtask(7, priority=5), subtask(3), subtask(4), subtask(5)]
    assert set(given_to(decide(strategy, waiting, [node("n1", free=3)]))) == {7, 3, 4}


def test_nodes_do_not_take_from_each_other_what_they_need_less():
    """n1 is best at both sites; still it leaves `a` to n2, which is no use for `b`."""
    stats = [
        known("a", "n1", pages_per_s=1.9, attempts=50_000),
        known("b", "n1", pages_per_s=2.0, attempts=50_000),
        known("a", "n2", pages_per_s=1.8, attempts=50_000),
        known("b", "n2", pages_per_s=0.2, attempts=50_000),
    ]
    waiting = [subtask(number, "aab"[number % 3]) for number in range(60)]
    decided = decide("feedback", waiting, [node("n1", 2), node("n2", 2)], stats=stats)
    assert {(one.node, one.subtask.site) for one in decided.assignments} == {("n1", "b"), ("n2", "a")}
    assert len(decided.assignments) == 4


def test_few_data_are_tried_out_many_are_believed():
    def share(attempts):
        stats = [known("a", "n1", attempts=300), known("b", "n1", pages_per_s=0.7, attempts=attempts)]
        waiting = [subtask(number, "ab"[number % 2]) for number in range(40)]
        chosen = Counter(
            decide("feedback", waiting, [node("n1")], stats=stats, seed=seed).assignments[0].subtask.site
            for seed in range(100)
        )
        return chosen["b"] / 100

    assert share(1) > 0.05
    assert share(300) < 0.02


def test_the_last_subtasks_go_to_nodes_that_are_not_much_slower_than_the_best():
    """Poured, the plan has a share of the last page for everybody; a subtask can't be divided."""
    stats = [known("a", f"n{number}", pages_per_s=2 / 3**number) for number in range(4)]
    nodes = [node(f"n{number}", 0 if number == 0 else 1, slots=1) for number in range(4)]
    few = decide("feedback", [subtask(1)], nodes, stats=stats)
    many = decide("feedback", [subtask(number) for number in range(200)], nodes, stats=stats)
    assert not few.assignments
    assert sorted(given_to(many).values()) == ["n1", "n2", "n3"]


def test_a_poor_node_stays_idle_at_the_end_of_a_backlog_while_better_ones_will_be_done_sooner():
    stats = [known("a", "n1", pages_per_s=2), known("a", "n2", pages_per_s=0.01)]
    decided = decide("feedback", [subtask(1)], [node("n1", free=0), node("n2")], stats=stats)
    assert not decided.assignments
    assert why_waiting(decided)[1].startswith("done sooner by waiting: ")
    assert " pages/s, others reach " in why_waiting(decided)[1]


def test_a_node_that_only_fails_is_left_out_even_then():
    stats = [known("a", "n1"), known("a", "n2", attempts=5000, failed=5000)]
    waiting = [subtask(number) for number in range(300)]
    assert not decide("feedback", waiting, [node("n1", free=0), node("n2")], stats=stats).assignments


def test_candidates_show_what_was_seen_and_why():
    stats = [known("a", "n1", pages_per_s=2), known("a", "n2", pages_per_s=0.5)]
    nodes = [
        node("n1"), node("n2"), node("n3", kinds={"microblog"}), node("n4", free=0), node("n5"),
    ]  # fmt: skip
    made = decide("feedback", [subtask(1, failed_on=("n5",))], nodes, stats=stats).assignments[0]
    by_name = {one.node: one for one in made.candidates}
    assert sorted(by_name) == ["n1", "n2", "n3", "n4", "n5"]
    assert made.score == by_name[made.node].score
    assert by_name[made.node].because.reason is Reason.PLANNED
    assert (by_name["n1"].completion, by_name["n1"].attempts) == (pytest.approx(0.9), 200)
    assert by_name["n2"].efficiency_s == pytest.approx(stats[1][2].efficiency_s)
    assert str(by_name["n3"].because) == "does not crawl meta sites"
    assert by_name["n4"].because.reason is Reason.NO_FREE_SLOT
    assert (by_name["n4"].eligible, by_name["n4"].completion) == (True, None)
    assert (by_name["n5"].eligible, by_name["n5"].because.reason) == (False, Reason.FAILED_BEFORE)


def test_random_draws_every_node_that_may_run_it_alike_whatever_was_seen():
    stats = [known("a", "n1", pages_per_s=9), known("a", "n2", pages_per_s=0.01)]
    nodes = [node("n1"), node("n2"), node("n3")]
    drawn = Counter(
        given_to(decide("random", [subtask(1)], nodes, stats=stats, seed=seed))[1] for seed in range(600)
    )
    assert set(drawn) == {"n1", "n2", "n3"}
    assert all(150 < count < 250 for count in drawn.values())


NAMES = ("n1", "n2", "n3", "n4")
a_node = st.builds(
    node,
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from([{"meta"}, {"microblog"}, {"meta", "microblog"}]),
)
a_host = st.builds(
    HostFacts,
    host=st.sampled_from("abc"),
    room=st.integers(0, 4),
    resting=st.frozensets(st.sampled_from(NAMES)),
)
a_pair = st.builds(
    known,
    st.sampled_from("abc"),
    st.sampled_from(NAMES),
    pages_per_s=st.floats(0.001, 10),
    attempts=st.floats(0.5, 500),
)
some_work = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["meta", "microblog"]),
        st.integers(0, 60),
        st.integers(0, 2),
        st.lists(st.sampled_from(NAMES), unique=True).map(tuple),
        st.none() | st.sampled_from(NAMES),
    ),
    max_size=25,
).map(
    lambda rows: [
        subtask(number, site, kind=kind, left=left, priority=priority, failed_on=failed_on, assigned=assigned)
        for number, (site, kind, left, priority, failed_on, assigned) in enumerate(
            sorted(rows, key=lambda row: -row[3])
        )
    ]
)


def may_run(wanted, one, hosts):
    return (
        wanted.kind in one.kinds
        and wanted.assigned in (None, one.name)
        and all(one.name not in hosts[host].resting for host in wanted.hosts if host in hosts)
    )


@every_strategy
@given(
    work=some_work,
    nodes=st.lists(a_node, unique_by=lambda one: one.name),
    hosts=st.lists(a_host, unique_by=lambda one: one.host),
    stats=st.lists(a_pair, unique_by=lambda one: one[:2]),
    seed=st.integers(0, 99),
)
def test_every_decision_keeps_the_rules(strategy, work, nodes, hosts, stats, seed):
    decided = decide(strategy, work, nodes, hosts, stats, seed)
    by_id, by_name = {one.id: one for one in work}, {one.name: one for one in nodes}
    by_host = {one.host: one for one in hosts}
    where, waits = given_to(decided), why_waiting(decided)
    assert len(decided.assignments) == len(where)
    assert sorted([*where, *waits]) == sorted(by_id)
    assert all(waits.values())
    for one in decided.assignments:
        wanted, chosen = one.subtask, by_name[one.node]
        assert wanted == by_id[wanted.id]
        assert may_run(wanted, chosen, by_host)
        able = [name for name in by_name if may_run(wanted, by_name[name], by_host)]
        if one.forgiven is None:
            assert one.node not in wanted.failed_on
        elif wanted.assigned is None:
            assert one.node == next(name for name in wanted.failed_on if name in able)
            assert set(able) <= set(wanted.failed_on)
    for name, count in Counter(where.values()).items():
        assert count <= by_name[name].free
    asked = Counter(host for number in where for host in by_id[number].hosts)
    assert all(asked[host.host] <= host.room for host in hosts)


@given(
    rates=st.lists(st.floats(0.5, 5), min_size=3, max_size=3),
    sites=st.lists(st.sampled_from("abc"), min_size=200, max_size=220),
    seed=st.integers(0, 99),
)
def test_with_a_long_backlog_no_slot_stays_idle(rates, sites, seed):
    """Ratios up to 10, and what waits is hundreds of times what a round takes."""
    nodes = [node(name, 2) for name in ("n1", "n2", "n3")]
    stats = [
        known(site, one.name, pages_per_s=rate)
        for site in "abc"
        for one, rate in zip(nodes, rates, strict=True)
    ]
    work = [subtask(number, site) for number, site in enumerate(sites)]
    assert len(decide("feedback", work, nodes, (), stats, seed).assignments) == 6


@every_strategy
@given(
    work=some_work,
    nodes=st.lists(a_node, unique_by=lambda one: one.name, min_size=1),
    stats=st.lists(a_pair, unique_by=lambda one: one[:2]),
)
def test_equal_input_and_seed_give_an_equal_decision(strategy, work, nodes, stats):
    first, second = (decide(strategy, work, nodes, (), stats, 3) for _ in range(2))
    assert first == second


@every_strategy
def test_within_a_group_first_in_is_first_out(strategy):
    waiting = [subtask(number, "ab"[number % 2]) for number in range(12)]
    going = Round(strategy, waiting, [node("n1", 1)])
    given = []
    for second in range(12):
        given += [one.subtask for one in going.decide(float(second)).assignments]
        going.ready.set_free("n1", 1)
    for site in "ab":
        ids = [one.id for one in given if one.site == site]
        assert ids == sorted(ids)
    assert len(given) == 12


def test_a_thousand_waiting_on_ten_nodes_fill_every_slot():
    rng = Random(1)
    sites = [f"site{number}" for number in range(35)]
    nodes = [node(f"n{number}", free=4, slots=4) for number in range(10)]
    stats = [known(site, one.name, pages_per_s=rng.uniform(0.3, 3)) for site in sites for one in nodes]
    work = [subtask(number, rng.choice(sites), left=rng.randint(1, 50)) for number in range(1000)]
    for seed in range(5):
        assert len(decide("feedback", work, nodes, (), stats, seed).assignments) == 40


@every_strategy
def test_an_address_gets_no_more_attempts_than_use_up_what_it_may_ask(strategy):
    nodes = [node(name, 4, slots=4) for name in ("n1", "n2")]
    host = HostFacts(host="a.cn", room=9, address_limit=2, held={"n1": 1})
    decided = decide(strategy, [subtask(number, "a.cn", left=9) for number in range(6)], nodes, [host])
    assert sorted(given_to(decided).values()) == ["n1", "n2", "n2"]
    assert set(why_waiting(decided).values()) == {"nodes ask there as often as their addresses may (n1, n2)"}


@every_strategy
def test_a_node_probes_a_host_that_refused_it_with_one_attempt_at_a_time(strategy):
    nodes = [node(name, 4, slots=4) for name in ("n1", "n2")]
    waiting = [subtask(number, "a.cn", hosts=("engine.cn", "a.cn"), left=9) for number in range(8)]

    def given(held):
        engine = HostFacts(host="engine.cn", room=20, probing=frozenset({"n1"}), held=held)
        hosts = [engine, HostFacts(host="a.cn", room=20, address_limit=3)]
        return sorted(given_to(decide(strategy, waiting, nodes, hosts)).values())

    assert given({}) == ["n1", "n2", "n2", "n2"]
    assert given({"n1": 1}) == ["n2", "n2", "n2"]


def test_a_slower_address_helps_where_the_best_one_may_ask_seldom():
    """What a slot makes while it works says little where a host allows two pages a second from one address."""
    stats = [known("a", "fast", pages_per_s=40), known("a", "slow", pages_per_s=1)]
    nodes = [node("fast", 1, slots=4), node("slow", 1, slots=4)]
    waiting = [subtask(number, "a", left=10) for number in range(12)]

    def given(**limits):
        host = HostFacts(host="a", room=99, **limits)
        return sorted(given_to(decide("feedback", waiting, nodes, [host], stats)).values())

    assert given() == ["fast"]  # which is done in seconds
    assert given(address_pages_per_s=2.0) == ["fast", "slow"]  # it would take a minute alone


def test_what_the_best_nodes_failed_does_not_wait_for_them():
    stats = [known("a", f"n{number}", pages_per_s=2 / 10**number) for number in range(3)]
    nodes = [node(f"n{number}") for number in range(3)]
    assert given_to(decide("feedback", [subtask(1, failed_on=("n0",))], nodes, stats=stats)) == {1: "n1"}
    assert given_to(decide("feedback", [subtask(1, failed_on=("n1", "n0"))], nodes, stats=stats)) == {1: "n2"}
    everywhere = decide("feedback", [subtask(1, failed_on=("n2", "n1", "n0"))], nodes, stats=stats)
    assert given_to(everywhere) == {1: "n2"}


def test_what_others_failed_is_given_to_a_node_of_which_nothing_is_expected():
    stats = [known("a", "n1"), known("a", "n2", attempts=5000, failed=5000)]
    waiting = [subtask(1, failed_on=("n1",)), subtask(2)]
    assert given_to(decide("feedback", waiting, [node("n1", 0), node("n2", 2)], stats=stats)) == {1: "n2"}


@every_strategy
def test_candidates_are_left_out_where_nobody_wants_an_explanation(strategy):
    going = Round(strategy, [subtask(1)], [node("n1")])
    assert [one.candidates for one in going.decide(explain=False).assignments] == [()]


@every_strategy
def test_what_is_put_while_a_plan_is_in_force_is_given_too(strategy):
    """New sites, subtasks of a higher priority, and those with nothing left that is known of."""
    stats = [known("a", "n1"), known("a", "n2")]
    going = Round(strategy, [subtask(1, "a")], [node("n1"), node("n2", 0)], stats=stats)
    going.decide()
    going.ready.put(subtask(2, "new", left=0))
    going.ready.put(subtask(3, "newer", left=0, priority=1))
    going.ready.set_free("n2", 1)
    assert given_to(going.decide(0.1)) == {3: "n2"}
    going.ready.set_free("n2", 1)
    assert given_to(going.decide(0.15)) == {2: "n2"}
    assert going.ready.waiting == 0


@every_strategy
def test_nodes_that_come_and_go_while_a_plan_is_in_force(strategy):
    # So much waits that no node, however badly it is drawn, is done sooner by waiting for others.
    going = Round(strategy, [subtask(number) for number in range(60)], [node("n1"), node("n2")])
    going.decide()
    going.ready.drop_node("n1")
    going.ready.set_free("n1", 1)  # an attempt of a node that is gone is closed
    assert not going.decide(0.1).assignments
    going.ready.set_node(node("n3"))
    assert list(given_to(going.decide(0.2)).values()) == ["n3"]
    going.ready.set_node(node("n1"))
    assert list(given_to(going.decide(0.3)).values()) == ["n1"]


@every_strategy
def test_a_node_that_loses_a_kind_is_given_no_more_of_it(strategy):
    going = Round(strategy, [subtask(number) for number in range(9)], [node("n1")])
    going.decide()
    going.ready.set_node(node("n1", kinds={"microblog"}))
    decided = going.decide(0.1)
    assert set(why_waiting(decided).values()) == {"no live node crawls meta sites"}


@every_strategy
def test_a_host_that_rests_while_a_plan_is_in_force_and_answers_again(strategy):
    going = Round(
        strategy, [subtask(number) for number in range(9)], [node("n1")], [HostFacts(host="a", room=9)]
    )
    going.decide()
    going.ready.set_free("n1", 1)
    going.ready.set_host(HostFacts(host="a", room=8, resting=frozenset({"n1"})))
    assert not going.decide(0.1).assignments
    going.ready.set_host(HostFacts(host="a", room=8))
    assert len(going.decide(0.2).assignments) == 1


@every_strategy
def test_a_node_without_slots_holds_nothing_up(strategy):
    nodes = [node("n1", 0, slots=0), node("n2", 1)]
    assert given_to(decide(strategy, [subtask(1)], nodes)) == {1: "n2"}
    assert not decide(strategy, [subtask(1)], nodes[:1]).assignments


def test_a_host_that_feeds_nobody_does_not_spoil_the_plan_of_the_others():
    rates = {
        ("a", "n1"): 1.9,
        ("b", "n1"): 2.0,
        ("a", "n2"): 1.8,
        ("b", "n2"): 0.2,
        ("c", "n1"): 5,
        ("c", "n2"): 5,
    }
    stats = [known(*pair, pages_per_s=rate, attempts=50_000) for pair, rate in rates.items()]
    waiting = [subtask(number, "aabc"[number % 4]) for number in range(80)]
    decided = decide("feedback", waiting, [node("n1"), node("n2")], [HostFacts(host="c", room=0)], stats)
    assert {(one.node, one.subtask.site) for one in decided.assignments} == {("n1", "b"), ("n2", "a")}


class CountingQueue(ReadyQueue):
    """Counts what a strategy asks of it."""

    asked = 0

    def can_take(self, group, node):
        self.asked += 1
        return super().can_take(group, node)

    def take(self, group, node, place=0):
        self.asked += 1
        return super().take(group, node, place)

    def levels(self):
        for level in super().levels():
            self.asked += 1
            yield level

    def iter_groups(self, level):
        for group in super().iter_groups(level):
            self.asked += 1
            yield group


def most_asked_a_decision(strategy, waiting):
    """Over 100 slots that become free one by one, each with a subtask that is put in place of the one given away."""
    rng = Random(2)
    names = [f"n{number}" for number in range(5)]
    stats = [known(site, name, pages_per_s=rng.uniform(0.3, 3)) for site in "abcd" for name in names]

    def one(number):
        return subtask(number, rng.choice("abcd"), left=rng.choice((5, 20, 100)), priority=number % 2)

    going = Round(strategy, map(one, range(waiting)), map(node, names), (), stats, ready=CountingQueue)
    going.decide(explain=False)
    most = 0
    for number in range(100):
        before = going.ready.asked
        going.ready.put(one(waiting + number))
        going.ready.set_free(rng.choice(names), 1)
        given = going.strategy.decide(going.ready, going.knowledge, number / 10, going.rng)
        assert len(given) == 1
        most = max(most, going.ready.asked - before)
    return most


@every_strategy
def test_what_a_decision_asks_of_the_ready_queue_does_not_grow_with_what_waits(strategy):
    assert most_asked_a_decision(strategy, 20_000) <= most_asked_a_decision(strategy, 200) + 5
