from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.domain.pair_stats import HALF_LIFE_S, PairStats
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.balance.curves import linear
from tasks.scheduling.baselines.consistent_hash import ConsistentHash
from tasks.scheduling.decision import AllocationSettings, still_waiting
from tasks.scheduling.prior import distance_prior
from tasks.scheduling.ready_queue import ReadyQueue
from tasks.scheduling.statistics import Knowledge
from tasks.scheduling.strategy_names import STRATEGIES

BOTH = frozenset({"meta", "microblog"})
NAMES = ("n1", "n2", "n3", "n4")
NEVER_HOLD_BACK = ("random", "round_robin", "least_loaded")


class Table:
    """Delays by site and node; NaN for those left out."""

    def __init__(self, ms):
        self._ms = ms

    def ms(self, sites, nodes):
        return np.array([[self._ms.get((site, node), np.nan) for node in nodes] for site in sites])


FAR = Table(
    {(site, name): 10.0 * (i + 2 * j) for i, site in enumerate("ab") for j, name in enumerate(NAMES[:3])}
)


def test_every_strategy_has_its_name_and_every_name_its_strategy():
    assert tuple(ALLOCATION) == STRATEGIES


CASES = {name: (name, AllocationSettings()) for name in ALLOCATION}
CASES["proximity with distances"] = "proximity", AllocationSettings(distances=FAR, nearest=2)
every_strategy = pytest.mark.parametrize("case", sorted(CASES))


def node(name, free=1, kinds=BOTH, slots=None):
    return NodeFacts(name, frozenset(kinds), free, slots or max(1, free))


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


def known(site, name, *, completion=0.9, seconds=1.0, attempts=200.0):
    """(site, node, so many attempts of 20 pages each)."""
    tried = 20.0 * attempts
    active_s = attempts + seconds * tried
    stats = PairStats(
        attempts=attempts, offered=tried, tried=tried, collected=completion * tried, active_s=active_s
    )
    return site, name, stats


def known_as(stats):
    knowledge = Knowledge()
    for one in stats:
        knowledge.put(*one, 0.0)
    return knowledge


class Play:
    """A strategy on its ready queue."""

    def __init__(self, strategy, nodes=(), stats=(), hosts=(), given=None, **parameters):
        self.strategy = ALLOCATION[strategy](given or AllocationSettings(**parameters))
        self.ready = ReadyQueue(nodes, {one.host: one for one in hosts})
        self.knowledge = known_as(stats)
        self.rng = Random(1)

    def put(self, *subtasks):
        for one in subtasks:
            self.ready.put(one)
        return self

    def decide(self, now_s=0.0, explain=False):
        return self.strategy.decide(self.ready, self.knowledge, now_s, self.rng, explain=explain)

    def given(self, now_s=0.0):
        return {one.subtask.id: one.node for one in self.decide(now_s)}

    def why(self):
        return {
            number: str(one.why)
            for one in still_waiting(self.ready, self.strategy)
            for number in one.subtask_ids
        }


# --- what all keep ------------------------------------------------------------------------------------------------


a_node = st.builds(
    node,
    st.sampled_from(NAMES),
    st.integers(0, 3),
    st.sampled_from([frozenset({"meta"}), frozenset({"microblog"}), BOTH]),
)
a_host = st.builds(
    HostFacts,
    host=st.sampled_from(["e", "a", "b", "c"]),
    room=st.integers(0, 4),
    resting=st.frozensets(st.sampled_from(NAMES), max_size=2),
    address_limit=st.none() | st.integers(1, 2),
    held=st.just({}),
    probing=st.frozensets(st.sampled_from(NAMES), max_size=1),
)
a_pair = st.builds(
    known,
    st.sampled_from("abc"),
    st.sampled_from(NAMES),
    completion=st.floats(0.0, 1.0),
    seconds=st.floats(0.01, 20.0),
    attempts=st.floats(0.1, 60.0),
)
KIND_OF = {"a": "meta", "b": "microblog", "c": "meta"}
a_subtask = st.builds(
    lambda site, left, priority, failed_on, assigned: subtask(
        0,
        site,
        kind=KIND_OF[site],
        hosts=("e", site) if KIND_OF[site] == "meta" else (site,),
        left=left,
        priority=priority,
        failed_on=failed_on,
        assigned=assigned,
    ),
    st.sampled_from("abc"),
    st.integers(0, 60),
    st.integers(0, 2),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=4).map(tuple),
    st.none() | st.sampled_from(NAMES),
)
some_work = st.lists(a_subtask, max_size=25)
some_nodes = st.lists(a_node, unique_by=lambda one: one.name)
some_hosts = st.lists(a_host, unique_by=lambda one: one.host)
some_stats = st.lists(a_pair, unique_by=lambda one: one[:2])


