"""Messages of the cluster: signed by whoever has the key, and refused by a worker where they are not."""

from __future__ import annotations

import json
import logging
from copy import deepcopy

import pytest
from celery import Task
from celery.worker.request import Request
from kombu import Message

from app.run.cluster.celery_app import make_app
from app.run.cluster.signing import Checked, sign_messages, signing_key
from app.run.setting_fields import Settings
from tasks.jobs import celery_tasks  # noqa: F401 (registers the tasks)

CLUSTER = Settings(database_url="postgresql+psycopg2://u:p@db/r", redis_url="redis://cache:6379/3")
SECRET = "a secret of the tests"
LEASES = [{"token": "t1", "quota": 3, "budget_s": 1.25, "place": None, "name": "雪"}]


@pytest.fixture(autouse=True)
def _unsigned_afterwards():
    yield
    sign_messages(None)


def sent(app, queue="crawl.n1", monkeypatch=None):
    """A message as the broker would hand it over: what the producer was to publish, through JSON."""
    found = []
    with app.producer_pool.acquire(block=True) as producer:
        monkeypatch.setattr(producer, "publish", lambda body, **options: found.append((body, options)))
        app.tasks["crawl"].apply_async((LEASES,), queue=queue, expires=60.0, producer=producer)
    body, options = found[0]
    return Message(
        body=json.dumps(body),
        content_type="application/json",
        content_encoding="utf-8",
        headers=json.loads(json.dumps(options["headers"])),
        delivery_info={"exchange": "", "routing_key": options["routing_key"]},
        accept={"application/json"},
    )


def changed(message, *, queue=None, leases=None, **headers):
    body = json.loads(message.body)
    body[0] = [leases] if leases else body[0]
    return Message(
        body=json.dumps(body),
        content_type="application/json",
        content_encoding="utf-8",
        headers={**deepcopy(message.headers), **headers},
        delivery_info={"exchange": "", "routing_key": queue or message.delivery_info["routing_key"]},
        accept={"application/json"},
    )


def test_a_signed_message_passes_however_often_it_comes(monkeypatch):
    message = sent(make_app(CLUSTER.replace(secret_key=SECRET)), monkeypatch=monkeypatch)
    checked = Checked(signing_key(SECRET))
    assert [checked.passes(changed(message)) for _ in range(2)] == [True, True]
    assert checked.refused == 0


@pytest.mark.parametrize(
    "change",
    [
        {"leases": [{**LEASES[0], "quota": 4}]},
        {"queue": "crawl.n2"},
        {"task": "retention"},
        {"id": "another"},
        {"expires": "2999-01-01T00:00:00+00:00"},
        {"eta": "2999-01-01T00:00:00+00:00"},
        {"signature": "0" * 64},
        {"signature": "\udcff雪"},
        {"signature": None},
        {"signature": 7},
    ],
    ids=str,
)
def test_a_message_that_was_changed_is_refused_in_one_line_and_counted(change, monkeypatch, caplog):
    message = sent(make_app(CLUSTER.replace(secret_key=SECRET)), monkeypatch=monkeypatch)
    checked = Checked(signing_key(SECRET))
    with caplog.at_level(logging.WARNING):
        assert not checked.passes(changed(message, **change))
        assert not checked.passes(changed(message, **change))
    assert checked.refused == 2
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "refused (2 so far)" in said[1]
    assert "\n" not in said[1]


def test_another_clusters_key_signs_nothing_here(monkeypatch):
    message = sent(make_app(CLUSTER.replace(secret_key="another secret of tests")), monkeypatch=monkeypatch)
    assert not Checked(signing_key(SECRET)).passes(message)


def test_without_a_key_nothing_is_signed_and_tasks_are_celerys(monkeypatch):
    make_app(CLUSTER.replace(secret_key=SECRET))
    app = make_app(CLUSTER)
    assert "signature" not in sent(app, monkeypatch=monkeypatch).headers
    assert type(app.tasks["crawl"]).start_strategy is Task.start_strategy
    assert app.conf.worker_enable_remote_control


def test_a_worker_hands_on_what_is_signed_and_acknowledges_the_rest(monkeypatch):
    """Celery's own tasks too: `celery.map` would call ours."""
    begun, done_with = [], []
    monkeypatch.setattr(
        Task, "start_strategy", lambda task, *_, **__: lambda message, *_: begun.append((task.name, message))
    )
    app = make_app(CLUSTER.replace(secret_key=SECRET))
    good = sent(app, monkeypatch=monkeypatch)
    bad = changed(good, signature=None)
    consumer = type("Consumer", (), {"connection_errors": ()})()
    for name in ("crawl", "sweep", "celery.map"):
        take = app.tasks[name].start_strategy(app, consumer)
        take(bad, None, lambda *_: done_with.append(bad), None, [])
        assert begun == []
    app.tasks["crawl"].start_strategy(app, consumer)(good, None, done_with.clear, None, [])
    assert begun == [("crawl", good)]
    assert len(done_with) == 3
    assert not app.conf.worker_enable_remote_control


def test_the_signature_survives_the_way_through_redis(redis_url):
    app = make_app(CLUSTER.replace(redis_url=redis_url, secret_key=SECRET))
    app.tasks["crawl"].apply_async((LEASES,), queue="crawl.n1", expires=60.0)
    app.tasks["sweep"].apply_async(("turn",), queue="control")
    checked = Checked(signing_key(SECRET))
    with app.connection_for_read() as reading:
        for name in ("crawl.n1", "control"):
            message = app.amqp.queues[name](reading.default_channel).get(accept=["application/json"])
            assert message is not None
            assert checked.passes(message), name
            assert Request(message, app=app).name in ("crawl", "sweep")
            message.ack()
    app.close()
