"""What people read of the attempts, and of the course of queues and storing."""

from datetime import timedelta

import pytest
from world import SILENT, SITE, hit

from tasks.domain.attempt_end import Counters
from tasks.domain.failures import FailureReason
from tasks.store.queries import pairs, queues
from tasks.store.queries.pairs import AttemptGroup
from tasks.store.queue import leases
from tasks.store.queue.leases import Grant

SEEN = Counters(offered=5, tried=4, active_s=8.0, wait_s=2.0, requests=6)
FAILED = Counters(offered=3, tried=1, requests=1)


@pytest.fixture
def crawled(world):
    """An attempt that stored a page, one that failed a minute later, and one that runs by the prices of a plan."""
    lease, work = world.begin(world.waiting("甲"))
    todo = world.read_results(lease, work.targets[0], [hit(str(n)) for n in range(5)]).todo
    world.save(lease, todo[0])
    world.close(lease, SEEN)
    world.pass_s(60)
    lease, _ = world.begin(world.waiting("乙"))
    world.close(lease, FAILED, reason=FailureReason.BLOCKED)
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
    trend = crawled.look(queues.get_queue_trend)
    assert trend.whole
    assert [trend.values[name][-1] for name in ("WAIT", "CRAWL", "SLEEP", "FAILED")] == [0, 1, 1, 1]
    assert [trend.values["CRAWL"][0], max(trend.values["CRAWL"])] == [0, 1]
    storing = crawled.look(queues.get_storing_trend)
    span_s = (storing.at[1] - storing.at[0]).total_seconds()
    assert sum(storing.values["pages"]) * span_s == pytest.approx(1.0)
    pace = crawled.look(queues.get_pace, 120.0)
    assert (pace.seconds, pace.pages_per_s) == (60.0, pytest.approx(1 / 60))
    mark = crawled.look(queues.get_mark)
    assert (mark.page_id, mark.attempt_id) == (1, 3)
    assert crawled.look(queues.count_stored_since, mark) == mark
