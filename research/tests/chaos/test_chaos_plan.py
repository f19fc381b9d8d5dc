"""The plan of a chaos run, its report, and what counts as a stall."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions.products import new_product
from research.chaos.faults import BEATS, CONTROLS, POSTGRES, REDIS, FaultKind, plan_faults
from research.chaos.movement import Contents
from research.chaos.report import FaultRecord, Report, compare
from research.chaos.watch import STALL_S, StallWatch
from research.chaos.world import names
from tasks.store.content import products

NODES = ("node1", "node2", "node3")


@given(st.integers(0, 10_000), st.integers(0, 60), st.integers(0, 60))
def test_a_longer_plan_begins_with_the_shorter_one(seed, kills, more):
    shorter = plan_faults(seed, kills, NODES)
    assert len(shorter) == kills
    assert plan_faults(seed, kills + more, NODES)[:kills] == shorter
    assert plan_faults(seed + 1, 40, NODES) != plan_faults(seed, 40, NODES)


@given(st.integers(0, 10_000))
def test_every_kind_comes_as_often_and_strikes_a_program_that_is_there(seed):
    plan = plan_faults(seed, 3 * len(FaultKind), NODES)
    assert Counter(fault.kind for fault in plan) == dict.fromkeys(FaultKind, 3)
    for fault in plan:
        assert fault.target in {*NODES, *CONTROLS, *BEATS, POSTGRES, REDIS, ""}
        assert fault.kind.server in (None, fault.target)
    assert {fault.target for fault in plan if fault.kind.server} == {POSTGRES, REDIS}


def test_names_of_products_repeat_with_a_number():
    found = list(islice(names(), 700))
    assert len(set(found)) == 700
    assert found[300] == f"{found[0]}X2"


def contents(pages=(), links=(), reviews=(), partitions=()):
    return Contents(Counter(pages), Counter(links), Counter(reviews), Counter(partitions))


def test_a_comparison_finds_what_is_missing_doubled_or_miscounted():
    calm = contents(
        [("u", "1"), ("v", "2")],
        [("milk", "u", "review")],
        [("u", "#1", "good")],
        [("milk", "12315.com", "['milk']", "0", "3", "22")],
    )
    found = contents(
        [("u", "1")],
        [("milk", "u", "review")],
        [("u", "#1", "good"), ("u", "#1", "good")],
        [("milk", "12315.com", "['milk']", "0", "4", "32")],
    )
    different = compare(found, calm)
    assert (different.missing, different.doubled) == (1, 1)
    assert different.examples == ("pages: missing v 2", "reviews: too many u #1 good")
    assert different.miscounted == ("counted: pages read, hits listed: milk 12315.com ['milk'] 0 4 32",)
    assert compare(calm, calm) == compare(contents(), contents())


def report(stalled=None, **changes):
    (fault,) = plan_faults(1, 1, NODES)
    record = FaultRecord(**asdict(fault), at_s=1.0, note="", stalled=stalled)
    clean = {"violations": [], "missing": 0, "doubled": 0, "finished": True}
    return Report(seed=1, nodes=3, seconds=9.0, faults=[record], differences=(), counts={}, **clean | changes)


def test_the_document_has_the_keys_that_checks_rely_on():
    lost = {"kind": "queue", "subtask_id": 1, "message": "lost"}
    document = report("nothing moved", violations=[lost], missing=2, doubled=3).document()
    assert document["violations"] == [lost]
    assert [document[name] for name in ("missing", "doubled", "stalls", "kills")] == [2, 3, 1, 1]


@pytest.mark.parametrize(
    "changes",
    [
        {"missing": 1},
        {"doubled": 1},
        {"violations": [{"kind": "queue"}]},
        {"finished": False},
        {"stalled": "nothing moved"},
    ],
)
def test_only_a_run_without_any_finding_is_clean(changes):
    assert report().clean
    assert not report(**changes).clean


def test_a_stall_needs_work_that_can_go_on(postgres_store):
    now_s = [0.0]
    watch = StallWatch(postgres_store, (), lambda: 0.0, lambda: now_s[0])

    def stalled_at(at_s):
        now_s[0] = at_s
        watch.look()
        return watch.stalled

    assert stalled_at(STALL_S + 1.5) is None  # a server is away
    watch.free_s = 0.0
    idle_s = STALL_S + 3
    assert stalled_at(idle_s) is None  # there is nothing to do
    with postgres_store.begin() as tx:
        products.add(tx, new_product("光明高钙牛奶"))
    assert stalled_at(idle_s + STALL_S) is None
    assert stalled_at(idle_s + STALL_S + 1.5) is not None
