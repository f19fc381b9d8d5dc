from collections import Counter
from math import inf

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.scheduling.ready_queue import ReadyQueue, size_class

META = frozenset({"meta"})
NAMES = ("n1", "n2", "n3")
HOSTS = ("a", "b", "engine")


def node(name, free=1, kinds=META):
    return NodeFacts(name, kinds, free, 4)


def subtask(number, site="a", *, left=20, priority=0, hosts=None, **more):
    return SubtaskFacts(
        id=number,
        site=site,
        kind="meta",
        hosts=(site,) if hosts is None else hosts,
        left=left,
        priority=priority,
        **more,
    )


def groups_of(ready):
    return [group for level in ready.levels() for groups in level.sites.values() for group in groups]


def in_order(ready):
    return [group for level in ready.levels() for group in ready.iter_groups(level)]


def all_taken(ready, name="n1"):
    """Numbers in the order in which they are given, if everything goes to one node."""
    taken = []
    for level in ready.levels():
        for group in ready.iter_groups(level):
            ready.set_free(name, 1)
            taken.append(ready.take(group, name).id)
    return taken


def test_levels_come_highest_first_and_only_while_something_waits():
    ready = ReadyQueue([node("n1")])
    for number, priority in enumerate([0, 5, -1, 5]):
        ready.put(subtask(number, priority=priority))
    assert [group.first.priority for group in groups_of(ready)] == [5, 0, -1]
    assert all_taken(ready) == [1, 3, 0, 2]
    assert list(ready.levels()) == []
    ready.put(subtask(9, priority=5))
    assert all_taken(ready) == [9]


def test_what_rules_tell_apart_is_in_groups_of_its_own():
    ready = ReadyQueue()
    for number, more in enumerate(
        [{}, {}, {"left": 21}, {"left": 90}, {"failed_on": ("n1",)}, {"assigned": "n1"}, {"site": "b"}]
    ):
        ready.put(subtask(number, **more))
    assert [[one.id for one in group.queue] for group in in_order(ready)] == [[0, 1, 2], [3], [4], [5], [6]]


@pytest.mark.parametrize(
    ("left", "expected"), [(-1, 1), (0, 1), (1, 1), (2, 2), (3, 2), (63, 6), (64, 7), (9999, 7)]
)
def test_sizes_are_alike_to_a_factor_of_two(left, expected):
    assert size_class(left) == expected


def test_a_subtask_with_nothing_left_counts_as_one_target():
    ready = ReadyQueue([node("n1")])
    ready.put(subtask(1, left=0))
    assert (ready.backlog["a"].left, groups_of(ready)[0].pages) == (1, 1)
    ready.take(groups_of(ready)[0], "n1")
    assert not ready.backlog


def test_groups_passed_over_keep_their_place_and_those_taken_from_come_again():
    ready = ReadyQueue([node("n1", 9)])
    for number, site in enumerate("abab"):
        ready.put(subtask(number, site))
    seen = []
    for group in ready.iter_groups(next(ready.levels())):
        seen.append(group.first.id)
        if group.first.site == "a":
            ready.take(group, "n1")
    assert seen == [0, 1, 2]
    assert [group.first.id for group in in_order(ready)] == [1]


def test_a_reader_that_stops_in_the_middle_loses_nothing():
    ready = ReadyQueue([node("n1", 9)])
    for number, site in enumerate("abcab"):
        ready.put(subtask(number, site))
    reading = ready.iter_groups(next(ready.levels()))
    next(reading)
    ready.take(next(reading), "n1")
    reading.close()
    assert [group.first.id for group in in_order(ready)] == [0, 2, 4]


def test_the_order_is_kept_in_little_room_however_much_is_taken_past_it():
    """A strategy that goes by site never reads the order; what it took may not pile up there."""
    ready = ReadyQueue([node("n1")])
    ready.put(subtask(0))
    for number in range(1, 3000):
        ready.put(subtask(number))
        ready.set_free("n1", 1)
        ready.take(groups_of(ready)[0], "n1")
    assert len(next(ready.levels()).order) < 200
    assert [group.first.id for group in in_order(ready)] == [2999]


def test_the_order_survives_being_kept_in_little_room_while_it_is_read():
    ready = ReadyQueue([node("n1")])
    for number in range(2000):
        ready.put(subtask(number, "ab"[number % 2]))
    ready.put(subtask(5000, "c"))
    passed = 0
    for group in ready.iter_groups(next(ready.levels())):
        if group.first.site == "a":
            ready.take(group, "n1")
        passed += group.first.site == "b"
    assert passed == 1
    assert [group.first.id for group in in_order(ready)] == [1, 5000]


