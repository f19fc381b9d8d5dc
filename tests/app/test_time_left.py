"""The time left: its arithmetic, given numbers, and its words."""

import math
from datetime import UTC, datetime

import pytest

from app.cli.progress import Snapshot, speed
from app.run.work_left import Ending, NodeSeen, Paces, SiteLeft, TimeLeft, site_rate, work_left_s
from tasks.store.reports import Stored, WaitingSummary

NOW = datetime(2026, 1, 1, 14, 0, tzinfo=UTC)
NO_BOUND = Paces(math.inf, 7.0, {"engine": 4.0})


def site(hits, per_s=2.0, **more):
    return SiteLeft(hits=hits, per_s=per_s, **more)


def test_the_slowest_site_is_the_end():
    assert work_left_s([site(10), site(40), site(12, per_s=0.5)], NO_BOUND) == pytest.approx(24)
    assert work_left_s([], NO_BOUND) == 0.0


def test_unread_result_pages_will_list_hits():
    assert work_left_s([site(6, results=2, engine="engine")], NO_BOUND) == pytest.approx((6 + 2 * 7) / 2)


def test_an_engine_that_is_asked_seldom_is_the_end_and_the_last_hits_come_behind_it():
    sites = [site(0, results=20, engine="engine"), site(0, results=20, engine="engine")]
    paces = Paces(math.inf, 1.0, {"engine": 0.5})
    assert work_left_s(sites, paces) == pytest.approx(40 / 0.5 + 1 / 2)


def test_sites_share_what_comes_in_a_second_and_leave_it_to_those_that_go_on():
    # Ten sites get 1 a second each until nine are done at 10 s; the last one then has its own 2 a second.
    sites = [site(10)] * 9 + [site(30)]
    assert work_left_s(sites, Paces(10.0, 7.0, {})) == pytest.approx(10 + 20 / 2)
    # A slow one leaves its part to the others.
    assert work_left_s([site(20, per_s=1.0), site(60, per_s=9.0)], Paces(4.0, 7.0, {})) == pytest.approx(20)


def test_what_rests_begins_then_and_shares_nothing_before():
    assert work_left_s([site(10), site(4, after_s=300)], Paces(2.0, 7.0, {})) == pytest.approx(302)
    assert work_left_s([site(0, after_s=60)], NO_BOUND) == 60
    assert work_left_s([site(8, after_s=3), site(8, after_s=3)], Paces(2.0, 7.0, {})) == pytest.approx(11)


def test_a_site_is_as_fast_as_its_best_node():
    fast, slow, bad = NodeSeen(99, 99, 20), NodeSeen(99, 99, 99), NodeSeen(99, 9, 20)
    assert site_rate(2.0, 2.0, [fast, slow, bad]) == pytest.approx(0.95 * 2)
    assert site_rate(2.0, 2.0, [bad, slow]) == pytest.approx(0.95, rel=0.01)
    assert site_rate(2.0, 2.0, [bad]) == pytest.approx(0.95 * 0.2)
    assert site_rate(2.0, 2.0, [bad, NodeSeen()]) == pytest.approx(
        0.95 * 2
    )  # nobody knows it: it may be good
    assert site_rate(2.0, 2.0, []) == pytest.approx(0.95 * 2)


def test_another_node_that_asks_it_too_counts_where_the_host_grants_more_than_one_address():
    fast, slow = NodeSeen(99, 99, 20, there=True), NodeSeen(99, 99, 99, there=True)
    assert site_rate(2.0, 2.0, [fast, slow]) == pytest.approx(0.95 * 2)
    assert site_rate(2.0, 8.0, [fast, slow]) == pytest.approx(0.95 * (2 + 0.25), rel=0.01)
    assert site_rate(2.0, 2.4, [fast, slow]) == pytest.approx(0.95 * (2 + 0.25 * 0.4), rel=0.01)
    assert site_rate(2.0, 8.0, [fast, NodeSeen(99, 99, 99)]) == pytest.approx(0.95 * 2)


def snapshot(at_s, queues, left, pages=0, held=0):
    full = {"WAIT": 0, "CRAWL": 0, "DONE": 0, "MANUAL": 0, **queues}
    return Snapshot(
        at_s=at_s,
        queues=full,
        nodes=(),
        added=Stored(pages=pages),
        load=WaitingSummary(held, None, None),
        next_in_s=3.0,
        left=left,
        now=NOW,
    )


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (snapshot(1, {}, TimeLeft(Ending.NO_WORK)), "making tasks"),
        (snapshot(1, {"WAIT": 3}, TimeLeft(Ending.UNKNOWN)), "it depends on the first hosts' answers"),
        (snapshot(9, {"WAIT": 3}, TimeLeft(Ending.DONE_IN, 20.4), pages=9), "about 20 s left"),
        (snapshot(9, {"WAIT": 3}, TimeLeft(Ending.DONE_IN, 0.2), pages=9), "about 1 s left"),
        (snapshot(9, {"DONE": 9}, TimeLeft(Ending.NOTHING_LEFT), pages=9), "nothing left"),
        pytest.param(
            snapshot(1, {"DONE": 9, "MANUAL": 1}, TimeLeft(Ending.NOTHING_LEFT)),
            "nothing to do: all 10 subtasks are settled",
            id="a store that was done before",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 3, "DONE": 9}, TimeLeft(Ending.DONE_IN, 5.0), held=3),
            "about 5 s left: 3 held back, the next one goes in 3 s",
            id="all that is left is held back",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.DONE_IN, 300.0, 9, 0, 60.0)),
            "about 5 min left: 9 wait for hosts, the next is asked in 60 s",
            id="all rests until known times",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.DONE_IN, 30.0, 7, 7), pages=9),
            "about 30 s left for the others: 7 wait for hosts that don't answer",
            id="nobody knows how long these take",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.HOSTS, 9.0, 9, 7, 9.0)),
            "9 wait for hosts, the next is asked in 9 s",
            id="all that is left waits, and nobody knows how long",
        ),
        (snapshot(9, {"WAIT": 9}, TimeLeft(Ending.HOSTS, 0.0, 9, 9, 0.0)), "the next is asked now"),
    ],
)
def test_what_is_said(last, said):
    assert speed(snapshot(0, {}, TimeLeft(Ending.NO_WORK)), last).left.endswith(said)


def test_rates():
    first, last = (snapshot(at_s, {}, TimeLeft(Ending.UNKNOWN), pages=n) for at_s, n in ((5, 10), (10, 60)))
    assert speed(first, last).pages_per_s == 10
