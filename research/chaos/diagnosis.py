"""Diagnosis of a stall: the queues, nodes, rests and sessions of that moment, and what every program waited for."""

from __future__ import annotations

import re
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from itertools import takewhile
from pathlib import Path

import psutil
from sqlalchemy import Connection

from tasks.store import hosts, measurements, movement, nodes, queue_counts
from tasks.store.postgres import open_transactions

ANSWER_S = 3.0
"""A program that runs writes its threads' stacks within this time."""

STACKS = signal.SIGUSR1
"""A Celery worker that has come up writes the stacks of its threads to its log on this signal."""

_RULER = "=" * 49
_FRAME = re.compile(r'  File "([^"]+)", line (\d+), in (.+)')
_HANDLER = "cry_handler"
_OURS = {"app", "tasks", "splitter"}


def stood_still(conn: Connection, now: datetime) -> str:
    """Queues that hold something, what is due and leased, heartbeats, rests, paces, and the oldest transactions."""
    queues = ", ".join(f"{n} in {state}" for state, n in queue_counts.counts(conn).items() if n)
    due, leased = movement.due(conn, now), movement.leased(conn)
    heard = ", ".join(
        f"{node.node.name} {(now - node.seen_at).total_seconds():.0f} s ago"
        for node in nodes.listed(conn)
        if node.seen_at is not None
    )
    rests = ", ".join(
        f"{one.host} for {one.node} {(one.until - now).total_seconds():.0f} s ({one.cause}, {one.times} in a row)"
        for one in hosts.breakers(conn, now)
    )
    sessions = "; ".join(
        f"{state}, waits for {waits or 'nothing'}, {seconds:.0f} s: {' '.join(query.split())}"
        for state, waits, seconds, query in open_transactions(conn)
    )
    return (
        f"{queues or 'nothing in any queue'}; due: {_as_text(due)}; leased: {_as_text(leased)}; heard of {heard}; "
        f"rests: {rests or 'none'}; paces: {_paces(conn, now)}; transactions: {sessions or 'none'}"
    )


def _as_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{n} of {what}" for what, n in sorted(counts.items())) or "nothing"


def _paces(conn: Connection, now: datetime) -> str:
    """The hosts that granted less than their limits, as the scheduler measured last."""
    found = measurements.load(conn)
    if found is None:
        return "not measured"
    slow = ", ".join(
        f"{host} {one.share:.0%}, next in {one.next_s:.1f} s" for host, one in sorted(found.grants.items())
    )
    return f"{slow or 'all in full'} ({(now - found.at).total_seconds():.0f} s ago)"


def waits(pids: Mapping[str, int | None], up: Collection[str], logs: Mapping[str, Path]) -> str:
    """What every program waits for now: how long it runs, its CPU time, and the innermost calls of its threads.

    Args:
        pids: of the programs, by name; None: it does not run.
        up: those that run, have come up, and write their stacks when asked: the signal would end another one.
        logs: where they write to.
    """
    begun = {name: _size(logs[name]) for name in up}
    for name in up:
        with suppress(psutil.Error):
            psutil.Process(pids[name]).send_signal(STACKS)
    end_s = time.monotonic() + ANSWER_S
    while any(_size(logs[name]) == begin for name, begin in begun.items()) and time.monotonic() < end_s:
        time.sleep(0.05)
    return "; ".join(
        f"{name}: {_state(pid)}" + (f", {_stacks(logs[name], begun[name])}" if name in up else "")
        for name, pid in pids.items()
    )


def _state(pid: int | None) -> str:
    if pid is None:
        return "does not run"
    try:
        process = psutil.Process(pid)
        cpu = process.cpu_times()
        age_s = time.time() - process.create_time()
        return f"{process.status()}, runs for {age_s:.0f} s, {cpu.user + cpu.system:.1f} s of CPU"
    except psutil.Error:
        return "has just ended"


def _size(log: Path) -> int:
    return log.stat().st_size if log.exists() else 0


def _stacks(log: Path, begin: int) -> str:
    with suppress(OSError), log.open("rb") as file:
        file.seek(begin)
        told = list(innermost(file.read().decode("utf-8", "replace")))
        if told:
            return ", ".join(f"{n} threads {at}" if n > 1 else at for at, n in Counter(told).items())
    return "writes no stacks"


def innermost(text: str) -> Iterator[str]:
    """Of each thread's stack in a worker's log the innermost call, and the innermost one of ours.

    Args:
        text: as Celery's handler of `STACKS` writes it.
    """
    lines = text.splitlines()
    for at, line in enumerate(lines[1:], 1):
        # Name, ruler, stack, ruler; then the local variables in the same way, without frames.
        if line != _RULER or not lines[at + 1 : at + 2] or not _FRAME.match(lines[at + 1]):
            continue
        end = next((n for n in range(at + 1, len(lines)) if lines[n] == _RULER), len(lines))
        calls = [found.groups() for one in lines[at + 1 : end] if (found := _FRAME.match(one))]
        frames = list(takewhile(lambda call: call[2] != _HANDLER, calls))
        ours = [one for one in frames if "site-packages" not in one[0] and _OURS & {*Path(one[0]).parts}]
        inner = dict.fromkeys([frames[-1], *ours[-1:]])
        yield f"{lines[at - 1]} in " + " from ".join(_place(*frame) for frame in inner)


def _place(path: str, line: str, function: str) -> str:
    return f"{function} ({'/'.join(Path(path).parts[-2:])}:{line})"
