"""The supervisor: what ends is started again, what never comes up is told, nothing outlives it."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from threading import Event

import psutil
import pytest
from clusters import gone, opened
from patience import until

from app.run.cluster.processes import Program
from app.run.cluster.pulse import last_beat, read_start
from app.run.cluster.supervisor import Cluster, ClusterFailed, Supervisor
from app.run.open_store import servers_answer
from app.run.process import Until
from app.run.setting_fields import Settings
from app.views import words
from app.views.words import language
from tasks.store.sql.tables import metadata

ROOT = Path(__file__).parents[2]


@pytest.fixture
def told():
    return []


@pytest.fixture
def servers():
    """Whether the servers answer: change its one value."""
    return [True]


@pytest.fixture
def watch(told, servers):
    """A supervisor on a clock of its own; ends what a test left."""
    clock = [0.0]
    supervisor = Supervisor(told.append, lambda: clock[0], lambda: servers[0])
    yield supervisor, clock
    supervisor.stop(["it"])


def program(tmp_path, code, **options):
    return Program(
        name="it", command=[sys.executable, "-I", "-S", "-c", code], log=tmp_path / "it.log", **options
    )


def dead(supervisor):
    return until(lambda: supervisor.pid("it") is None)


def test_what_dies_is_started_again_after_a_growing_delay(tmp_path, watch, told):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "raise SystemExit(3)"))
    for delay_s in (0.5, 1.0, 2.0):
        dead(supervisor)
        supervisor.check()
        assert f"it ended with status 3; started again in {delay_s:g} s" in told[-1]
        clock[0] += delay_s - 0.01
        supervisor.check()
        assert supervisor.pid("it") is None
        clock[0] += 0.01
        supervisor.check()
    assert len(told) == 3


def test_what_never_comes_up_ends_the_cluster_with_its_last_words(tmp_path, watch):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "print('no such table'); raise SystemExit(1)"))

    def restart():
        while True:
            dead(supervisor)
            supervisor.check()
            clock[0] += 10.0
            supervisor.check()
            clock[0] -= 1.0  # it lived for less than what counts as having come up

    with pytest.raises(ClusterFailed, match="no such table"):
        restart()


def test_the_rest_goes_on_without_a_program_that_is_not_needed(tmp_path, watch, told):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "print('port taken'); raise SystemExit(2)", needed=False))
    for _ in range(5):
        dead(supervisor)
        supervisor.check()
        clock[0] += 4.0
        supervisor.check()
    assert "port taken\nEverything else goes on without it." in told[-1]
    clock[0] += 3600.0
    supervisor.check()
    assert len(told) == 5
    assert supervisor.pid("it") is None
    supervisor.stop(["it"])


def test_a_program_without_its_servers_is_started_again_however_often_it_ends(tmp_path, watch, told, servers):
    supervisor, clock = watch
    servers[0] = False
    supervisor.start(program(tmp_path, "raise SystemExit(1)"))
    for _ in range(12):
        dead(supervisor)
        supervisor.check()
        clock[0] += 4.0
        supervisor.check()
    delays = [float(line.partition("again in ")[2].split()[0]) for line in told]
    assert delays == [0.5, 1, 2, *[4] * 9]
    servers[0] = True
    for _ in range(4):
        dead(supervisor)
        supervisor.check()
        clock[0] += 4.0
        supervisor.check()
    dead(supervisor)
    with pytest.raises(ClusterFailed, match="5 times in a row"):
        supervisor.check()


def test_what_ran_for_a_while_is_forgiven_its_earlier_failures(tmp_path, watch, told):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "pass"))
    for _ in range(10):
        dead(supervisor)
        clock[0] += 60.0
        supervisor.check()
        clock[0] += 0.5
        supervisor.check()
    assert all("started again in 0.5 s" in line for line in told)


def test_what_does_not_end_when_asked_is_killed(tmp_path, watch, told):
    supervisor, _ = watch
    deaf = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
    )
    supervisor.start(program(tmp_path, deaf, stop_s=0.1))
    until(lambda: (tmp_path / "it.log").read_text())
    supervisor.stop(["it"])
    assert "it did not end in time and was killed" in told[-1]


def test_what_is_frozen_is_killed_and_started_again(tmp_path, watch, told):
    supervisor, clock = watch
    pulse = tmp_path / "it.pulse"
    code = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r}); from app.run.cluster.pulse import Pulse\n"
        f"Pulse({str(pulse)!r}).beat(); time.sleep(600)"
    )
    supervisor.start(program(tmp_path, code, pulse=pulse, silent_s=60.0))
    until(pulse.exists)
    pid = supervisor.pid("it")
    clock[0] = last_beat(pulse).at_s + 60
    supervisor.check()
    assert supervisor.pid("it") == pid
    psutil.Process(pid).suspend()
    clock[0] += 1
    supervisor.check()
    assert told[0] == "it is silent for 61 s and was killed"
    dead(supervisor)  # the system may be quick: the same check may have seen the end
    supervisor.check()
    assert "it ended with SIGKILL; started again" in told[-1]


def test_a_silent_program_is_left_alone_while_a_server_is_away_and_for_its_time_after_that(
    tmp_path, watch, told, servers
):
    supervisor, clock = watch
    pulse = tmp_path / "it.pulse"
    supervisor.start(program(tmp_path, "import time; time.sleep(600)", pulse=pulse, silent_s=60.0))
    pid = supervisor.pid("it")
    pulse.write_text(f"{pid} {read_start(pid)} 0.0\n")
    servers[0] = False
    for clock[0] in (61.0, 122.0, 183.0):
        supervisor.check()
    servers[0] = True
    clock[0] += 60.0
    supervisor.check()
    assert not told
    clock[0] += 1.0
    supervisor.check()
    dead(supervisor)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
def test_a_child_ends_with_a_parent_that_is_killed(tmp_path, launch):
    pid = tmp_path / "pid"
    code = (
        "import sys, time; from pathlib import Path; from app.run.cluster.processes import Program, start\n"
        "p = Program(name='c', command=[sys.executable, '-c', 'import time; time.sleep(600)'],\n"
        f"    log=Path({str(pid)!r} + '.log'))\n"
        "p = start(p)\n"
        f"Path({str(pid)!r}).write_text(str(p.pid)); time.sleep(600)"
    )
    (tmp_path / "parent.py").write_text(code)
    parent = launch("parent", settings=Settings())
    child = psutil.Process(int(until(lambda: pid.exists() and pid.read_text())))
    parent.popen.send_signal(signal.SIGKILL)
    until(lambda: gone([child]))


def test_a_stopped_program_is_killed_as_often_as_it_takes(tmp_path, watch, told):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "import time; time.sleep(600)"))
    for _ in range(6):  # more often than a program may fail to start
        process = psutil.Process(supervisor.pid("it"))
        process.suspend()
        until(lambda process=process: process.status() == psutil.STATUS_STOPPED)
        supervisor.end_stopped(["it"])
        for pause_s in (4.9, 0.2):
            assert supervisor.pid("it")
            clock[0] += pause_s
            supervisor.end_stopped(["it"])
        assert told.pop() == "it is stopped: it is killed"
        dead(supervisor)
        supervisor.check()
        clock[0] += 0.5
        supervisor.check()
        assert "it ended with SIGKILL; started again in 0.5 s" in told.pop()


def test_a_program_that_only_waits_is_left_alone(tmp_path, watch, told):
    """A process that waits in a socket isn't switched, and isn't frozen."""
    supervisor, clock = watch
    code = "import socket; a, b = socket.socketpair(); print('waits', flush=True); a.recv(1)"
    supervisor.start(program(tmp_path, code))
    until((tmp_path / "it.log").read_text)
    process = psutil.Process(supervisor.pid("it"))
    until(lambda: process.status() == psutil.STATUS_SLEEPING)
    for _ in range(3):
        clock[0] += 600.0
        supervisor.end_stopped(["it"])
        supervisor.check()
    assert not told


def test_a_stop_that_ends_soon_is_not_held_against_a_program(tmp_path, watch, told):
    supervisor, clock = watch
    supervisor.start(program(tmp_path, "import time; time.sleep(600)"))
    process = psutil.Process(supervisor.pid("it"))
    for _ in range(3):
        process.suspend()
        until(lambda: process.status() == psutil.STATUS_STOPPED)
        supervisor.end_stopped(["it"])
        clock[0] += 4.0
        process.resume()
        until(lambda: process.status() != psutil.STATUS_STOPPED)
        supervisor.end_stopped(["it"])
    assert supervisor.pid("it")
    assert not told


def test_servers_answer_only_if_both_do(postgres_url, redis_url, unused_port):
    settings = Settings(database_url=postgres_url, redis_url=redis_url)
    assert servers_answer(settings)
    assert not servers_answer(settings.replace(redis_url=f"redis://127.0.0.1:{unused_port}/0"))
    assert not servers_answer(settings.replace(database_url=f"postgresql://u@127.0.0.1:{unused_port}/r"))
    with socket.create_server(("127.0.0.1", 0)) as frozen:  # connects, and doesn't answer
        there = f"127.0.0.1:{frozen.getsockname()[1]}"
        assert not servers_answer(settings.replace(redis_url=f"redis://{there}/0"))
        assert not servers_answer(settings.replace(database_url=f"postgresql://u@{there}/r"))


def test_a_store_that_does_not_answer_holds_up_no_restart(tmp_path, monkeypatch):
    cluster = Cluster(Settings(), tmp_path, print)
    looks, answered, answer = 0, [], Event()
    monkeypatch.setattr(words._Process, "language", "zh")

    def check():
        nonlocal looks
        looks += 1
        cluster.signalled = looks == 3

    monkeypatch.setattr(cluster.supervisor, "start", lambda _program: None)
    monkeypatch.setattr(cluster.supervisor, "end_stopped", lambda _names: None)
    monkeypatch.setattr(cluster.supervisor, "check", check)
    monkeypatch.setattr(cluster.supervisor, "stop", lambda _names: answer.set())
    with opened("sqlite://") as store:
        with store.begin() as tx:
            metadata.create_all(tx.engine_connection)
        cluster.run(store, [], Until(), lambda: answered.append((language(), answer.wait(20.0))))
    assert answered == [("zh", True)]  # at the end, and not by its time limit