def test_a_host_set_anew_forgets_what_was_taken_before():
    ready = ReadyQueue([node("n1", 9)], {"a": HostFacts(host="a", room=9, address_limit=2)})
    for number in range(5):
        ready.put(subtask(number))
    group = groups_of(ready)[0]
    for _ in range(2):
        ready.take(group, "n1")
    assert not ready.can_take(group, "n1")
    assert (ready.capacity.remaining(group.first.hosts), ready.capacity.held("a", "n1")) == (7, 2)
    ready.set_host(HostFacts(host="a", room=8, address_limit=2))  # both have ended meanwhile
    assert ready.can_take(group, "n1")
    assert (ready.capacity.remaining(group.first.hosts), ready.capacity.held("a", "n1")) == (8, 0)


def test_a_host_counts_an_attempt_once_that_it_is_engine_and_site_of():
    ready = ReadyQueue([node("n1", 9)], {"a": HostFacts(host="a", room=2)})
    ready.put(subtask(1, hosts=("a", "a")))
    ready.take(groups_of(ready)[0], "n1")
    assert (ready.capacity.remaining("a"), ready.capacity.held("a", "n1")) == (1, 1)


def test_an_address_is_given_as_many_attempts_as_use_up_what_it_is_granted():
    view = HostFacts(host="a", room=9, address_limit=6, shares={"n1": 0.3, "n2": 0.01})
    ready = ReadyQueue([node("n1"), node("n2"), node("n3")], {"a": view})
    assert [ready.capacity.remaining_for("a", name) for name in ("n1", "n2", "n3")] == [2, 1, 6]


def test_a_host_that_was_never_set_has_no_limit():
    ready = ReadyQueue([node("n1")])
    ready.put(subtask(1))
    assert ready.capacity.remaining("a") == inf
    assert ready.capacity.remaining_for("a", "n1") == inf


def test_a_node_that_is_gone_is_not_free_whatever_ends_on_it():
    ready = ReadyQueue([node("n1", 2)])
    ready.drop_node("n1")
    ready.set_free("n1", 1)
    ready.drop_node("n1")
    assert (ready.nodes, ready.free) == ({}, {})


def test_the_version_grows_with_sites_nodes_kinds_and_rests_only():
    ready = ReadyQueue([node("n1")], {"a": HostFacts(host="a", room=9)})
    ready.put(subtask(1))

    def grown(act):
        before = ready.version
        act()
        return ready.version > before

    assert not grown(lambda: ready.put(subtask(2)))
    assert not grown(lambda: ready.set_node(node("n1", 3)))
    assert not grown(lambda: ready.set_host(HostFacts(host="a", room=3)))
    assert not grown(lambda: ready.drop_node("nobody"))
    assert grown(lambda: ready.put(subtask(3, "b")))
    assert grown(lambda: ready.set_node(node("n2")))
    assert grown(lambda: ready.set_node(node("n1", 3, frozenset({"microblog"}))))
    assert grown(lambda: ready.set_host(HostFacts(host="a", room=3, resting=frozenset({"n1"}))))
    assert grown(lambda: ready.drop_node("n2"))


