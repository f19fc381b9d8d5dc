"""The plan of a chaos run, and what is told of it: pure."""

from __future__ import annotations

from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.chaos.compare import difference
from research.chaos.faults import BEATS, CONTROLS, POSTGRES, REDIS, FaultKind, planned
from research.chaos.movement import Contents
from research.chaos.records import FaultRecord, Report, Session
from research.chaos.watch import standstill_s
from research.chaos.world import names

NODES = ("node1", "node2", "node3")
MOST_S = 17 * 60
OVERHEAD_S = 140.0
"""Start, the work's end and the calm run, on a busy machine of two cores."""
AFTER_EACH_S = 3.0
"""Until a server is back, and something moves."""


@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(0, 60))
def test_a_longer_plan_begins_with_the_shorter_one(seed, kills, more):
    shorter = planned(seed, kills, NODES)
    assert len(shorter) == kills
    assert planned(seed, kills + more, NODES)[:kills] == shorter


@given(st.integers(0, 10_000))
def test_every_kind_comes_as_often_as_any_other(seed):
    kinds = Counter(fault.kind for fault in planned(seed, 3 * len(FaultKind), NODES))
    assert kinds == dict.fromkeys(FaultKind, 3)


@given(st.integers(0, 10_000))
def test_what_is_struck_is_there(seed):
    there = {*NODES, *CONTROLS, *BEATS, POSTGRES, REDIS}
    for fault in planned(seed, 60, NODES):
        assert fault.target in there or (fault.target == "" and fault.server is None)
        assert fault.server in (None, fault.target)


@given(st.integers(0, 10_000))
def test_forty_faults_end_within_seventeen_minutes(seed):
    lasts = sum(fault.for_s + fault.pause_s + AFTER_EACH_S for fault in planned(seed, 40, NODES))
    assert lasts + OVERHEAD_S < MOST_S


def test_plans_differ_by_seed():
    assert planned(1, 40, NODES) != planned(2, 40, NODES)


def test_only_some_kinds():
    faults = planned(1, 4, NODES, (FaultKind.KILL_BEAT, FaultKind.ROW))
    assert Counter(fault.kind for fault in faults) == {FaultKind.KILL_BEAT: 2, FaultKind.ROW: 2}


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ([], 9.0),  # all of it but the usual second
        ([5.0], 8.0),
        ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5], 0.0),
        ([-3.0, 4.0, 12.0], 8.0),  # what lies outside says nothing
    ],
)
def test_standstill_is_what_lies_between_two_signs_of_progress(moved, expected):
    assert standstill_s(0.0, 10.0, moved) == pytest.approx(expected)


def contents(pages=(), links=(), reviews=(), partitions=()):
    return Contents(Counter(pages), Counter(links), Counter(reviews), Counter(partitions))


def test_what_is_missing_and_what_is_doubled():
    calm = contents([("u", "1"), ("v", "2")], [("milk", "u", "review")], [("u", "#1", "good")])
    found = contents([("u", "1")], [("milk", "u", "review")], [("u", "#1", "good"), ("u", "#1", "good")])
    different = difference(found, calm)
    assert (different.missing, different.doubled) == (1, 1)
    assert different.examples == ("pages: missing v 2", "reviews: too many u #1 good")
    assert different.miscounted == ()
    assert difference(calm, calm) == difference(contents(), contents())


def test_what_was_counted_otherwise():
    calm = contents(partitions=[("milk", "12315.com", "['milk']", "0", "3", "22")])
    found = contents(partitions=[("milk", "12315.com", "['milk']", "0", "4", "32")])
    different = difference(found, calm)
    assert (different.missing, different.doubled) == (0, 0)
    assert different.miscounted == ("counted: pages read, hits listed: milk 12315.com ['milk'] 0 4 32",)


def record(no, kind, standstill_s, stalled=None, first_s=1.0):
    return FaultRecord(
        no=no,
        kind=kind,
        target="node1",
        for_s=0.0,
        at_s=10.0 * no,
        note="",
        first_s=first_s,
        standstill_s=standstill_s,
        stalled=stalled,
    )


def session(*records):
    return Session(seed=1, kills=len(records), nodes=3, kinds=["kill node"], records=list(records))


def report(of, violations=(), missing=0, doubled=0, finished=True):
    return Report(
        session=of,
        violations=violations,
        missing=missing,
        doubled=doubled,
        differences=(),
        counts={},
        finished=finished,
    )


def test_the_document_has_the_counts_that_checks_rely_on():
    stalled = session(record(1, "kill node", 25.0, "nothing moved"), record(2, "kill node", 0.0))
    document = report(stalled, [{"kind": "queue", "subtask_id": 1, "message": "lost"}], 2, 3).document()
    assert document["violations"] == [{"kind": "queue", "subtask_id": 1, "message": "lost"}]
    assert [document[name] for name in ("missing", "doubled", "stalls", "kills")] == [2, 3, 1, 2]


def test_only_a_run_without_a_fault_of_its_own_is_clean():
    good = session(record(1, "kill node", 0.0))
    assert report(good).clean
    assert not report(good, missing=1).clean
    assert not report(good, doubled=1).clean
    assert not report(good, [{"kind": "queue"}]).clean
    assert not report(good, finished=False).clean
    assert not report(session(record(1, "kill node", 30.0, "all"))).clean


def test_products_never_end_and_none_comes_twice():
    found = list(islice(names(), 700))
    assert len(set(found)) == 700
    assert found[300] == f"{found[0]}X2"
