"""Celery's configuration, the settings a child gets, and turns asked for a few times a second."""

from __future__ import annotations

import asyncio
import os
from ipaddress import ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kombu.utils import functional
from patience import PATIENCE_S

from app.run.cluster.celery_app import PromptConnection, PulsedScheduler, beat_schedule, make_app
from app.run.cluster.node_process import TurnRequests
from app.run.cluster.pulse import last_beat
from app.run.open_store import sentinels
from app.run.setting_fields import Settings
from app.run.settings import as_environment, load_settings
from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.jobs import runtime
from tasks.jobs.queues import CLOCKS_S, node_of
from tasks.jobs.schedule import SWEEPS
from tasks.jobs.strategies import ALLOCATION

CLUSTER = Settings(database_url="postgresql+psycopg2://u:p@db/r", redis_url="redis://:geheim@cache:6379/3")
some_text = st.text("abc:/@.-%雪", min_size=1)
above_zero = st.floats(0.001, 1e6)


@given(
    st.builds(
        Settings,
        database_url=some_text.map(lambda text: f"sqlite:///{text}"),
        redis_url=st.sampled_from(
            ["", "redis://h", "rediss://:p%23@h:1/3", "sentinel://a;sentinel://:p@b/2"]
        ),
        redis_master=some_text,
        sites=st.none() | some_text,
        lab=st.none() | st.tuples(st.just("127.0.0.1"), st.integers(1, 65535)),
        contact=some_text,
        allocation=st.sampled_from(list(ALLOCATION)),
        modification=st.booleans(),
        recall=st.booleans(),
        silent_after_s=above_zero,
        backoff_s=above_zero,
        rest_factor=above_zero,
        request_timeout_s=above_zero,
        address=st.none() | some_text,
        slots=st.integers(1, 1000),
        kinds=st.none() | st.frozensets(st.sampled_from(list(Kind)), min_size=1),
        report_file=st.none() | some_text,
        seed=st.none() | st.integers(),
    )
)
def test_a_child_reads_the_very_settings_it_is_given(settings):
    assert load_settings(as_environment(settings)) == settings


def test_no_setting_is_left_out_of_a_childs_environment():
    given_all = Settings(
        sites="a",
        lab=("127.0.0.1", 1),
        contact="a",
        machine="a",
        address="a",
        kinds=frozenset(Kind),
        report_file="a",
        seed=1,
        proxy="http://a:1",
        secret_key="a",
        searxng_url="http://a:1",
        pseudonym_key="a",
        pulse_file="a",
        chromium="a",
        web_viewer="sha256:" + "a" * 64,
        web_operator="sha256:" + "a" * 64,
        alert_to="log",
        request_log="a",
        smtp_url="smtps://u:p@a",
        mail_from="a@b.cn",
        trusted_proxies=frozenset({ip_network("10.0.0.0/8")}),
        themes="a",
        only_sites=frozenset({"a.cn"}),
        web_address="https://a.cn/r",
        web_root_path="/r",
    )
    names = {f"REVIEWLOOP_{name.upper()}" for name in Settings.model_fields} - {"REVIEWLOOP_REDIS_URL"}
    assert names <= set(as_environment(given_all))


def test_celery_takes_json_only_and_acknowledges_late():
    conf = make_app(CLUSTER).conf
    assert conf.accept_content == ["json"]
    assert (conf.task_serializer, conf.event_serializer) == ("json", "json")
    assert conf.result_backend is None
    assert conf.task_ignore_result
    assert conf.task_acks_late
    assert conf.worker_prefetch_multiplier == 1
    assert conf.broker_transport_options["visibility_timeout"] >= 86_400


def test_beat_runs_the_schedule_table_and_every_tick_expires():
    entries = beat_schedule(silent_after_s=60.0)
    scheduled = {name: entry["schedule"] for entry in entries.values() for name in entry["args"]}
    assert scheduled == {sweep.name: sweep.every_s for sweep in SWEEPS}
    together = [entry["args"] for entry in entries.values() if len(entry["args"]) > 1]
    assert together == [
        ("plan", "recall", "wake", "admit", "allocate", "rebalance", "links", "reposts", "counts"),
        ("recrawl_due", "train", "seen", "alerts"),
    ]
    for entry in entries.values():
        assert entry["options"] == {"queue": "control", "expires": entry["schedule"] + CLOCKS_S}
    tasks = make_app(CLUSTER).tasks
    assert {entry["task"] for entry in entries.values()} <= set(tasks)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (Settings(redis_url="redis://h"), "REVIEWLOOP_DATABASE_URL"),
        (Settings(database_url="postgresql://h/d"), "REVIEWLOOP_REDIS_URL"),
    ],
)
def test_what_a_cluster_cannot_run_on_is_refused_by_name(settings, named):
    with pytest.raises(InputError, match=named) as refused:
        make_app(settings)
    assert "geheim" not in str(refused.value)


