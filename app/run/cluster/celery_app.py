"""The Celery application of a cluster: its configuration, beat's scheduler, and the start and stop of a worker."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from math import inf
from typing import TYPE_CHECKING, Any

from celery import Celery, bootsteps
from celery.beat import Scheduler
from celery.signals import after_setup_logger, after_setup_task_logger
from kombu.connection import Connection
from kombu.transport.redis import Channel

from app.run.cluster.pulse import EVERY_S, PoolPulse, Pulse
from app.run.cluster.redis_outage import RedisOutage
from app.run.cluster.signing import make_checked_task, sign_messages, signing_key
from app.run.open_store import ANSWER_S, check_cluster
from app.run.process import format_worker_log, warnings_as_json
from app.run.setting_fields import Settings
from app.run.settings import load_settings
from app.views.moments import use_zone
from splitter.errors import ReviewloopError
from tasks.jobs.queues import CLOCKS_S, CONTROL, node_of
from tasks.jobs.schedule import SWEEPS, interval_s

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tasks.jobs.runtime import Control

log = logging.getLogger("reviewloop.worker")

_KOMBU_ACK = Channel.basic_ack
_VISIBILITY_S = 86_400
"""Redis delivers an unacknowledged message again after this time. No message may depend on it: recall is a sweep over
leases, and a notification this old is useless. It must only not happen while an attempt runs."""
_WITHOUT = {"without_gossip": True, "without_mingle": True, "without_heartbeat": True}
"""Workers send each other no messages. Nothing reads them, and after an outage old ones look like wrong clocks."""
_RECONNECT_MOST_S = 5.0
_BROKER_ANSWER_S = 10.0
"""A worker asks for messages every second, so a broker that is silent for this long is gone."""


class PromptConnection(Connection):
    """A connection to the broker that tries again after short pauses. Kombu's own pauses grow to half a minute."""

    def ensure_connection(self, *given: Any, **options: Any) -> Any:
        """Connect, trying again until it succeeds."""
        return super().ensure_connection(*given, **options, interval_max=_RECONNECT_MOST_S)  # type: ignore[no-untyped-call]


def make_app(settings: Settings) -> Celery:
    """Return the Celery application: JSON only, late acknowledgement, no results, queue `control` by default.

    If a secret key is set, messages are signed, and a worker refuses unsigned messages (`app.run.cluster.signing`).

    Raises:
        InputError: the settings don't name a Redis and a PostgreSQL.
    """
    check_cluster(settings)
    use_zone(settings.timezone)
    if settings.log_format == "json":
        warnings_as_json()
    # A worker that loses its broker while it holds an unacknowledged message must not die of trying to put it back:
    # kombu has closed the connection it would need, and raises an AttributeError. Nothing depends on such a message.
    Channel.do_restore = False
    Channel.basic_ack = _acknowledge  # type: ignore[method-assign, assignment]
    key = signing_key(settings.secret_key) if settings.secret_key else None
    sign_messages(key)
    app = Celery(
        "reviewloop",
        broker=settings.redis_url,
        set_as_current=True,
        task_cls=make_checked_task(key) if key else None,
    )
    app.amqp.Connection = PromptConnection
    app.redis_outage = RedisOutage.from_settings(settings)
    app.steps["worker"].add(Runtime)
    app.conf.update(
        imports=("tasks.jobs.celery_tasks",),
        task_serializer="json",
        accept_content=["json"],
        event_serializer="json",
        result_backend=None,
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        task_default_queue=CONTROL,
        # Celery's own commands (shutdown, revoke) are not signed, and this program sends none.
        worker_enable_remote_control=key is None,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={
            "visibility_timeout": _VISIBILITY_S,
            "master_name": settings.redis_master,
            "health_check_interval": 15,
            "socket_timeout": _BROKER_ANSWER_S,
            "socket_connect_timeout": ANSWER_S,
            "socket_keepalive": True,
        },
        # An attempt needs no broker: its lease and its pages are in the database.
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_prefetch_count_reduction=False,
        timezone="UTC",
        beat_scheduler="app.run.cluster.celery_app:PulsedScheduler",
        reviewloop_pulse_file=settings.pulse_file,
        beat_schedule=beat_schedule(settings.silent_after_s),
    )

    def format_logs(logger: logging.Logger, format: str, **_: Any) -> None:
        format_worker_log(logger, format, settings.log_level, settings.log_format)
        for handler in logger.handlers:
            handler.addFilter(app.redis_outage)

    for signal in (after_setup_logger, after_setup_task_logger):
        signal.disconnect(dispatch_uid="reviewloop")
        signal.connect(format_logs, weak=False, dispatch_uid="reviewloop")
    return app


