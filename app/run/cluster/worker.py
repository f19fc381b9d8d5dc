"""A Celery worker process: what it opens for its queues before it takes work, and closes after its last task."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from celery import bootsteps

from app.run.cluster.pulse import PoolPulse, Pulse
from app.run.settings import load_settings
from splitter.errors import ReviewloopError
from tasks.jobs.queues import CONTROL, node_of

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tasks.jobs.runtime import Control

log = logging.getLogger("reviewloop.worker")


class Runtime(bootsteps.StartStopStep):
    """Opens the scheduler for queue `control` and the crawl node for queue `crawl.NODE`.

    Started after the pool and before the consumer; stopped between them: no message comes any more, the pool's
    threads still wait for their attempts, and these can still be acknowledged.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        self._stack = ExitStack()

    def start(self, worker: Any) -> None:
        """Open. Ends the process with 2 where the settings are wrong, 1 where the database doesn't answer."""
        try:
            with ExitStack() as stack:
                self._open(worker, stack)
                self._stack = stack.pop_all()
        except (ReviewloopError, ValueError) as error:
            log.critical("%s", error)
            raise SystemExit(2) from None

    def stop(self, worker: Any) -> None:  # noqa: ARG002
        """Give leases back, let sweeps end, and close; a node takes at most `node_process.STOP_S`."""
        self._stack.close()

    terminate = stop

    def _open(self, worker: Any, stack: ExitStack) -> None:
        if not worker.pool_cls.__module__.endswith("thread"):
            raise ValueError("a worker's slots are threads of one process: start it with -P threads")
        queues = list(worker.app.amqp.queues.consume_from)
        node = node_of(queues)
        if node is None and CONTROL not in queues:
            raise ValueError(f"-Q {','.join(queues)}: a worker serves crawl.NODE, {CONTROL}, or both")
        # Each process imports what its own queues need; beat, which serves none, neither.

        # Beat imports this module and serves no queue.
        from tasks.jobs import runtime

        settings = load_settings()
        if CONTROL in queues:
            from app.run.cluster.control_process import opened_control

            runtime.opened = stack.enter_context(opened_control(settings))
            stack.callback(_end_sweeps, runtime.control(), worker.pool.executor)
        if node is None:
            stack.enter_context(PoolPulse(Pulse(settings.pulse_file), worker.pool.executor))
        else:
            from app.run.cluster.node_process import NodeProcess

            opened = stack.enter_context(NodeProcess(settings, node, worker.concurrency))
            runtime.opened.crawl = opened.crawl


def _end_sweeps(control: Control, pool: Executor) -> None:
    """Wait for the sweeps that run, which stop at their next step: what they use is closed after it."""
    control.ending.set()
    pool.shutdown(cancel_futures=True)
