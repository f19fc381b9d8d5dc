"""What people read of the attempts, of queues and storing over time, and of the time left."""

from datetime import timedelta

import pytest
from world import SILENT, SITE, hit

from app.views.loop_state import Situation, SystemState, read_state
from tasks.domain.attempt_end import Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.queries import pairs, queues
from tasks.store.queries.pairs import AttemptGroup
from tasks.store.queue import leases, upkeep
from tasks.store.queue.leases import Grant

FIVE = [hit(str(n)) for n in range(5)]


@pytest.fixture
def crawled(world):
    """An attempt that stored a page, one that failed a minute later, and one that runs by the prices of a plan."""
    lease, hits = world.found("甲", FIVE)
    world.save(lease, hits.todo[0])
    world.close(lease, Counters(offered=5, tried=4, active_s=8.0, wait_s=2.0, requests=6))
    world.pass_s(60)
    world.close(world.begun("乙"), Counters(offered=3, tried=1, requests=1), reason=FailureReason.BLOCKED)
    decided = {"prices": {"permit": 0.5, "slot": 0.25}}
    world.do(leases.grant, [Grant(world.waiting("丙"), "n1", 20, 30.0, decided)], SILENT)
    return world


def test_attempts_are_summed_by_how_they_ended(crawled):
    succeeded = AttemptGroup(SITE, "n1", "succeeded", None, 1, 6, 0, 1, 8.0, 2.0)
    failed = AttemptGroup(SITE, "n1", "failed", "blocked", 1, 1, 0, 0, 0.0, 0.0)
    assert set(crawled.look(pairs.list_recent_attempts)) == {succeeded, failed}
    minute_ago = crawled.now - timedelta(seconds=60)
    assert crawled.look(pairs.list_recent_attempts, minute_ago) == [failed]
    assert crawled.look(pairs.list_recent_hits, minute_ago) == [(SITE, 3, 0, 5, 1)]
    run = crawled.look(pairs.get_run_sums, 0)
    assert (run.requests, run.collected, run.requests_per_page) == (7, 1, 7.0)
    assert run.outcomes == {"succeeded": 1, "failed": 1, "open": 1}
    assert run.reasons == {"blocked": 1}
    assert crawled.look(pairs.list_last_prices) == [(SITE, "n1", None, None)] * 2 + [(SITE, "n1", 0.5, 0.25)]


def test_queues_and_storing_over_time(crawled):
    points, is_whole = crawled.look(queues.get_queue_trend)
    assert is_whole
    assert [points[-1][1][name] for name in ("WAIT", "CRAWL", "SLEEP", "FAILED")] == [0, 1, 1, 1]
    assert [points[0][1]["CRAWL"], max(counts["CRAWL"] for _, counts in points)] == [0, 1]
    storing = crawled.look(queues.get_storing_trend)
    span_s = (storing[1][0] - storing[0][0]).total_seconds()
    assert sum(rates["pages"] for _, rates in storing) * span_s == pytest.approx(1.0)
    pace = crawled.look(queues.get_pace, 120.0)
    assert (pace.seconds, pace.pages_per_s) == (60.0, pytest.approx(1 / 60))
    mark = crawled.look(queues.get_mark)
    assert (mark.page_id, mark.attempt_id) == (1, 3)
    assert crawled.look(queues.count_stored_since, mark) == mark


# --- what is said of the system -------------------------------------------------------------------------------


def system_state(world):
    return world.look(lambda tx: read_state(tx, world.context.hosts.site_hosts, SILENT).system)


@pytest.fixture
def answered(world):
    """A subtask that waits, 5 s after one of its five hits was stored."""
    world.node("n1")
    lease, hits = world.found("特仑苏", FIVE)
    world.save(lease, hits.todo[0])
    world.pass_s(5)
    world.interrupt(lease, Counters(offered=5, tried=1, collected=1), "drained")
    return lease.subtask_id


def test_the_situations_before_anything_runs(world):
    assert system_state(world) == SystemState(Situation.EMPTY)
    world.add_product("金领冠")
    assert system_state(world) == SystemState(Situation.PLANNED)
    world.node("n1")
    assert system_state(world) == SystemState(Situation.STARTING)


def test_a_subtask_waits_and_then_begins(world):
    world.add("特仑苏")
    assert system_state(world) == SystemState(Situation.PLANNED)
    world.node("n1")
    assert system_state(world) == SystemState(Situation.STARTING)
    lease = world.begun("金领冠")
    assert system_state(world) == SystemState(Situation.UNTIMED)
    world.interrupt(lease, Counters(), "drained")
    assert system_state(world) == SystemState(Situation.UNTIMED), "between two attempts"


def test_processes_that_are_being_started_are_said(world):
    world.add("特仑苏")
    world.do(upkeep.note_start)
    assert system_state(world) == SystemState(Situation.STARTING)
    world.now += timedelta(minutes=2)
    assert system_state(world) == SystemState(Situation.PLANNED), "none of them came"
    world.do(upkeep.note_start)
    world.do(upkeep.note_start, over=True)
    assert system_state(world) == SystemState(Situation.PLANNED), "they have ended"