def _acknowledge(channel: Channel, delivery_tag: str, multiple: bool = False) -> None:
    """Acknowledge a message, or do nothing if its connection is gone.

    Kombu would raise an AttributeError, which ends the worker.
    """
    if channel.connection is not None:
        _KOMBU_ACK(channel, delivery_tag, multiple)  # type: ignore[no-untyped-call]


def beat_schedule(silent_after_s: float) -> dict[str, dict[str, Any]]:
    """Return the schedule table in the form that beat reads.

    Sweeps that are due at the same times share a message, because each message costs beat and its worker some
    milliseconds. A sweep that still runs when its next message comes is skipped (`tasks.jobs.celery_tasks`). Sweeps
    in the scheduler's transaction run first, so that the others, which may take long, don't delay them.
    """
    entries: dict[str, dict[str, Any]] = {}
    for sweep in SWEEPS:
        every_s = interval_s(sweep, silent_after_s)
        entry = entries.setdefault(
            f"every {every_s:g} s",
            {
                "task": "sweep",
                "args": (),
                "schedule": every_s,
                "options": {"queue": CONTROL, "expires": every_s + CLOCKS_S},
            },
        )
        entry["args"] += (sweep.name,)
    return entries


class PulsedScheduler(Scheduler):
    """Beat's scheduler, which also writes a pulse.

    It stores no state for a restart, because the intervals are short.
    """

    def __init__(self, app: Any, **options: Any) -> None:
        self._pulse = Pulse(app.conf.reviewloop_pulse_file)
        self._beat_at_s = -inf
        super().__init__(app, **{**options, "max_interval": EVERY_S})

    def tick(self, **options: Any) -> float:
        """Send the messages that are due. Return the seconds until the next turn."""
        if time.monotonic() - self._beat_at_s >= EVERY_S / 2:
            self._pulse.beat()
            self._beat_at_s = time.monotonic()
        wait_s: float = super().tick(**options)
        return wait_s

    def _ensure_connected(self) -> Any:
        """Connect to the broker and beat meanwhile, so that beat is not taken for blocked while the broker is away."""

        def note(error: Exception, _pause_s: float) -> None:
            self._pulse.beat()
            self.app.redis_outage.note_loss(error)

        return self.connection.ensure_connection(note)


class Runtime(bootsteps.StartStopStep):
    """Opens the scheduler for queue `control` and the crawl node for queue `crawl.NODE`, if the worker serves them.

    The step starts after the worker's pool and before its consumer, and stops in the reverse order. While it stops, the
    consumer takes no further messages, but the pool's threads still wait for their attempts, which can still be
    acknowledged.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **options: Any) -> None:
        super().__init__(worker, **options)
        worker.options |= _WITHOUT
        self._stack = ExitStack()

    def start(self, worker: Any) -> None:
        """Open the scheduler or node.

        Exit the process with 2 if the settings are wrong, with 1 if the database doesn't answer.
        """
        try:
            with ExitStack() as stack:
                self._open(worker, stack)
                self._stack = stack.pop_all()
        except (ReviewloopError, ValueError) as error:
            log.critical("%s", error)
            raise SystemExit(2) from None

    def stop(self, worker: Any) -> None:  # noqa: ARG002
        """Give leases back, let sweeps end, and close the scheduler or node.

        A node takes at most `node_process.STOP_S`.
        """
        self._stack.close()

    terminate = stop

    def _open(self, worker: Any, stack: ExitStack) -> None:
        if not worker.pool_cls.__module__.endswith("thread"):
            raise ValueError("a worker's slots are threads of one process: start it with -P threads")
        queues = list(worker.app.amqp.queues.consume_from)
        node = node_of(queues)
        if node is None and CONTROL not in queues:
            raise ValueError(f"-Q {','.join(queues)}: a worker serves crawl.NODE, {CONTROL}, or both")
        # Each process imports what its own queues need. Beat imports this module and serves no queue.
        from tasks.jobs import runtime

        settings = load_settings()
        if CONTROL in queues:
            from app.run.cluster.control_process import open_control

            runtime.opened = stack.enter_context(open_control(settings, worker.app.redis_outage))
            stack.callback(_end_sweeps, runtime.control(), worker.pool.executor)
            from tasks.jobs.celery_tasks import sweep

            # Products that wait for their tasks need not wait for beat as well. If this fails, beat's message logs it.
            worker.pool.executor.submit(sweep, "plan")
        if node is None:
            stack.enter_context(PoolPulse(Pulse(settings.pulse_file), worker.pool.executor))
        else:
            from app.run.cluster.node_process import NodeProcess

            opened = stack.enter_context(
                NodeProcess(settings, node, worker.concurrency, worker.app.redis_outage)
            )
            runtime.opened.crawl = opened.crawl


def _end_sweeps(control: Control, pool: Executor) -> None:
    """Wait until running sweeps end. They stop at their next step, before their resources are closed."""
    control.ending.set()
    pool.shutdown(cancel_futures=True)
