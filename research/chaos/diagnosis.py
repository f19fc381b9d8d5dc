"""Diagnosis of a stall: queues, nodes, rests and transactions at that moment, and the state of every program."""

from __future__ import annotations

import signal
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime

import psutil
from sqlalchemy import Connection

from research.chaos import movement
from tasks.store.queue import hosts, nodes, transitions, upkeep
from tasks.store.sql.postgres import open_transactions

STACKS = signal.SIGUSR1
"""Signal on which a Celery worker writes the stacks of its threads to its log."""


def stood_still(conn: Connection, now: datetime) -> str:
    """Return filled queues, due and leased work, heartbeats, rests, paces and the oldest transactions as text."""
    queues = ", ".join(f"{n} in {state}" for state, n in transitions.count_queues(conn).items() if n)
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
    """Return the hosts that granted less than their limits when the scheduler last measured."""
    found = upkeep.load_measurements(conn)
    if found is None:
        return "not measured"
    slow = ", ".join(
        f"{host} {one.share:.0%}, next in {one.next_s:.1f} s" for host, one in sorted(found.grants.items())
    )
    return f"{slow or 'all in full'} ({(now - found.at).total_seconds():.0f} s ago)"


def waits(pids: Mapping[str, int | None], up: Collection[str]) -> str:
    """Return what every program does now, and have those that are up write the stacks of their threads to their logs.

    Args:
        pids: process of each program; None: it does not run.
        up: programs that have come up. The signal would end another one.
    """
    for name in up:
        with suppress(psutil.Error):
            psutil.Process(pids[name]).send_signal(STACKS)
    states = "; ".join(f"{name}: {_state(pid)}" for name, pid in pids.items())
    return f"{states}; stacks are in the logs of {', '.join(up) or 'none'}"


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
