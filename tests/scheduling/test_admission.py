"""Admission: every site gets its window, the urgent come in at once, and WAIT stays bounded."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.facts import Entrant
from tasks.scheduling.admission import LEAST, admit, bound, openings

queues = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 2)), max_size=60)
counts = st.dictionaries(
    st.tuples(st.sampled_from("abcdefg"), st.integers(0, 2)), st.integers(1, 9), max_size=9
)
limits = st.integers(1, 40)


def queued(subtasks: list[tuple[str, int]]) -> list[Entrant]:
    """In queue order."""
    entrants = [Entrant(number, site, priority) for number, (site, priority) in enumerate(subtasks)]
    return sorted(entrants, key=lambda one: (-one.priority, one.id))


def heads_of(queue: list[Entrant]) -> dict[str, int]:
    heads: dict[str, int] = {}
    for one in queue:
        heads[one.site] = max(one.priority, heads.get(one.site, one.priority))
    return heads


def let_in(queue: list[Entrant], waiting: dict[tuple[str, int], int], limit: int) -> list[int]:
    """As the sweep does it: of each site only what `openings` asks for is looked at."""
    heads = heads_of(queue)
    wanted = openings(heads, waiting, limit)
    looked = [one for site, n in wanted.items() for one in [q for q in queue if q.site == site][:n]]
    return admit(looked, heads, waiting, limit)


def test_the_urgent_come_in_however_many_wait() -> None:
    queue = queued([("a", 0)] * 9 + [("a", 5)])
    assert let_in(queue, {("a", 0): 900}, 10) == [9]


def test_higher_priority_first_then_site_by_site() -> None:
    queue = queued([("a", 0), ("a", 0), ("a", 1), ("b", 0), ("b", 0)])
    assert let_in(queue, {}, 100) == [2, 0, 3, 1, 4]


def test_every_site_has_room_for_a_few_however_many_there_are() -> None:
    queue = queued([(f"s{n % 500}", 0) for n in range(5000)])
    assert Counter(n % 500 for n in let_in(queue, {}, 1000)) == Counter(dict.fromkeys(range(500), LEAST))


@given(queues, counts, limits)
def test_a_subtask_is_let_in_only_while_its_window_is_open(subtasks, waiting, limit) -> None:
    queue = queued(subtasks)
    by_id = {one.id: one for one in queue}
    sites = len({one.site for one in queue} | {site for site, _ in waiting})
    now = Counter(waiting)
    for number in let_in(queue, waiting, limit):
        one = by_id[number]
        before = sum(n for (of, priority), n in now.items() if of == one.site and priority >= one.priority)
        assert before < bound(limit, sites) / sites
        now[one.site, one.priority] += 1