def numbered(work, begin=0):
    return [
        SubtaskFacts(
            id=begin + n,
            site=o.site,
            kind=o.kind,
            hosts=o.hosts,
            left=o.left,
            priority=o.priority,
            failed_on=o.failed_on,
            assigned=o.assigned,
        )
        for n, o in enumerate(work)
    ]


def may_run(wanted, one, hosts):
    return (
        wanted.kind in one.kinds
        and wanted.assigned in (None, one.name)
        and all(one.name not in hosts[host].resting for host in wanted.hosts if host in hosts)
    )


def check(decided, nodes, hosts):
    """Rules 1 to 5 of the ready queue, of one decision."""
    by_name, by_host = {one.name: one for one in nodes}, {one.host: one for one in hosts}
    for one in decided:
        wanted, chosen = one.subtask, by_name[one.node]
        assert may_run(wanted, chosen, by_host)
        able = [name for name in by_name if may_run(wanted, by_name[name], by_host)]
        if one.forgiven is None:
            assert one.node not in wanted.failed_on
        elif wanted.assigned is None:
            assert one.node == one.forgiven == next(name for name in wanted.failed_on if name in able)
            assert set(able) <= set(wanted.failed_on)
    for name, count in Counter(one.node for one in decided).items():
        assert count <= by_name[name].free
    asked = Counter((host, one.node) for one in decided for host in one.subtask.hosts)
    for host in hosts:
        assert sum(count for (name, _), count in asked.items() if name == host.host) <= host.room
        for name in by_name:
            limit = 1 if name in host.probing else host.address_limit
            assert limit is None or asked[host.host, name] <= limit


@every_strategy
@given(work=some_work, nodes=some_nodes, hosts=some_hosts, stats=some_stats, explain=st.booleans())
def test_every_decision_keeps_the_rules(case, work, nodes, hosts, stats, explain):
    name, given_settings = CASES[case]
    play = Play(name, nodes, stats, hosts, given_settings).put(*numbered(work))
    decided = play.decide(explain=explain)
    check(decided, nodes, hosts)
    waiting = play.why()
    assert sorted([*(one.subtask.id for one in decided), *waiting]) == list(range(len(work)))
    assert all(waiting.values())
    assert play.ready.waiting == len(waiting)
    for one in decided:
        assert bool(one.candidates) == explain
        assert not explain or one.candidates[0].node == one.node
        assert all(str(each.because) for each in one.candidates)


a_change = st.one_of(
    st.tuples(st.just("put"), some_work),
    st.tuples(st.just("node"), a_node),
    st.tuples(st.just("drop"), st.sampled_from(NAMES)),
    st.tuples(st.just("host"), a_host),
    st.tuples(st.just("later"), st.floats(0.0, 100.0)),
    st.tuples(st.just("read anew"), st.none()),
)


@every_strategy
@given(nodes=some_nodes, stats=some_stats, changes=st.lists(a_change, max_size=12))
def test_the_rules_hold_while_everything_changes_and_nothing_is_given_twice(case, nodes, stats, changes):
    name, given_settings = CASES[case]
    play = Play(name, nodes, stats, (), given_settings)
    shown, hosts, out, now_s = {one.name: one for one in nodes}, {}, set(), 0.0
    waiting, count = {}, 0
    for what, change in changes:
        if what == "put":
            new = numbered(change, count)
            count += len(new)
            waiting |= {one.id: one for one in new}
            play.put(*new)
        elif what == "node":
            shown[change.name] = change
        elif what == "drop":
            shown.pop(change, None)
            play.ready.drop_node(change)
        elif what == "host":
            hosts[change.host] = change
        elif what == "later":
            now_s += change
        else:
            play.ready.clear()
            play.put(*waiting.values())
        for one in shown.values():
            play.ready.set_node(one)
        for one in hosts.values():
            play.ready.set_host(one)
        decided = play.decide(now_s)
        check(decided, list(shown.values()), list(hosts.values()))
        for one in decided:
            assert one.subtask.id not in out
            out.add(one.subtask.id)
            del waiting[one.subtask.id]
        assert play.ready.waiting == len(waiting)
        assert set(play.why()) == set(waiting)


