"""Celery beat's scheduler with a pulse: every turn of its loop beats (`app.run.cluster.pulse`)."""

from __future__ import annotations

import logging
from typing import Any

from celery.beat import Scheduler

from app.run.cluster.pulse import EVERY_S, Pulse

log = logging.getLogger("reviewloop.beat")


class PulsedScheduler(Scheduler):
    """Sends the sweeps of the schedule table. Where it stood before a restart is not kept: the intervals are short."""

    def __init__(self, app: Any, **options: Any) -> None:
        self._pulse = Pulse(app.conf.reviewloop_pulse_file)
        super().__init__(app, **{**options, "max_interval": EVERY_S})

    def tick(self, **options: Any) -> float:
        """Send what is due; returns the seconds until the next turn."""
        self._pulse.beat()
        wait_s: float = super().tick(**options)
        return wait_s

    def _ensure_connected(self) -> Any:
        """Connect to the broker, however long it is away: a loop that waits for it is not held."""

        def note(error: Exception, _pause_s: float) -> None:
            self._pulse.beat()
            log.warning("the broker does not answer: %s", error)

        return self.connection.ensure_connection(note)
