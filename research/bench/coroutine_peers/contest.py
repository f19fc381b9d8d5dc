"""Contestants and servers of the coroutine bench as processes: started, asked, ended."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from app.run.version import ROOT
from research.bench.coroutine_peers.slowserver import BODY_BYTES
from research.bench.coroutine_peers.window import Order
from splitter.errors import ReviewloopError

_LONGEST_S = 150.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How the server is slow: a mode of `slowserver` and its amount (seconds, requests or bits a second)."""

    mode: str
    amount: float


@contextmanager
def _server(pace: Pace) -> Iterator[tuple[int, dict[str, Any]]]:
    """A server of its own: its port, and a dictionary that holds what it did once it ended."""
    command = [sys.executable, "-m", "research.bench.coroutine_peers.slowserver", pace.mode, str(pace.amount)]
    done: dict[str, Any] = {}
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = process.stdout.readline()
        if not port:
            raise ReviewloopError("the bench's server did not start: its message is above")
        try:
            yield int(port), done
        finally:
            rest, _ = process.communicate(timeout=30)
    done.update(json.loads(rest))


def asked(module: str, *arguments: str) -> Any:
    """What a contestant prints, read as JSON.

    Raises:
        ReviewloopError: it failed; with the end of what it said.
    """
    command = [sys.executable, "-m", f"research.bench.coroutine_peers.{module}", *arguments]
    try:
        process = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=_LONGEST_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ReviewloopError(f"{module} {' '.join(arguments)} did not end in {_LONGEST_S:g} s") from error
    if process.returncode:
        raise ReviewloopError(f"{module} {' '.join(arguments)} failed: {process.stderr.strip()[-600:]}")
    return json.loads(process.stdout)


def measured(module: str, pace: Pace, lanes: int, window_s: float = 0.0, samples: int = 1) -> dict[str, Any]:
    """One run of a contestant against a server of its own.

    Returns:
        What it told (`window.Told`, or what `held` prints), with ``connections`` (open at once, at most) and
        ``server_cpu_s`` as the server saw it.

    Raises:
        ReviewloopError: as `asked`.
    """
    with _server(pace) as (port, done):
        order = Order(port, lanes, window_s, samples, BODY_BYTES)
        told: dict[str, Any] = asked(module, json.dumps(asdict(order)))
    return {**told, "connections": done["open_most"], "server_cpu_s": done["cpu_s"]}


def median_of(rounds: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Rounds of one case as one: the median of each number, and pages a second of every round."""
    rounds = list(rounds)
    middle: dict[str, Any] = {
        name: _short(statistics.median(one[name] for one in rounds))
        for name, value in rounds[0].items()
        if isinstance(value, int | float)
    }
    return {**middle, "rounds_pages_per_s": [_short(one["pages_per_s"]) for one in rounds]}


def _short(value: float) -> float:
    """Three decimals below ten, one above."""
    return round(value, 3 if abs(value) < 10 else 1)