@pytest.mark.parametrize("strategy", NEVER_HOLD_BACK)
@given(work=some_work, nodes=some_nodes, hosts=some_hosts)
def test_those_that_look_at_no_yield_leave_no_slot_idle(strategy, work, nodes, hosts):
    play = Play(strategy, nodes, (), hosts).put(*numbered(work))
    play.decide()
    for level in play.ready.levels():
        for groups in level.sites.values():
            assert not any(play.ready.can_take(group, name) for group in groups for name in play.ready.free)


@every_strategy
def test_equal_queues_and_seeds_give_equal_decisions(case):
    name, given_settings = CASES[case]
    nodes, stats = [node(one, 2) for one in NAMES], [known("a", "n1"), known("c", "n2", seconds=3.0)]
    work = [subtask(number, "abc"[number % 3], left=5 + number) for number in range(40)]
    first, second = (Play(name, nodes, stats, (), given_settings).put(*work).decide() for _ in range(2))
    assert first == second


@every_strategy
def test_higher_priority_first_then_first_in(case):
    name, given_settings = CASES[case]
    play = Play(name, [node("n1", 3)], (), (), given_settings)
    play.put(*(subtask(number) for number in (3, 4, 5)), subtask(7, priority=5))
    assert set(play.given()) == {7, 3, 4}


# --- round_robin, least_loaded --------------------------------------------------------------------------------------


def test_nodes_take_turns_and_the_turn_is_remembered():
    play = Play("round_robin", [node(name) for name in "abc"])
    turns = []
    for number in range(5):
        turns += play.put(subtask(number)).given().values()
        for name in "abc":
            play.ready.set_free(name, 1)
    assert turns == ["a", "b", "c", "a", "b"]


def test_a_node_without_a_slot_misses_its_turn_and_one_that_left_is_forgotten():
    play = Play("round_robin", [node("a"), node("b", 0), node("c"), node("d")]).put(subtask(1), subtask(2))
    assert list(play.given().values()) == ["a", "c"]
    play.ready.drop_node("d")
    play.ready.set_free("a", 1)
    play.ready.set_free("c", 1)
    assert list(play.put(subtask(3)).given().values()) == ["a"]


def test_the_node_with_the_smallest_share_of_its_slots_taken_is_next():
    nodes = [node("half", 1, slots=2), node("quarter", 3, slots=4), node("most", 1, slots=5)]
    play = Play("least_loaded", nodes).put(subtask(1))
    assert play.given() == {1: "quarter"}
    assert Play("least_loaded", [node("two", 2, slots=4), node("one", 1, slots=2)]).put(
        subtask(1)
    ).given() == {1: "one"}


def test_chance_decides_between_equals():
    drawn = Counter()
    play = Play("least_loaded", [node(name) for name in NAMES])
    for number in range(200):
        chosen = play.put(subtask(number)).given()[number]
        drawn[chosen] += 1
        play.ready.set_free(chosen, 1)
    assert all(30 < drawn[name] < 70 for name in NAMES)


# --- sed --------------------------------------------------------------------------------------------------------------


def paced(**seconds):
    return [known("a", name, seconds=each) for name, each in seconds.items()]


def test_a_faster_node_is_given_more_before_a_slower_one_gets_any():
    stats = paced(swift=1.0, slow=2.5)
    play = Play("sed", [node("slow", 3), node("swift", 3)], stats).put(*(subtask(n) for n in range(3)))
    assert Counter(play.given().values()) == {"swift": 2, "slow": 1}


def test_a_subtask_waits_for_a_busy_node_where_that_takes_less():
    play = Play("sed", [node("slow"), node("swift", 0, slots=1)], paced(swift=1.0, slow=9.0)).put(subtask(1))
    assert play.given() == {}
    assert play.why()[1].startswith("waits for swift: ")