def test_hits_left_come_at_the_rate_of_the_pages_of_the_last_five_minutes(world, answered):
    assert system_state(world) == SystemState(Situation.RUNNING, {"left_s": pytest.approx(4 * 5.0)})
    world.now += timedelta(seconds=61)
    assert system_state(world) == SystemState(Situation.PLANNED), "its node was killed"


@pytest.mark.parametrize("pause_s", [62, 100, 150, 200, 290])
def test_pages_from_before_a_pause_are_in_no_rate(world, answered, pause_s):
    world.do(upkeep.bridge_lapse, SILENT, is_new=True)
    world.now += timedelta(seconds=pause_s)
    world.do(upkeep.bridge_lapse, SILENT, is_new=True)
    world.node("n1")
    lease, hits = world.found("金领冠", FIVE)
    world.now += timedelta(seconds=1)
    world.save(lease, hits.todo[0])
    world.now += timedelta(seconds=4)
    hits_left = world.look(queues.count_open_hits)
    assert system_state(world) == SystemState(Situation.RUNNING, {"left_s": pytest.approx(hits_left * 4.0)})


def test_no_time_is_given_while_all_that_is_left_waits(world, answered):
    world.rest("n1", Rest(SITE, "forbidden", lambda _: 30.0))
    assert system_state(world) == SystemState(Situation.RESTING, {"next_s": 30.0})
    assert system_state(world).left_s is None
    world.now += timedelta(seconds=29)
    assert system_state(world) == SystemState(Situation.RESTING, {"next_s": pytest.approx(1.0)})


def test_hits_of_a_host_that_does_not_answer_are_in_no_estimate(world, answered):
    world.rest("n1", Rest(SITE, UNREACHABLE, lambda _: 9.0))
    assert system_state(world) == SystemState(Situation.RESTING, {"next_s": 9.0})
    world.begun("金领冠")
    assert system_state(world) == SystemState(Situation.RESTING, {"next_s": 9.0}), "it only tries the host"
    world.begun("舒化奶", sites=("12315.com",))
    assert system_state(world).left_s == pytest.approx(24 * 5.0), "most hits are at the silent host"
    world.begun("安慕希", sites=("12315.com",))
    assert system_state(world) == SystemState(Situation.RUNNING, {"left_s": pytest.approx(20 * 5.0)})


def test_a_scheduler_that_is_silent_is_said(world, answered):
    world.do(upkeep.bridge_lapse, SILENT, is_new=True)
    assert system_state(world).situation is Situation.RUNNING
    world.now += timedelta(seconds=31)
    assert system_state(world) == SystemState(Situation.UNSCHEDULED, {"silent_s": 31.0})
    world.do(upkeep.note_start)
    assert system_state(world) == SystemState(Situation.STARTING), "its node came before the scheduler"
    world.do(upkeep.bridge_lapse, SILENT, is_new=True)
    world.now += timedelta(seconds=31)
    assert system_state(world) == SystemState(Situation.UNSCHEDULED, {"silent_s": 31.0}), (
        "it has looked since"
    )


def test_the_situations_at_the_end(world, answered):
    world.cancel(answered)
    assert system_state(world) == SystemState(Situation.EMPTY), "what was cancelled is not done"
    world.add_product("金领冠")
    assert system_state(world).situation is Situation.STARTING


def test_pages_of_settled_subtasks_that_are_not_judged_yet(world):
    world.node("n1")
    lease, hits = world.found("特仑苏", FIVE)
    world.save(lease, hits.todo[0])
    world.change("UPDATE page_products SET verdict = 'unjudged'")
    world.cancel(lease.subtask_id)
    assert system_state(world) == SystemState(Situation.JUDGING, {"pages": 1})
    world.now += timedelta(seconds=61)
    assert system_state(world) == SystemState(Situation.PLANNED), "no node runs"


def test_only_people_can_go_on(world):
    world.node("n1")
    world.failed(FailureReason.BAD_RULE)
    world.recall()
    assert system_state(world) == SystemState(Situation.PEOPLE, {"manual": 1})
    lease = world.begun("金领冠")
    world.cancel(lease.subtask_id)
    assert system_state(world) == SystemState(Situation.PEOPLE, {"manual": 1})


@pytest.mark.parametrize(
    ("one", "sentence"),
    [
        (SystemState(Situation.RUNNING, {"left_s": 20.4}), "Running: about 20 s left."),
        (SystemState(Situation.RUNNING, {"left_s": 0.2}), "Running: about 1 s left."),
        (SystemState(Situation.RUNNING, {"left_s": 7300.0}), "Running: about 2.03 h left."),
        (
            SystemState(Situation.RESTING, {"next_s": 0.0}),
            "All that is left waits; the next request may be sent in 1 s.",
        ),
        (SystemState(Situation.DONE, {"settled": 1000}), "All done; subtasks: 1,000."),
    ],
)
def test_lengths_and_counts_are_written_out(one, sentence):
    assert str(one) == sentence
