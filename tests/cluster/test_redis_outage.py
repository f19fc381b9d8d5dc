"""One outage of Redis is one line in a process's log, and one when it is over, whoever finds out and how often."""

import logging
import sys
from types import SimpleNamespace

import pytest
from celery.beat import SchedulingError
from celery.signals import after_setup_logger
from celery.worker.consumer.consumer import CONNECTION_ERROR, CONNECTION_RETRY
from kombu.exceptions import OperationalError
from patience import PATIENCE_S
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from app.run.cluster.celery_app import make_app
from app.run.cluster.redis_outage import RedisOutage
from app.run.setting_fields import Settings
from tasks.domain.outage import Outage

LOG = logging.getLogger("reviewloop.worker")


class Server:
    """A Redis that is away for the next pings."""

    def __init__(self, away):
        self.away = away

    def ping(self):
        self.away -= 1
        if self.away >= 0:
            raise RedisConnectionError("refused")


def outage_of(server, clock=lambda: 0.0):
    outage = RedisOutage(server.ping, Outage(LOG, "Redis is away", "Redis is back", clock))
    outage._pause.set()  # no pause between pings
    return outage


def record(name, text, *args, error=None):
    info = None
    if error is not None:
        try:
            raise error
        except type(error):
            info = sys.exc_info()
    return logging.LogRecord(name, logging.ERROR, "file", 1, text, args, info)


def scheduling_error():
    try:
        try:
            raise OperationalError("Timeout reading from socket")
        except OperationalError:
            raise SchedulingError("Couldn't apply scheduled task measure")  # noqa: B904, as Celery does
    except SchedulingError as error:
        return error


CONSUMER = "celery.worker.consumer.consumer"
FOLDED = {
    "consumer cannot connect": record(CONSUMER, CONNECTION_ERROR, "redis://h", OperationalError("x"), ""),
    "consumer lost": record(CONSUMER, "%s (%r)", CONNECTION_RETRY, RedisTimeoutError("x")),
    "refused by the system": record(CONSUMER, CONNECTION_ERROR, "h", ConnectionRefusedError(111), ""),
    "BRPOP": record("kombu.transport.redis", "Redis BRPOP got no reply for %d seconds", 17),
    "beat": record("celery.beat", "Message Error: %s\n%s", "text", ["stack"], error=scheduling_error()),
    "a sweep's message": record("celery.app.trace", "Task sweep raised", error=OperationalError("x")),
    "a turn's message": record("reviewloop.worker", "no turn could be asked for", error=RedisConnectionError("x")),
    "a retry in a library": record("redis.retry", "again", error=TimeoutError()),
}  # fmt: skip
KEPT = {
    "a bug": record("celery.app.trace", "Task sweep raised", error=ZeroDivisionError()),
    "a site's": record("reviewloop.attempt", "no answer", error=TimeoutError()),
    "the host of a page": record("reviewloop.attempt", "no answer: %s", ConnectionRefusedError(111)),
    "a wrong command": record(
        "celery.app.trace", "Task sweep raised", error=ResponseError("unknown command")
    ),
    "without an error": record("celery.worker", "ready"),
}


@pytest.mark.parametrize("name", FOLDED)
def test_every_report_of_a_lost_redis_becomes_one_line_and_one_at_the_end(name, caplog):
    outage = outage_of(Server(away=3))
    assert not any(outage.filter(FOLDED[name]) for _ in range(5))
    assert outage.wait(PATIENCE_S)
    gone, back = caplog.messages
    assert gone.startswith("Redis is away: ")
    assert back == "Redis is back after 0.0 s"
    assert all(one.exc_info is None for one in caplog.records)


@pytest.mark.parametrize("name", KEPT)
def test_other_records_are_kept(name, caplog):
    outage = outage_of(Server(away=3))
    assert outage.filter(KEPT[name])
    assert outage.wait(PATIENCE_S)
    assert caplog.messages == []


def test_the_advice_that_comes_with_a_lost_broker_is_dropped(caplog):
    outage = outage_of(Server(away=0))
    advice = "consumer.py:427: CPendingDeprecationWarning: \nIn Celery 5.1 we introduced a change"
    assert not outage.filter(record("py.warnings", "%s", advice))
    assert outage.filter(record("py.warnings", "%s", "a.py:1: ResourceWarning: unclosed file"))
    assert caplog.messages == []


def test_a_connection_that_broke_is_no_outage_while_redis_answers(caplog):
    outage = outage_of(Server(away=0))
    for one in FOLDED.values():
        assert not outage.filter(one)
        assert outage.wait(PATIENCE_S)
    assert caplog.messages == []


def test_losses_soon_after_an_outage_are_of_that_outage_unless_they_last(caplog):
    now_s = 0.0
    outage = Outage(LOG, "Redis is away", "Redis is back", lambda: now_s)
    outage.note_loss(RedisConnectionError("refused"))
    now_s = 60.0
    assert outage.lasted_s == 60.0
    outage.note_return()
    for late_s in (61.0, 70.0, 89.0):  # an old connection finds out
        now_s = late_s
        outage.note_loss("closed")
        outage.note_return()
    assert caplog.messages == ["Redis is away: refused", "Redis is back after 60.0 s"]
    now_s = 95.0
    outage.note_loss("refused")
    now_s = 130.0
    outage.note_loss("refused")
    now_s = 140.0
    outage.note_return()
    assert caplog.messages[2:] == ["Redis is away: refused", "Redis is back after 45.0 s"]


def test_handlers_of_celery_get_the_filter():
    app = make_app(Settings(database_url="postgresql+psycopg2://u@db/r", redis_url="redis://cache:6379/3"))
    logger = logging.Logger("celery")
    logger.addHandler(logging.NullHandler())
    after_setup_logger.send(sender=None, logger=logger, format="%(message)s")
    assert logger.handlers[0].filters == [app.redis_outage]


def test_workers_send_each_other_nothing():
    app = make_app(Settings(database_url="postgresql+psycopg2://u@db/r", redis_url="redis://cache:6379/3"))

    worker = SimpleNamespace(options={"without_gossip": False})
    (runtime,) = (step for step in app.steps["worker"] if step.__name__ == "Runtime")
    runtime(worker)
    assert worker.options == dict.fromkeys(("without_gossip", "without_mingle", "without_heartbeat"), True)