def test_work_is_shared_by_what_each_node_is_comparatively_good_at():
    stats = [
        known("a", "n1", seconds=1.0), known("a", "n2", seconds=4.0),
        known("b", "n1", seconds=4.0), known("b", "n2", seconds=1.0),
    ]  # fmt: skip
    play = Play("sed", [node("n1", 9), node("n2", 9)], stats)
    given = play.put(*(subtask(n, "ab"[n % 2]) for n in range(200))).given()
    assert {("ab"[number % 2], name) for number, name in given.items()} == {("a", "n1"), ("b", "n2")}


def test_what_nobody_may_run_waits_without_end():
    play = Play("sed", [node("m", kinds={"meta"})], paced(m=1.0))
    assert play.put(*(subtask(n, "w", kind="microblog") for n in range(9))).given() == {}


def test_a_node_that_fails_everything_at_once_does_not_look_fast():
    failing = ("a", "bad", PairStats(attempts=200, failed=200, offered=4000.0, active_s=20.0))
    play = Play("sed", [node("bad"), node("good")], [failing, known("a", "good", seconds=2.0)]).put(
        subtask(1)
    )
    assert play.given() == {1: "good"}


# --- feedback2014 -----------------------------------------------------------------------------------------------------


def test_the_highest_completion_rate_wins_among_free_nodes_however_fast_others_are():
    stats = [
        known("a", "n1", completion=0.7, seconds=0.6),
        known("a", "n2", completion=0.8),
        known("a", "n3", completion=0.9),
    ]
    nodes = [node("n1"), node("n2"), node("n3", 0)]
    assert Play("feedback2014", nodes, stats).put(subtask(1)).given() == {1: "n2"}


def test_a_node_whose_efficiency_is_too_poor_gets_no_more_even_if_it_is_the_only_one_free():
    stats = [known("a", "n1", completion=0.5, seconds=1.0), known("a", "n2", completion=0.95, seconds=8.0)]
    play = Play("feedback2014", [node("n1", 0), node("n2")], stats).put(subtask(1))
    assert play.given() == {}
    assert play.why()[1].startswith("free nodes are too slow (n2 8.4")
    assert play.given(60.0) == {}
    # 200 attempts have faded to less than half a one after 9 half-lives: it is not known any more
    assert play.given(9 * HALF_LIFE_S) == {1: "n2"}


def test_every_pair_is_tried_once_first():
    stats = [known("a", "n1", completion=1.0)]
    play = Play("feedback2014", [node(name, 2) for name in ("n1", "n2", "n3")], stats)
    assert Counter(play.put(*(subtask(n) for n in range(4))).given().values()) == {"n1": 2, "n2": 1, "n3": 1}


def test_a_node_that_collected_nothing_is_too_poor_beside_one_that_did():
    stats = [known("a", "n1", completion=0.1, seconds=30.0), known("a", "n2", completion=0.0)]
    play = Play("feedback2014", [node("n1"), node("n2")], stats).put(subtask(1), subtask(2))
    assert play.given() == {1: "n1"}


# --- balance ----------------------------------------------------------------------------------------------------------


def test_shares_end_together_and_are_kept_until_they_are_used_up():
    stats = [*paced(swift=1.0, slow=3.0), known("b", "swift"), known("b", "slow", seconds=3.0)]
    nodes = [node("swift", 400), node("slow", 400)]
    play = Play("balance", nodes, stats).put(*(subtask(n, "ab"[n % 2]) for n in range(400)))
    counts = Counter(play.given().values())
    assert counts["swift"] + counts["slow"] == 400
    assert 2.5 < counts["swift"] / counts["slow"] < 3.5


def test_a_node_with_both_kinds_gets_less_of_one_for_what_it_gets_of_the_other():
    nodes = [node("m", 99, {"meta"}), node("both", 99)]
    play = Play("balance", nodes)
    play.put(*(subtask(n, left=10) for n in range(30)))
    play.put(*(subtask(n, "w", kind="microblog", left=10) for n in range(30, 40)))
    meta = Counter(name for number, name in play.given().items() if number < 30)
    assert meta == {"m": 20, "both": 10}