class Bookkeeping(RuleBasedStateMachine):
    """Whatever happens, in any order: counters are what a recount gives, and nothing is given twice."""

    def __init__(self):
        super().__init__()
        self.ready = ReadyQueue([node("n1", 2), node("n2", 1)], {"a": HostFacts(host="a", room=3)})
        self.waiting = {}
        self.given = []
        self.held = Counter()
        self.ids = 0

    @rule(
        site=st.sampled_from("ab"),
        priority=st.integers(0, 1),
        left=st.sampled_from([0, 1, 20, 100]),
        failed_on=st.sampled_from([(), ("n1",)]),
        engine=st.booleans(),
    )
    def put(self, site, priority, left, failed_on, engine):
        self.ids += 1
        hosts = ("engine", site) if engine else (site,)
        one = subtask(self.ids, site, left=left, priority=priority, failed_on=failed_on, hosts=hosts)
        self.waiting[one.id] = one
        self.ready.put(one)

    @rule(name=st.sampled_from(NAMES), free=st.integers(0, 3))
    def set_node(self, name, free):
        self.ready.set_node(node(name, free))

    @rule(name=st.sampled_from(NAMES))
    def drop_node(self, name):
        self.ready.drop_node(name)

    @rule(name=st.sampled_from(NAMES), free=st.integers(-1, 3))
    def set_free(self, name, free):
        self.ready.set_free(name, free)

    @rule(
        host=st.sampled_from(HOSTS),
        room=st.integers(-1, 3),
        resting=st.frozensets(st.sampled_from(NAMES), max_size=1),
        limit=st.none() | st.integers(0, 2),
        held=st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2)),
    )
    def set_host(self, host, room, resting, limit, held):
        self.ready.set_host(HostFacts(host=host, room=room, resting=resting, address_limit=limit, held=held))
        self.held = Counter({pair: count for pair, count in self.held.items() if pair[0] != host})
        self.held.update({(host, name): count for name, count in held.items()})

    @precondition(lambda self: self.ready.waiting)
    @rule(data=st.data())
    def take_by_site(self, data):
        group = data.draw(st.sampled_from(groups_of(self.ready)))
        self._take(group, data.draw(st.sampled_from(NAMES)))

    @precondition(lambda self: self.ready.waiting)
    @rule(passing=st.integers(0, 3), most=st.integers(1, 3), name=st.sampled_from(NAMES))
    def take_in_order(self, passing, most, name):
        for level in self.ready.levels():
            numbers = []
            for place, group in enumerate(self.ready.iter_groups(level)):
                numbers.append(group.first.id)
                if place >= passing:
                    self._take(group, name)
                if place >= passing + most:
                    break
            assert numbers == sorted(numbers)

    @precondition(lambda self: self.ready.waiting)
    @rule(data=st.data(), name=st.sampled_from(NAMES))
    def take_one_that_is_not_next(self, data, name):
        group = data.draw(st.sampled_from(groups_of(self.ready)))
        if self.ready.can_take(group, name):
            place = data.draw(st.integers(0, len(group.queue) - 1))
            expected = group.queue[place]
            assert self.ready.take(group, name, place) == expected == self.waiting.pop(expected.id)
            self.given.append(expected.id)
            self.held.update((host, name) for host in set(expected.hosts))

    def _take(self, group, name):
        if not self.ready.can_take(group, name):
            return
        free, room = self.ready.free[name], self.ready.capacity.remaining(group.first.hosts)
        oldest = group.first
        alike = [one.id for one in group.queue]
        assert alike == sorted(alike)
        taken = self.ready.take(group, name)
        assert taken == oldest == self.waiting.pop(taken.id)
        self.given.append(taken.id)
        for host in set(taken.hosts):
            self.held[host, name] += 1
        assert self.ready.free.get(name, 0) == free - 1
        assert min([self.ready.capacity.remaining([host]) for host in taken.hosts]) == room - 1 or room == inf

    @invariant()
    def nothing_is_given_twice_or_lost(self):
        assert len(set(self.given)) == len(self.given)
        assert sorted([*self.given, *self.waiting]) == list(range(1, self.ids + 1))
        listed = [one.id for group in groups_of(self.ready) for one in group.queue]
        assert sorted(listed) == sorted(self.waiting)

    @invariant()
    def those_that_are_able_can_take_it(self):
        for group in groups_of(self.ready):
            able = [name for name in self.ready.free if self.ready.can_take(group, name)]
            assert self.ready.able(group) == able

    @invariant()
    def counters_equal_a_recount(self):
        left, count = Counter(), Counter()
        for one in self.waiting.values():
            left[one.site] += max(1, one.left)
            count[one.site] += 1
        assert self.ready.waiting == len(self.waiting)
        assert {site: one.left for site, one in self.ready.backlog.items()} == left
        assert {site: one.subtasks for site, one in self.ready.backlog.items()} == count
        for group in groups_of(self.ready):
            assert group.first is group.queue[0]

    @invariant()
    def what_is_held_and_free_is_what_was_set_and_taken(self):
        for host in HOSTS:
            for name in NAMES:
                assert self.ready.capacity.held(host, name) == self.held[host, name]
        assert all(free > 0 and name in self.ready.nodes for name, free in self.ready.free.items())

    @invariant()
    def the_order_has_every_group_once(self):
        listed = in_order(self.ready)
        assert len({id(group) for group in listed}) == len(listed) == len(groups_of(self.ready))


Bookkeeping.TestCase.settings = settings(stateful_step_count=40)
TestBookkeeping = Bookkeeping.TestCase
