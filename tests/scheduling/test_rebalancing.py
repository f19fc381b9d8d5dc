"""Rebalancing: which leases move, which never do, and that it comes to rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import HostFacts, NodeFacts, PrefetchedLease
from tasks.scheduling import eligibility, rebalancing
from tasks.scheduling.rebalancing import (
    GAIN_S,
    NodeLoad,
    Rebalancing,
    StartRate,
    is_unbalanced,
    start_rate,
)

META = frozenset({"meta"})
HOST = "a.cn"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def node_load(
    name: str, prefetched: int, per_s: float, free: int = 8, vacant: int = 0, kinds=META
) -> NodeLoad:
    rate = StartRate(per_s, vacant)
    return NodeLoad(name=name, kinds=kinds, slots=4, prefetched=prefetched, free=free, rate=rate)


def lease(number: int, node: str, age_s: float = 60.0, **facts) -> PrefetchedLease:
    facts = {"kind": "meta", "hosts": (HOST,), **facts}
    granted_at = NOW - timedelta(seconds=age_s)
    of = {"id": number, "site": HOST, "left": 10, "priority": 0, "attempt_id": number}
    return PrefetchedLease(node=node, granted_at=granted_at, **of, **facts)


def rebalance(loads, leases, hosts) -> Rebalancing:
    return rebalancing.rebalance(loads, leases, hosts, NOW)


def of(*holders: NodeLoad) -> list[PrefetchedLease]:
    """Leases as the holders hold them."""
    names = [one.name for one in holders for _ in range(one.prefetched)]
    return [lease(number, name) for number, name in enumerate(names, 1)]


def numbers(decided: Rebalancing) -> list[int]:
    return [one.lease.attempt_id for one in decided.returned]


class TestStartRate:
    def test_throughput_stands_where_every_slot_is_taken(self) -> None:
        assert start_rate(4, 4, 0.5, 2.0) == StartRate(0.5, 0)

    def test_before_there_is_one_each_slot_is_expected_to_end_an_attempt_within_the_horizon(self) -> None:
        assert start_rate(6, 6, 0.0, 0.0) == StartRate(0.2, 0)

    def test_what_an_idle_node_was_given_is_not_what_it_can_do(self) -> None:
        assert start_rate(6, 4, 0.01, 0.0) == StartRate(0.2, 2)
        assert start_rate(6, 4, 3.0, 0.0) == StartRate(3.0, 2)

    def test_a_node_that_begins_nothing_has_no_vacant_slot_and_no_throughput_to_boast_of(self) -> None:
        assert start_rate(4, 0, 3.0, 20.0) == StartRate(0.05, 0)
        assert start_rate(4, 4, 0.01, 20.0) == StartRate(0.01, 0)

    def test_within_a_heartbeat_its_notification_may_still_be_on_its_way(self) -> None:
        assert start_rate(4, 0, 3.0, 5.0) == StartRate(3.0, 4)

    def test_what_a_vacant_slot_takes_does_not_wait(self) -> None:
        assert [StartRate(0.5, 2).wait_s(held) for held in (0, 2, 3)] == [0.0, 0.0, 2.0]


class TestWhatMoves:
    def test_the_last_granted_first_until_expected_waits_are_alike(self) -> None:
        full, dry = node_load("full", 10, 0.1), node_load("dry", 0, 0.1)
        decided = rebalance([full, dry], of(full, dry), {})
        assert numbers(decided) == [10, 9, 8, 7, 6]
        assert decided.takes == {"dry": 5}

    def test_in_proportion_to_throughput(self) -> None:
        slow, fast = node_load("slow", 12, 0.1, free=20), node_load("fast", 0, 0.5, free=20)
        assert rebalance([slow, fast], of(slow), {}).takes == {"fast": 10}

    def test_no_more_than_there_is_room_for(self) -> None:
        full, dry = node_load("full", 10, 0.1), node_load("dry", 0, 1.0, free=3)
        assert rebalance([full, dry], of(full), {}).takes == {"dry": 3}

    def test_no_more_at_once_than_a_short_transaction_bears(self, monkeypatch) -> None:
        monkeypatch.setattr(rebalancing, "MOST_MOVED", 2)
        full, dry = node_load("full", 10, 0.1), node_load("dry", 0, 1.0)
        assert len(rebalance([full, dry], of(full), {}).returned) == 2

    def test_it_says_why_with_figures(self) -> None:
        full, dry = node_load("full", 10, 0.1), node_load("dry", 0, 0.1, vacant=2)
        first, *_ = rebalance([full, dry], of(full), {}).returned
        assert str(first.because) == (
            "rebalanced: full has 10 not begun at 0.1 attempts/s and would begin this one in 100 s, dry in 0 s"
        )


class TestWhatStays:
    """Of ten leases with 100 s to wait, beside a node that could begin them at once."""

    def decide(self, *, dry: NodeLoad | None = None, hosts=None, **facts) -> Rebalancing:
        full = node_load("full", 10, 0.1)
        leases = [lease(number, "full", **facts) for number in range(1, 11)]
        return rebalance([full, dry or node_load("dry", 0, 1.0)], leases, hosts or {})

    def test_but_for_these_reasons_it_would_move(self) -> None:
        assert self.decide().takes == {"dry": 8}

    def test_a_node_of_another_kind(self) -> None:
        assert self.decide(dry=node_load("dry", 0, 1.0, kinds=frozenset({"microblog"}))) == Rebalancing()

    def test_a_node_that_failed_it(self) -> None:
        assert self.decide(failed_on=("dry",)) == Rebalancing()

    def test_a_node_whose_address_the_host_refuses(self) -> None:
        assert (
            self.decide(hosts={HOST: HostFacts(host=HOST, room=9, resting=frozenset({"dry"}))})
            == Rebalancing()
        )

    def test_a_node_that_probes_the_host_takes_one(self) -> None:
        assert self.decide(hosts={HOST: HostFacts(host=HOST, room=9, probing=frozenset({"dry"}))}).takes == {
            "dry": 1
        }

    def test_a_node_whose_address_may_ask_the_host_no_oftener(self) -> None:
        view = HostFacts(host=HOST, room=9, address_limit=4, held={"dry": 1})
        assert self.decide(hosts={HOST: view}).takes == {"dry": 3}

    def test_what_a_person_asked_this_node_for(self) -> None:
        assert self.decide(assigned="full") == Rebalancing()

    def test_a_lease_that_moved_a_moment_ago(self) -> None:
        assert self.decide(age_s=9.9) == Rebalancing()
        assert self.decide(age_s=10.0) != Rebalancing()

    def test_what_would_gain_too_little(self) -> None:
        assert self.decide(dry=node_load("dry", 94, 1.0, free=20)) == Rebalancing()
        assert self.decide(dry=node_load("dry", 93, 1.0, free=20)).takes == {"dry": 1}

    def test_what_would_gain_too_little_where_it_may_go(self) -> None:
        full, half = node_load("full", 10, 0.1), node_load("half", 96, 1.0)
        dry = node_load("dry", 0, 1.0)
        leases = [lease(number, "full", failed_on=("dry",)) for number in range(1, 11)]
        assert rebalance([full, half, dry], leases, {}) == Rebalancing()

    def test_leases_of_a_node_that_takes(self) -> None:
        """In one decision: the next one sees what became of this."""
        both = META | {"microblog"}
        full = node_load("full", 10, 0.1, kinds=both)
        between, dry = node_load("between", 7, 0.1, kinds=both), node_load("dry", 0, 0.1)
        leases = [lease(number, "full", kind="microblog") for number in range(1, 11)]
        leases += [lease(number, "between") for number in range(11, 18)]
        assert rebalance([full, between, dry], leases, {}).takes == {"between": 1}

    def test_leases_of_nodes_that_are_not_there(self) -> None:
        assert rebalance([node_load("dry", 0, 1.0)], [lease(1, "gone")], {}) == Rebalancing()


NAMES = ("n1", "n2", "n3", "n4")
rates = st.sampled_from([0.01, 0.03, 0.1, 0.5, 2.0, 40.0])
kinds = st.sampled_from([META, META | {"microblog"}])


@st.composite
def states(draw, *, alike: bool = False):
    """Nodes, their leases, hosts. `alike`: any node may take any lease."""
    holders = [
        NodeLoad(
            name=name,
            kinds=META if alike else draw(kinds),
            slots=4,
            prefetched=draw(st.integers(0, 12)),
            free=draw(st.integers(0, 12)),
            rate=StartRate(draw(rates), draw(st.integers(0, 3))),
        )
        for name in NAMES[: draw(st.integers(1, 4))]
    ]
    leases = []
    for one in holders:
        for _ in range(one.prefetched):
            facts = {} if alike else _facts(draw, one)
            leases.append(lease(len(leases) + 1, one.name, **facts))
    view = HostFacts(
        host=HOST,
        room=5,
        resting=draw(st.frozensets(st.sampled_from(NAMES))),
        address_limit=draw(st.none() | st.integers(1, 5)),
    )
    return holders, leases, {} if alike else {HOST: view}


def _facts(draw, one: NodeLoad) -> dict[str, object]:
    return {
        "kind": draw(st.sampled_from(sorted(one.kinds))),
        "failed_on": tuple(draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2))),
        "assigned": draw(st.sampled_from([None, None, one.name])),
        "age_s": draw(st.sampled_from([0.0, 9.0, 60.0])),
    }


def after(holders: list[NodeLoad], decided: Rebalancing) -> list[NodeLoad]:
    """The nodes once the leases have moved."""
    gave = Counter(one.lease.node for one in decided.returned)
    took = decided.takes
    return [
        replace(
            one,
            prefetched=one.prefetched - gave[one.name] + took.get(one.name, 0),
            free=one.free + gave[one.name] - took.get(one.name, 0),
        )
        for one in holders
    ]


def waits(holders: list[NodeLoad]) -> float:
    """Sum over all leases of the time until each begins."""
    return sum(one.rate.wait_s(place) for one in holders for place in range(1, one.prefetched + 1))


@given(states())
def test_only_leases_that_are_held_move_each_once_and_as_many_are_taken(state) -> None:
    holders, leases, hosts = state
    decided = rebalance(holders, leases, hosts)
    chosen = numbers(decided)
    assert len(set(chosen)) == len(chosen) == sum(decided.takes.values())
    assert set(chosen) <= {one.attempt_id for one in leases}
    givers = {one.lease.node for one in decided.returned}
    assert not givers & decided.takes.keys()
    free = {one.name: one.free for one in holders}
    assert all(0 < n <= free[name] for name, n in decided.takes.items())
    assert decided == Rebalancing() or is_unbalanced(holders), "the cheap look misses nothing"


@given(states())
def test_every_lease_that_moves_saves_more_than_the_gain(state) -> None:
    holders, leases, hosts = state
    decided = rebalance(holders, leases, hosts)
    saved = waits(holders) - waits(after(holders, decided))
    if decided.returned:
        assert saved > GAIN_S * len(decided.returned) * (1 - 1e-9)
    else:
        assert saved == 0


@given(states(alike=True))
def test_a_node_gives_no_more_than_its_surplus(state) -> None:
    holders, leases, hosts = state
    decided = rebalance(holders, leases, hosts)
    then = {one.name: one for one in after(holders, decided)}
    for giver in {one.lease.node for one in decided.returned}:
        one_more = then[giver].rate.wait_s(then[giver].prefetched + 1)
        assert all(one_more > then[taker].wait_s for taker in decided.takes)


@given(states(alike=True))
def test_the_last_granted_first_and_balanced_after_one_decision(state) -> None:
    holders, leases, hosts = state
    decided = rebalance(holders, leases, hosts)
    for one in holders:
        mine = [held.attempt_id for held in leases if held.node == one.name]
        gave = [n for n in numbers(decided) if n in mine]
        assert gave == mine[len(mine) - len(gave) :][::-1]


@given(states())
def test_repeated_it_comes_to_rest(state) -> None:
    """Even if leases never had to rest: the sum of waits falls with each move, and it cannot fall for ever."""
    holders, leases, hosts = state
    hosts = {name: replace(view, address_limit=None) for name, view in hosts.items()}
    for _ in range(len(leases) * len(holders) + 1):
        decided = rebalance(holders, leases, hosts)
        if not decided.returned:
            break
        leases = _moved(holders, leases, decided, hosts)
        holders = after(holders, decided)
    assert rebalance(holders, leases, hosts) == Rebalancing()


def _moved(holders, leases, decided, hosts) -> list[PrefetchedLease]:
    """The leases once each has gone to a node that may take it, as many to each as was decided."""
    gone = {one.lease.attempt_id for one in decided.returned}
    stay = [one for one in leases if one.attempt_id not in gone]
    top = max(one.attempt_id for one in leases)
    places = [name for name, n in decided.takes.items() for _ in range(n)]
    by_name = {one.name: one for one in holders}
    moved = _matched([one.lease for one in decided.returned], places, by_name, hosts)
    return stay + [
        replace(one, node=name, attempt_id=top + n) for n, (one, name) in enumerate(moved, start=1)
    ]


def _matched(wanting, places, by_name, hosts):
    """Some way to give each lease a place it may have: there is one, or the decision was wrong."""
    if not wanting:
        return []
    first, *rest = wanting
    for name in dict.fromkeys(places):
        nodes = {one.name: NodeFacts(one.name, one.kinds, 1, 1) for one in by_name.values()}
        if not eligibility.may_take(first, name, nodes, hosts):
            continue
        left = list(places)
        left.remove(name)
        found = _matched(rest, left, by_name, hosts)
        if found is not None:
            return [(first, name), *found]
    return None


@pytest.mark.parametrize("gap_s", [0.0, 5.0])
def test_a_balanced_state_stays_as_it_is(gap_s: float) -> None:
    one, two = node_load("n1", 5, 1.0), node_load("n2", 0, 1.0)
    balanced = replace(one, prefetched=round(gap_s) + 1)
    assert rebalance([balanced, two], of(balanced), {}) == Rebalancing()
    assert not is_unbalanced([balanced, two])


def test_where_kinds_differ_there_is_nothing_to_look_at() -> None:
    full, dry = node_load("full", 10, 0.1), node_load("dry", 0, 1.0, kinds=frozenset({"microblog"}))
    assert is_unbalanced([full, node_load("dry", 0, 1.0)])
    assert not is_unbalanced([full, dry])
    assert not is_unbalanced([full, node_load("dry", 0, 1.0, free=0)])
