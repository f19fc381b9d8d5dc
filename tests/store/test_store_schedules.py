"""Schedules: what is due is run once, however long it was missed and whoever else looks; what fails is tried again."""

from datetime import timedelta

import pytest

from tasks.domain.recurrence import Recurrence
from tasks.store.content import products
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queue import schedules
from tasks.store.queue.schedules import MOST_TRIES, ScheduleKind
from tasks.store.sql.tables import virtual_tasks

DAY_S = 86_400
DAY = timedelta(days=1)
DAILY, MORNINGS = Recurrence(every=DAY), Recurrence("0 8 * * *", "UTC")


def add_report(world, rule=DAILY):
    world.do(schedules.add, ScheduleKind.REPORT, rule, {"to": "file:/reports"})


def find(world, which):
    return world.look(schedules.find, which)


def claim(world):
    return world.do(schedules.claim_due)


def recrawl_after(world, seconds):
    world.pass_s(seconds)
    return world.do(schedules.recrawl_due)


def test_a_round_missed_for_days_is_caught_up_once(world):
    world.add_product("甲", recrawl_every=DAY)
    world.add_product("乙")
    assert [recrawl_after(world, s) for s in (DAY_S - 1, 9 * DAY_S + 8, 0, 0)] == [0, 1, 0, 0]
    rounds = [(row.product_id, row.round) for row in world.rows(virtual_tasks)]
    assert rounds == [(1, 1), (2, 1), (1, 2)]
    one = find(world, "甲")
    assert (one.last_at, one.next_at) == (world.now, world.now + DAY)


def test_a_round_is_never_older_than_its_product(world):
    """The transaction that adds or edits a product commits before one that began 6 ms earlier."""
    world.do(schedules.add, ScheduleKind.RECRAWL, DAILY, {})
    world.pass_s(DAY_S)
    again = NewProduct(name="甲", keywords=("乙",), own_keywords=("乙",))
    world.add_product("甲")
    world.add_product("乙", sites=())
    added = world.now
    world.pass_s(-0.006)
    assert world.do(products.edit, "甲", ProductEdit(keywords=("乙",)), again) == 0
    world.add_product("乙")
    world.do(lambda tx: schedules.run(tx, schedules.list_schedules(tx)[0]))
    rounds = world.rows(virtual_tasks)
    assert [(row.product_id, row.round) for row in rounds[-2:]] == [(1, 3), (2, 3)]
    assert {row.created_at for row in rounds} == {added}
    assert {row.planned_at for row in rounds} == {added, None}


def test_a_paused_schedule_rests_and_what_fell_into_the_pause_is_not_caught_up(world):
    world.add_product("甲", recrawl_every=DAY)
    world.do(schedules.pause, find(world, "1"))
    assert recrawl_after(world, 5 * DAY_S) == 0
    assert world.do(schedules.run, find(world, "甲")) == 1, "a person may run it"
    assert find(world, "甲").next_at is None
    world.do(schedules.resume, find(world, "甲"))
    assert find(world, "甲").next_at == world.now + DAY
    assert recrawl_after(world, 0) == 0


def test_a_rule_that_is_changed_keeps_number_last_run_and_pause(world):
    world.add_product("甲", recrawl_every=DAY)
    recrawl_after(world, DAY_S)
    last = world.now
    world.do(schedules.pause, find(world, "1"))
    world.do(products.edit, "甲", ProductEdit(recrawl_every=2 * DAY))
    one = find(world, "1")
    assert (one.product, one.rule.every, one.last_at, one.paused) == ("甲", 2 * DAY, last, True)
    world.do(schedules.resume, one)
    assert find(world, "甲").next_at == last + 2 * DAY


def test_two_runners_take_a_report_once(world):
    add_report(world)
    world.pass_s(DAY_S)
    first, second = claim(world), claim(world)
    assert (first.id, second) == (1, None)
    world.do(schedules.end_run, first)
    one = find(world, "1")
    assert (one.next_at, one.taken_until, one.problem) == (world.now + DAY, None, None)
    assert claim(world) is None


def test_one_is_claimed_at_a_time_whatever_the_planner_expects(world):
    add_report(world)
    world.run("ANALYZE schedules")  # PostgreSQL believes that there is one row
    for _ in range(3):
        add_report(world)
    world.pass_s(DAY_S)
    assert claim(world).id == 1
    assert [find(world, str(n)).taken_until for n in (2, 3, 4)] == [None, None, None]


def test_a_run_that_was_cut_off_is_taken_again_and_its_late_end_changes_nothing(world):
    add_report(world)
    world.pass_s(DAY_S)
    cut_off = claim(world)
    world.pass_s(schedules.HELD.total_seconds() - 1)
    assert claim(world) is None
    world.pass_s(1)
    again = claim(world)
    assert again.id == cut_off.id
    world.do(schedules.end_run, cut_off, "too late")
    assert find(world, "1").taken_until == again.taken_until
    world.do(schedules.end_run, again)
    assert find(world, "1").problem is None


def test_what_fails_is_tried_again_later_and_later_and_given_up_until_its_next_time(world):
    add_report(world, MORNINGS)
    world.pass_s(8 * 3600)
    waits = []
    for n in range(MOST_TRIES):
        taken = claim(world)
        assert taken.tries == n
        world.do(schedules.end_run, taken, "the mail server does not answer")
        at = find(world, "1").next_at
        waits.append((at - world.now).total_seconds() / 60)
        world.now = at
    assert waits == [1, 4, 16, 64, 24 * 60 - 85]
    one = find(world, "1")
    assert (one.tries, one.problem) == (0, "the mail server does not answer")
    world.do(schedules.end_run, claim(world))
    assert find(world, "1").problem is None


@pytest.mark.parametrize("problem", ["", "no answer"])
def test_what_a_person_changes_while_it_runs_stays(world, problem):
    for _ in range(2):
        add_report(world)
    world.pass_s(DAY_S)
    paused, changed = claim(world), claim(world)
    world.do(schedules.pause, paused)
    world.do(schedules.change, changed, MORNINGS)
    for one in (paused, changed):
        world.do(schedules.end_run, one, problem)
    assert [find(world, which).next_at for which in "12"] == [None, MORNINGS.next_time(world.now)]
