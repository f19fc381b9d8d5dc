"""Celery beat's scheduler with a pulse: every turn of its loop beats (`app.run.cluster.pulse`)."""

from __future__ import annotations

from typing import Any

from celery.beat import Scheduler

from app.run.cluster.pulse import EVERY_S, Pulse


class PulsedScheduler(Scheduler):
    """Sends the sweeps of the schedule table. Where it stood before a restart is not kept: the intervals are short."""

    def __init__(self, app: Any, **options: Any) -> None:
        self._pulse = Pulse(app.conf.reviewloop_pulse_file)
        super().__init__(app, **{**options, "max_interval": EVERY_S})

    def tick(self, **options: Any) -> float:
        """One turn; returns the seconds until the next."""
        self._pulse.beat()
        wait_s: float = super().tick(**options)
        return wait_s