def test_a_network_says_what_a_node_takes_for_each_of_its_slots():
    curves = {"wide": linear(1.0, 4.0), "narrow": linear(1.0, 1.0)}
    nodes = [node("wide", 99, slots=8), node("narrow", 99, slots=1)]
    play = Play("balance", nodes, paced(wide=1.0, narrow=1.0), run_times=curves)
    counts = Counter(play.put(*(subtask(n, left=10) for n in range(90))).given().values())
    assert counts == {"wide": 60, "narrow": 30}


def test_a_subtask_only_a_node_without_a_share_may_run_is_not_left_for_ever():
    play = Play("balance", [node("swift"), node("slow")], paced(swift=0.01, slow=900.0))
    assert play.put(subtask(1, failed_on=("swift",))).given() == {1: "slow"}


# --- hash -------------------------------------------------------------------------------------------------------------


def owners(names, numbers=range(600), stats=(), hosts=(), **more):
    nodes = [node(name, 10_000) for name in names]
    return Play("hash", nodes, stats, hosts).put(*(subtask(n, "abc"[n % 3], **more) for n in numbers)).given()


def test_who_owns_a_subtask_depends_on_nothing_but_the_nodes():
    assert owners(NAMES) == owners(NAMES[::-1], range(599, -1, -1))


def test_when_a_node_goes_only_its_subtasks_move_and_they_spread():
    before, after = owners(NAMES), owners(NAMES[1:])
    moved = {number for number in before if before[number] != after[number]}
    assert moved == {number for number, name in before.items() if name == "n1"}
    assert {after[number] for number in moved} == set(NAMES[1:])


def test_nodes_own_about_equally_many():
    counts = Counter(owners([f"node{number}" for number in range(10)], range(3000)).values())
    assert all(180 < counts[f"node{number}"] < 440 for number in range(10))


def test_a_subtask_waits_for_its_owner_while_others_are_idle():
    before = owners(NAMES)
    play = Play("hash", [node(name, 0 if name == "n1" else 10_000) for name in NAMES])
    play.put(*(subtask(n, "abc"[n % 3]) for n in range(600)))
    given = play.given()
    assert given == {number: name for number, name in before.items() if name != "n1"}
    assert {why.partition(",")[0] for why in play.why().values()} == {"waits for n1"}
    play.ready.set_free("n1", 10_000)
    assert set(play.given().values()) == {"n1"}


def test_where_the_owner_failed_it_or_is_refused_the_next_on_the_ring_takes_it():
    moved = owners(NAMES[1:])
    assert owners(NAMES, failed_on=("n1",)) == moved
    refusing = [HostFacts(host=host, room=9999, resting=frozenset({"n1"})) for host in "abc"]
    assert owners(NAMES, hosts=refusing) == moved


def test_a_rest_that_begins_or_ends_moves_what_waits():
    play = Play("hash", [node(name, 0, slots=9) for name in NAMES])
    play.put(*(subtask(n, "a") for n in range(60)))
    wanted = owners(NAMES, range(0, 180, 3))
    assert wanted  # the same sites and numbers as below
    play.decide()
    play.ready.set_host(HostFacts(host="a", room=9999, resting=frozenset({"n1", "n2", "n3"})))
    play.ready.set_free("n4", 20)
    assert set(play.given().values()) == {"n4"}
    play.ready.set_host(HostFacts(host="a", room=9999))
    for name in NAMES:
        play.ready.set_free(name, 99)
    fresh = ConsistentHash(AllocationSettings())
    ready = ReadyQueue([node(name, 99) for name in NAMES])
    for number in range(20, 60):
        ready.put(subtask(number, "a"))
    expected = fresh.decide(ready, Knowledge(), 0.0, Random(0))
    assert play.given() == {one.subtask.id: one.node for one in expected}


@given(
    work=some_work,
    nodes=some_nodes,
    first=some_hosts,
    then=some_hosts,
    gone=st.frozensets(st.sampled_from(NAMES)),
)
def test_owners_that_were_followed_are_those_of_a_queue_made_anew(work, nodes, first, then, gone):
    followed = Play("hash", [node(one.name, 0, one.kinds) for one in nodes], (), first).put(
        *numbered(work[::2])
    )
    followed.ready.set_node(node("other", 1, {"none"}))
    followed.decide()  # no free node can take anything, but owners were looked up
    for name in gone:
        followed.ready.drop_node(name)
    left = [one for one in nodes if one.name not in gone]
    hosts = {one.host: one for one in (*first, *then)}
    for one in then:
        followed.ready.set_host(one)
    for one in left:
        followed.ready.set_node(one)
    followed.put(*numbered(work[1::2], 100))
    anew = Play("hash", [node("other", 1, {"none"}), *left], (), hosts.values())
    anew.put(*numbered(work[::2]), *numbered(work[1::2], 100))
    anew.ready.changes += 1
    assert followed.given() == anew.given()


