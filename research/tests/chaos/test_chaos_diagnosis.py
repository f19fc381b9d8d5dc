"""A stall is told with what every program waited for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from patience import until

from app.actions.products import new_product
from research.chaos import diagnosis
from research.chaos.stall import STALL_S, StallWatch
from tasks.domain.breaker import FIRST_UNREACHABLE_S
from tasks.domain.host_wait import UNREACHABLE
from tasks.store.content import products
from tasks.store.queue import hosts, partitions, tasks
from tasks.store.sql.database import read_now

WORKER = """
import signal, sys, time
from celery.apps.worker import install_cry_handler
install_cry_handler()
def waits_for_the_database():
    print("up", flush=True)
    while True:
        time.sleep(60)
waits_for_the_database()
"""


class Still:
    """A watch that saw something move once, at 0 s."""

    def last_before(self, _at_s: float) -> float:
        return 0.0

    def note_idle(self, _at_s: float) -> None:
        raise AssertionError("there is work")


def test_a_program_is_asked_only_once_it_is_up(tmp_path):
    log = tmp_path / "worker.log"
    log.write_text("of an earlier time\n")
    with log.open("ab") as out:
        process = subprocess.Popen([sys.executable, "-c", WORKER], stdout=out, stderr=out)
    try:
        until(lambda: log.read_text().endswith("up\n"))
        pids = {"worker": process.pid, "beat": os.getpid(), "gone": None}
        told = diagnosis.waits(pids, ["worker"]).split("; ")
        until(lambda: "waits_for_the_database" in log.read_text())
    finally:
        process.kill()
        process.wait()
    assert told[0].startswith("worker: ")
    assert told[1].startswith("beat: ")
    assert told[2:] == ["gone: does not run", "stacks are in the logs of worker"]


@pytest.fixture
def waiting(postgres_store):
    """A store with two subtasks that wait, and a host that rests for a node."""
    with postgres_store.begin() as conn:
        now = read_now(conn)
        products.add(conn, now, new_product("光明高钙牛奶"))
        (wanted,) = tasks.unplanned(conn, 1)
        partition = partitions.NewPartition(("光明",), [["http://e.example/1"], ["http://e.example/2"]])
        tasks.plan(conn, now, wanted, [tasks.NewTask("12315.com", "baidu", "meta", (partition,))])
        conn.exec_driver_sql("UPDATE subtasks SET state = 'WAIT'")
        rest = hosts.Rest("e.example", UNREACHABLE, lambda times: times * FIRST_UNREACHABLE_S)
        hosts.rest_host(conn, now, "node1", rest)
    return postgres_store


def test_a_stall_tells_what_is_due_what_rests_and_what_everybody_waits_for(waiting):
    now_s = [0.0]
    watch = StallWatch(Still(), waiting, (), 0.0, lambda: "control: sleeps", lambda: now_s[0])
    for at_s in (STALL_S, STALL_S + 1.5):
        now_s[0] = at_s
        watch.look()
        assert (watch.stalled is None) == (at_s == STALL_S)
    assert "of 12315.com" in watch.stalled
    assert "rests: e.example for node1" in watch.stalled
    assert watch.stalled.endswith("; control: sleeps")
