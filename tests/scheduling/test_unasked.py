"""What follows where a host could not be asked: another node, a time, or more patience."""

from __future__ import annotations

import pytest

from tasks.scheduling.unasked import NodeAccess, another_could, wait_s

REFUSES = NodeAccess(node="n2", rest_s=600.0)
SILENT = NodeAccess(node="n2", rest_s=3.0, unanswered=True)
PROBING = NodeAccess(node="n2", unanswered=True)
BUSY = NodeAccess(node="n2", permit_s=40.0)
WELL = NodeAccess(node="n2")
MINE = NodeAccess(node="n1", rest_s=12.0, unanswered=True)


@pytest.mark.parametrize(
    ("other", "could", "waits"),
    [
        (WELL, True, 0.0),
        (PROBING, False, 0.0),  # it may try now, but what is known is that it was not answered
        (SILENT, False, 3.0),
        (REFUSES, False, 12.0),
        (BUSY, False, 12.0),
        (NodeAccess(node="n2", permit_s=4.0), True, 0.0),  # an attempt may begin, and wait for its permit
        (NodeAccess(node="n2", permit_s=9.0), False, 4.0),
    ],
)
def test_another_node_could_cure_it_or_the_subtask_waits_for_the_first(other, could, waits):
    assert another_could("n1", [MINE, other]) is could
    assert wait_s([MINE, other], 1, 1.0) == waits


def test_the_node_itself_is_no_other_one():
    assert not another_could("n1", [NodeAccess(node="n1")])
    assert not another_could("n1", [])


def test_nobody_there_is_nobody_to_wait_for():
    assert wait_s([], 1, 1.0) == 0.0


@pytest.mark.parametrize(
    ("releases", "waits"),
    [(1, 12), (9, 12), (10, 30), (11, 60), (12, 120), (14, 480), (15, 900), (19, 900)],
)
def test_from_ten_releases_without_an_answer_on_it_waits_longer_each_time(releases, waits):
    assert wait_s([MINE], releases, 1.0) == waits
    assert wait_s([MINE], releases, 0.01) == max(12, waits * 0.01)


def test_a_longer_rest_is_waited_for_all_the_same():
    assert wait_s([REFUSES], 10, 1.0) == 600.0