def test_a_sentinel_url_gives_password_and_database_of_the_master():
    places, master = sentinels("sentinel://:geheim%21@a:26380;sentinel://b/2")
    assert places == [("a", 26380), ("b", 26379)]
    assert master == {"password": "geheim!", "db": 2}


def test_a_process_is_one_node():
    assert node_of(["crawl.n1"]) == "n1"
    assert node_of(["control", "crawl.bj.2"]) == "bj.2"
    assert node_of(["control"]) is None
    with pytest.raises(ValueError, match="a, b"):
        node_of(["crawl.b", "crawl.a"])


def test_a_task_in_the_wrong_process_says_so():
    with pytest.raises(Exception, match="-Q control"):
        runtime.control()
    with pytest.raises(Exception, match=r"-Q crawl\.NODE"):
        runtime.crawl()


class OneMark:
    """What Turns uses of Redis: one key that passes away, on a clock of its own."""

    def __init__(self) -> None:
        self.until_s = 0.0
        self.taken = 0

    async def set(self, _key, _value, *, nx, px):
        assert nx
        now = asyncio.get_running_loop().time()
        if now < self.until_s:
            return None
        self.until_s = now + px / 1000
        self.taken += 1
        return True


def test_many_free_slots_ask_for_few_turns_and_the_last_one_is_served():
    async def story():
        sent: list[float] = []
        clock = asyncio.get_running_loop().time
        mark = OneMark()
        nodes = [TurnRequests(mark, lambda: sent.append(clock())) for _ in range(20)]
        serving = [asyncio.create_task(node.serve()) for node in nodes]
        last_free = clock()
        for _ in range(10):
            for node in nodes:
                node.ask()
            last_free = clock()
            await asyncio.sleep(0.03)
        async with asyncio.timeout(PATIENCE_S):
            while not sent or max(sent) < last_free or len(sent) < mark.taken:
                await asyncio.sleep(0.01)
        for task in serving:
            task.cancel()
        assert len(sent) <= mark.taken, (
            "no turn is asked for without the mark, and it is free a few times a second"
        )
        return sent

    assert len(asyncio.run(story())) < 200, "so many slots were free"


def test_a_worker_that_loses_its_broker_does_not_die_of_an_unacknowledged_message(redis_url):
    app = make_app(CLUSTER.replace(redis_url=redis_url))
    with app.connection_for_write() as writing:
        queue = app.amqp.queues["control"](writing.default_channel)
        queue.declare()
        writing.Producer().publish({}, routing_key="control", exchange=queue.exchange)
    reading = app.connection_for_read()
    assert app.amqp.queues["control"](reading.default_channel).get() is not None
    reading.transport.client = None  # as the consumer's own clean-up leaves it
    reading.close()


@pytest.fixture
def away(monkeypatch):
    """A broker that refuses the first 20 connections; the list of pauses in between, which take no time."""
    pauses, refused = [], iter(range(20))

    def connect(_connection):
        if next(refused, None) is not None:
            raise ConnectionRefusedError

    monkeypatch.setattr(functional, "sleep", pauses.append)
    monkeypatch.setattr(PromptConnection, "_connection_factory", connect)
    return pauses


def test_a_worker_tries_a_broker_that_is_away_again_soon(away):
    reported = []
    connection = make_app(CLUSTER).connection_for_read()
    connection.ensure_connection(lambda _error, pause_s: reported.append(pause_s), None)
    assert reported == [2.0, 4.0, *[5.0] * 18]
    assert sum(away) == sum(reported)


def test_beat_has_a_pulse_while_its_broker_is_away(away, tmp_path):
    pulse = tmp_path / "pulse"
    scheduler = PulsedScheduler(make_app(CLUSTER.replace(pulse_file=str(pulse))), lazy=True)
    assert not pulse.exists()
    assert scheduler.producer is not None
    assert last_beat(pulse).pid == os.getpid()
    assert away
