"""Schedules: what is due is run once, however long it was missed and whoever else looks; what fails is tried again."""

from datetime import timedelta

import pytest

from tasks.domain.recurrence import Recurrence
from tasks.store.content import products
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queue import schedules
from tasks.store.queue.schedules import MOST_TRIES, ScheduleKind
from tasks.store.sql.tables import virtual_tasks

DAY = 86_400
DAILY = Recurrence(every=timedelta(days=1))
MORNINGS = Recurrence("0 8 * * *", "UTC")
TO = {"to": "file:/reports"}


def _product(world, name, every=None):
    assert world.do(products.add, NewProduct(name=name, keywords=(name,), recrawl_every=every))


def _of(world, which):
    return world.look(schedules.find, which)


def _rounds(world):
    return [(row.product_id, row.round) for row in world.rows(virtual_tasks)]


def test_a_round_missed_for_days_is_caught_up_once(world):
    _product(world, "甲", timedelta(days=1))
    _product(world, "乙")
    world.pass_s(DAY - 1)
    assert world.do(schedules.recrawl_due) == 0
    world.pass_s(9 * DAY + 8)
    assert [world.do(schedules.recrawl_due) for _ in range(3)] == [1, 0, 0]
    assert _rounds(world) == [(1, 1), (2, 1), (1, 2)]
    one = _of(world, "甲")
    assert (one.last_at, one.next_at) == (world.now, world.now + timedelta(days=1))
    assert world.verification().violations == ()


def test_a_round_is_never_older_than_its_product(world):
    """The transaction that adds or edits a product commits before one that began 6 ms earlier."""
    world.do(schedules.add, ScheduleKind.RECRAWL, DAILY, {})
    world.pass_s(DAY)
    again = NewProduct(name="甲", keywords=("乙",), own_keywords=("乙",))
    _product(world, "甲")
    world.do(products.add, NewProduct(name="乙", keywords=("乙",), sites=()))
    added = world.now
    world.pass_s(-0.006)
    assert world.do(products.edit, "甲", ProductEdit(keywords=("乙",)), again) == 0
    _product(world, "乙")
    world.do(lambda tx: schedules.run(tx, schedules.list_schedules(tx)[0]))
    rounds = world.rows(virtual_tasks)
    assert [(row.product_id, row.round) for row in rounds[-2:]] == [(1, 3), (2, 3)]
    assert {row.created_at for row in rounds} == {added}
    assert {row.planned_at for row in rounds} == {added, None}
    assert world.verification().violations == ()


def test_a_paused_one_rests_and_what_fell_into_the_pause_is_not_caught_up(world):
    _product(world, "甲", timedelta(days=1))
    world.do(schedules.pause, _of(world, "1"))
    world.pass_s(5 * DAY)
    assert world.do(schedules.recrawl_due) == 0
    assert world.verification().violations == ()
    assert world.do(schedules.run, _of(world, "甲")) == 1, "a person may run it"
    assert _of(world, "甲").next_at is None
    world.do(schedules.resume, _of(world, "甲"))
    assert _of(world, "甲").next_at == world.now + timedelta(days=1)
    assert world.do(schedules.recrawl_due) == 0


def test_a_rule_that_is_changed_keeps_number_last_run_and_pause(world):
    _product(world, "甲", timedelta(days=1))
    world.pass_s(DAY)
    world.do(schedules.recrawl_due)
    last = world.now
    world.do(schedules.pause, _of(world, "1"))
    world.do(products.edit, "甲", ProductEdit(recrawl_every=timedelta(days=2)))
    one = _of(world, "1")
    assert (one.product, one.rule.every, one.last_at, one.paused) == ("甲", timedelta(days=2), last, True)
    world.do(schedules.resume, one)
    assert _of(world, "甲").next_at == last + timedelta(days=2)


def test_two_runners_take_a_report_once(world):
    world.do(schedules.add, ScheduleKind.REPORT, DAILY, TO)
    world.pass_s(DAY)
    first, second = (world.do(schedules.claim_due) for _ in range(2))
    assert (first.id, second) == (1, None)
    world.do(schedules.end_run, first)
    one = _of(world, "1")
    assert (one.next_at, one.taken_until, one.problem) == (world.now + timedelta(days=1), None, None)
    assert world.do(schedules.claim_due) is None


def test_one_is_claimed_at_a_time_whatever_the_planner_expects(world):
    world.do(schedules.add, ScheduleKind.REPORT, DAILY, TO)
    world.do(lambda tx: tx.run("ANALYZE schedules"))  # PostgreSQL believes that there is one row
    for _ in range(3):
        world.do(schedules.add, ScheduleKind.REPORT, DAILY, TO)
    world.pass_s(DAY)
    assert world.do(schedules.claim_due).id == 1
    assert [_of(world, str(n)).taken_until for n in (2, 3, 4)] == [None, None, None]


def test_a_run_that_was_cut_off_is_taken_again_and_its_late_end_changes_nothing(world):
    world.do(schedules.add, ScheduleKind.REPORT, DAILY, TO)
    world.pass_s(DAY)
    cut_off = world.do(schedules.claim_due)
    world.pass_s(schedules.HELD.total_seconds() - 1)
    assert world.do(schedules.claim_due) is None
    world.pass_s(1)
    again = world.do(schedules.claim_due)
    assert again.id == cut_off.id
    world.do(schedules.end_run, cut_off, "too late")
    assert _of(world, "1").taken_until == again.taken_until
    world.do(schedules.end_run, again)
    assert _of(world, "1").problem is None


def test_what_fails_is_tried_again_later_and_later_and_given_up_until_its_next_time(world):
    world.do(schedules.add, ScheduleKind.REPORT, MORNINGS, TO)
    world.pass_s(8 * 3600)
    waits = []
    for n in range(MOST_TRIES):
        taken = world.do(schedules.claim_due)
        assert taken.tries == n
        world.do(schedules.end_run, taken, "the mail server does not answer")
        at = _of(world, "1").next_at
        assert at is not None
        waits.append((at - world.now).total_seconds() / 60)
        world.now = at
    assert waits == [1, 4, 16, 64, 24 * 60 - 85]
    one = _of(world, "1")
    assert (one.tries, one.problem) == (0, "the mail server does not answer")
    world.do(schedules.end_run, world.do(schedules.claim_due))
    assert _of(world, "1").problem is None


@pytest.mark.parametrize("problem", ["", "no answer"])
def test_what_a_person_changes_while_it_runs_stays(world, problem):
    for _ in range(2):
        world.do(schedules.add, ScheduleKind.REPORT, DAILY, TO)
    world.pass_s(DAY)
    paused, changed = world.do(schedules.claim_due), world.do(schedules.claim_due)
    world.do(schedules.pause, paused)
    world.do(schedules.change, changed, MORNINGS)
    for one in (paused, changed):
        world.do(schedules.end_run, one, problem)
    assert _of(world, "1").next_at is None
    assert _of(world, "2").next_at == MORNINGS.after(world.now)
