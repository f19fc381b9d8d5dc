"""The Celery programs of a cluster on one machine: control worker, beat, crawl nodes."""

from __future__ import annotations

import sys
from pathlib import Path

from app.run.cluster.processes import Program
from app.run.nodes import own_settings
from app.run.setting_fields import Settings
from app.run.settings import as_environment
from tasks.jobs.queues import CONTROL, crawl_queue
from tasks.store.queue.nodes import Node

_QUIET = ("--without-gossip", "--without-mingle", "--without-heartbeat")
_CONTROL_THREADS = 2
_NODE_SILENT_S = 60.0
# A long sweep (reposts, run times) may have one of its threads, a slow database the other.
_CONTROL_SILENT_S = 300.0
# It waits for a broker that is away inside its turn.
_BEAT_SILENT_S = 120.0


def control(settings: Settings, log: Path, name: str = "control") -> Program:
    """A control worker, which runs the sweeps."""
    return _worker(name, CONTROL, _CONTROL_THREADS, settings, log, _CONTROL_SILENT_S)


def beat(settings: Settings, log: Path, name: str = "beat") -> Program:
    """Celery beat, which sends the sweeps."""
    return _celery(name, settings, log, _BEAT_SILENT_S, "beat")


def node(row: Node, settings: Settings, log: Path) -> Program:
    """A crawl node, with the address, kinds and proxy of its row."""
    own = own_settings(settings, row)
    if own.request_log:  # a file has one writer
        shared = Path(own.request_log)
        own = own.with_(request_log=str(shared.with_stem(f"{shared.stem}.{row.name}")))
    return _worker(row.name, crawl_queue(row.name), row.slots, own, log, _NODE_SILENT_S)


def web(settings: Settings, log: Path, port: int) -> Program:
    """The dashboard, on this machine alone."""
    command = [sys.executable, "-m", "app", "web", "--port", str(port)]
    return Program(name="web", command=command, log=log, environment=as_environment(settings), stop_s=5.0)


def _worker(name: str, queue: str, slots: int, settings: Settings, log: Path, silent_s: float) -> Program:
    options = ("-P", "threads", "-c", str(slots), "-Q", queue, "-n", f"{name}@%h", *_QUIET)
    return _celery(name, settings, log, silent_s, "worker", *options)


def _celery(name: str, settings: Settings, log: Path, silent_s: float, *arguments: str) -> Program:
    command = [sys.executable, "-m", "celery", "--quiet", "-A", "app.celery", *arguments, "-l", "WARNING"]
    pulse = log.with_suffix(".pulse")
    environment = as_environment(settings.with_(pulse_file=str(pulse.resolve())))
    return Program(
        name=name, command=command, log=log, environment=environment, pulse=pulse, silent_s=silent_s
    )
