"""The pulse: written by a process's own loop, read by whoever ends it where it is frozen or held."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import psutil
import pytest
from patience import PATIENCE_S, until

from app.run.cluster import pulse
from app.run.cluster.pulse import PoolPulse, Pulse, last_beat, read_start

ROOT = Path(__file__).parents[2]


def check(file, within_s, *options):
    """The check as a container runs it: in a process of its own, from the project's folder."""
    words = [sys.executable, "-m", "app.run.cluster.pulse", str(file), "--within", str(within_s), *options]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "pulse"


@pytest.fixture
def beating(file):
    """Another process that beats on and on."""
    code = "import sys, time\nfrom app.run.cluster.pulse import Pulse\np = Pulse(sys.argv[1])\n"
    code += "while True:\n    p.beat()\n    time.sleep(0.01)"
    process = subprocess.Popen([sys.executable, "-c", code, str(file)], cwd=ROOT)
    until(file.exists, what="a first beat")
    yield process
    process.kill()
    process.wait()


def test_a_beat_names_its_process_and_the_time(file):
    before = time.monotonic()
    Pulse(str(file)).beat()
    beat = last_beat(file)
    assert (beat.pid, beat.start) == (os.getpid(), read_start(os.getpid()))
    assert before <= beat.at_s <= time.monotonic()
    assert beat.silent_s(beat.at_s + 7) == 7
    assert beat.silent_s(beat.at_s - 1) == float("inf")  # of before the machine started


def test_a_frozen_process_is_seen_and_ended_by_who_asks_for_it(file, beating):
    assert check(file, 60).returncode == 0
    beating.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(beating.pid).status() == psutil.STATUS_STOPPED, what="frozen")
    seen = check(file, 0)
    assert seen.returncode == 1
    assert f"process {beating.pid} is silent" in seen.stderr
    assert beating.poll() is None
    told = check(file, 0, "--end")
    assert told.returncode == 1
    assert told.stderr.strip().endswith(": killed")
    assert beating.wait(timeout=PATIENCE_S) == -signal.SIGKILL
    assert "killed" not in check(file, 0, "--end").stderr


def test_another_process_with_its_number_is_left_alone(file, beating):
    beating.send_signal(signal.SIGSTOP)
    until(lambda: psutil.Process(beating.pid).status() == psutil.STATUS_STOPPED, what="frozen")
    pid, start, at_s = file.read_text().split()
    file.write_text(f"{pid} {int(start) - 1} {at_s}\n")
    assert check(file, 0, "--end").returncode == 1
    assert beating.poll() is None


@pytest.mark.parametrize("text", [None, "", "12 34", "a b c"])
def test_no_pulse_is_a_failed_check_and_no_traceback(file, text):
    if text is not None:
        file.write_text(text)
    told = check(file, 60, "--end")
    assert told.returncode == 1
    assert str(file) in told.stderr
    assert "Traceback" not in told.stderr


def test_a_pool_whose_threads_are_all_held_is_silent(file, monkeypatch):
    monkeypatch.setattr(pulse, "EVERY_S", 0.0)
    held = Event()

    def at_s():
        return last_beat(file).at_s

    with ThreadPoolExecutor(2) as pool, PoolPulse(Pulse(str(file)), pool):
        until(file.exists)
        first = pool.submit(held.wait)
        before = at_s()
        until(lambda: at_s() > before, what="one thread is left to beat")
        both = [first, pool.submit(held.wait)]
        until(lambda: all(one.running() for one in both), what="both are held")
        before = at_s()
        assert at_s() == before
        held.set()
        until(lambda: at_s() > before, what="it goes on")


def test_a_file_that_cannot_be_written_is_told_and_ends_nothing(tmp_path, caplog):
    Pulse(str(tmp_path / "nowhere" / "pulse")).beat()
    assert "nowhere" in caplog.text


def test_without_a_file_there_is_no_pulse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Pulse("").beat()
    assert not list(tmp_path.iterdir())