# --- proximity --------------------------------------------------------------------------------------------------------


def near(nearest, names=NAMES, numbers=range(300), **more):
    ms = {("a", "n1"): 40.0, ("a", "n2"): 10.0, ("a", "n3"): 20.0, ("a", "n4"): 30.0}
    play = Play("proximity", [node(name, 999) for name in names], distances=Table(ms), nearest=nearest)
    return Counter(play.put(*(subtask(n, **more) for n in numbers)).given().values())


def test_top_1_goes_to_the_nearest_and_top_k_to_the_k_nearest_alike():
    assert near(1) == {"n2": 300}
    counts = near(3)
    assert set(counts) == {"n2", "n3", "n4"}
    assert all(70 < count < 130 for count in counts.values())


def test_the_next_nearest_takes_the_place_of_one_that_may_not():
    assert near(1, ("n1", "n3", "n4")) == {"n3": 300}
    assert near(1, failed_on=("n2",)) == {"n3": 300}
    assert set(near(2, failed_on=("n3",))) == {"n2", "n4"}


def test_it_waits_for_the_node_drawn():
    play = Play("proximity", [node("n1"), node("n2", 0), node("n3")], distances=FAR, nearest=1)
    play.ready.set_host(HostFacts(host="a", room=9, resting=frozenset({"n1"})))
    assert play.put(subtask(1)).given() == {}
    assert play.why()[1].endswith(": n2 (20 ms)")


def test_nodes_of_unknown_delay_come_last_and_differ_by_site():
    names = [f"node{number}" for number in range(6)]
    delays = Table({(f"s{n}", "node5"): 500.0 for n in range(20)})
    play = Play("proximity", [node(name, 999) for name in names], distances=delays, nearest=1)
    assert set(play.put(*(subtask(n, f"s{n}") for n in range(20))).given().values()) == {"node5"}
    play.ready.drop_node("node5")
    assert len(set(play.put(*(subtask(n, f"s{n % 20}") for n in range(20, 99))).given().values())) > 2


# --- the distance prior of feedback -----------------------------------------------------------------------------------


SITES, NODES = [f"s{n}" for n in range(6)], [f"m{n}" for n in range(6)]
DELAYS = {
    (site, name): 20.0 + 40.0 * ((i * 5 + j * 3) % 6)
    for i, site in enumerate(SITES)
    for j, name in enumerate(NODES)
}


def seen_pairs(slope):
    return {
        (site, name): known(site, name, seconds=0.2 + slope * ms / 1000.0)
        for (site, name), ms in DELAYS.items()
        if name != "m5"
    }


def test_pairs_without_data_are_guessed_from_the_distance_the_others_not():
    knowledge = known_as(seen_pairs(10.0).values())
    guess = distance_prior(Table(DELAYS), knowledge, 0.0, SITES, NODES)
    assert np.isnan(guess[:, :5]).all()
    expected = [0.2 + 10.0 * DELAYS[site, "m5"] / 1000.0 for site in SITES]
    assert guess[:, 5] == pytest.approx(np.array(expected), rel=0.1)


def test_feedback_sends_a_new_site_to_a_near_node():
    delays = DELAYS | {("new", name): 10.0 + 200.0 * n for n, name in enumerate(NODES)}
    nodes = [node(name) for name in NODES]
    play = Play("feedback", nodes, seen_pairs(10.0).values(), distances=Table(delays))
    chosen = Counter()
    for number in range(30):
        play.rng = Random(number)
        for name in NODES:
            play.ready.set_free(name, 1)
        for one in play.put(subtask(number, "new")).decide(100.0 * number):
            chosen[one.node] += 1
    assert chosen["m0"] + chosen["m1"] > 20
