"""Recall: when a lease is over, and what becomes of a subtask whose attempt failed.

- A lease is in force while now < deadline; from the exact deadline on it may be taken back, and may not be begun. One
  that nobody has taken back yet can still be renewed and closed.
- Silence counts only while a scheduler looks: after an absence of the database, Redis or the scheduler, or a step of
  the database's clock, the deadlines of leases move (`tasks.store.queue.upkeep`).
- Progress renews it to now + `silent_after_s`. A granted send time counts as progress if it is at most half
  of that ahead: as one request may last the other half, a lease that is kept never runs out. A longer wait
  is no progress: the attempt has to end by itself.
- A failed subtask goes back to the ordinary allocation, away from the nodes that failed it: at once where
  the node or its address was the cause, after a growing, jittered delay where the host was.
- After `MAX_RECALLS` recalls in a round, or where no other node can cure the reason, a person is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tasks.domain.backoff import backoff_s
from tasks.domain.failures import FailureReason
from tasks.domain.reasons import Explanation, Reason, because
from tasks.domain.states import MAX_RECALLS


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """Parameters of recall.

    Attributes:
        enabled: False (recall switched off, to compare): every failure waits for a person at once.
        silent_after_s: seconds without progress after which a subtask is taken back.
        backoff_s: delay after the first failure of a host; it doubles with every recall.
        backoff_max_s: the longest delay.
        most_unanswered: attempts in a row without an answer after which a person is asked (`scheduling.after_attempt`).
    """

    enabled: bool = True
    silent_after_s: float = 60.0
    backoff_s: float = 2.0
    backoff_max_s: float = 120.0
    most_unanswered: int = 20

    @property
    def node_silent_after_s(self) -> float:
        """Seconds without a heartbeat after which a node counts as silent."""
        return max(15.0, self.silent_after_s)

    @property
    def longest_wait_s(self) -> float:
        """How far ahead a granted send time may lie and still renew a lease: 30 s by default."""
        return self.silent_after_s / 2


@dataclass(frozen=True, slots=True)
class Recall:
    """Back to WAIT.

    Attributes:
        not_before_delay_s: seconds from now before which it is not allocated again.
        avoid: nodes that failed it in this round, the oldest failure first.
    """

    not_before_delay_s: float
    avoid: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToManual:
    """A person has to look.

    Attributes:
        because: what led here.
    """

    because: Explanation


_ABOUT_HOST = frozenset(
    {FailureReason.HOST_UNREACHABLE, FailureReason.RESULT_PAGE_BROKEN, FailureReason.NOTHING_STORED}
)
"""Reasons that lie with the host, whichever node it is: time may cure them, haste won't."""


def after_failure(
    reason: FailureReason,
    node: str,
    recalls: int,
    failed_on: Sequence[str],
    settings: RecallSettings,
    rng: Random,
    *,
    answers_others: bool = False,
    unanswered: int = 0,
) -> Recall | ToManual:
    """The next state of a subtask that just failed.

    Args:
        reason: why the attempt failed.
        node: that failed it.
        recalls: recalls done in this round.
        failed_on: nodes that failed it in this round, the oldest failure first.
        settings: parameters.
        rng: for jitter.
        answers_others: its hosts answer other nodes well, so time need not cure it.
        unanswered: attempts in a row that nobody answered.
    """
    if not reason.curable:
        return ToManual(because(Reason.INCURABLE, failure=reason))
    if not settings.enabled:
        return ToManual(because(Reason.RECALL_OFF, failure=reason, node=node))
    if reason is FailureReason.HOST_UNREACHABLE and unanswered >= settings.most_unanswered:
        return ToManual(because(Reason.NOBODY_ANSWERED, failure=reason, attempts=unanswered))
    if recalls >= MAX_RECALLS:
        return ToManual(because(Reason.RECALLS_USED, failure=reason, node=node, recalls=recalls))
    avoid = (*(name for name in failed_on if name != node), node)
    return Recall(0.0 if answers_others else _delay_s(reason, recalls, settings, rng), avoid)


def _delay_s(reason: FailureReason, recalls: int, settings: RecallSettings, rng: Random) -> float:
    """The back-off of the host, times a chance in [0.5, 1] that keeps subtasks from returning all at once; 0 where
    the host is not the cause."""
    if reason not in _ABOUT_HOST:
        return 0.0
    return backoff_s(settings.backoff_s, recalls + 1, settings.backoff_max_s) * rng.uniform(0.5, 1.0)
