"""Decide when a lease is over, and the next state of a subtask whose attempt failed.

- A lease is in force while now < deadline. From the exact deadline on it may be taken back, and may not be begun. It
  can still be renewed and closed until it is taken back.
- Silence counts only while a scheduler looks: after an absence of the database, Redis or the scheduler, or a step of
  the database's clock, the deadlines of leases move (`tasks.store.queue.upkeep`).
- Progress renews it to now + `silent_after_s`. A granted send time counts as progress if it is at most half
  of that ahead. One request may last the other half, so a lease with progress never expires. A longer wait is no
  progress: the attempt has to end by itself.
- A failed subtask goes back to the ordinary allocation, which avoids the nodes that failed it: without a delay if
  the node or its address was the cause, after a growing, jittered delay if the host was.
- After `MAX_RECALLS` recalls in a round, or if no other node can cure the reason, a person is asked.
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
        enabled: False switches recall off for comparisons, so that every failure waits for a person.
        silent_after_s: seconds without progress after which a subtask is taken back.
        backoff_s: delay after the first failure of a host; it doubles with every recall.
        backoff_max_s: maximum delay.
        most_unanswered: number of consecutive attempts without an answer after which a person is asked
            (`scheduling.after_attempt`).
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
        """Maximum seconds until a granted send time that still renews a lease; 30 s by default."""
        return self.silent_after_s / 2


@dataclass(frozen=True, slots=True)
class Recall:
    """The subtask goes back to WAIT.

    Attributes:
        not_before_delay_s: seconds from now until it may be allocated again.
        avoid: nodes that failed it in this round, the oldest failure first.
    """

    not_before_delay_s: float
    avoid: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToManual:
    """A person has to look.

    Attributes:
        because: the reason.
    """

    because: Explanation


_ABOUT_HOST = frozenset(
    {FailureReason.HOST_UNREACHABLE, FailureReason.RESULT_PAGE_BROKEN, FailureReason.NOTHING_STORED}
)
"""Reasons that lie with the host and not with a node. Waiting may cure them."""


def decide_recall(
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
    """Return the next state of a subtask that just failed.

    Args:
        reason: the reason of the failure.
        node: the node that failed it.
        recalls: number of recalls in this round.
        failed_on: nodes that failed it in this round, the oldest failure first.
        settings: parameters of recall.
        rng: source of the jitter.
        answers_others: True if its hosts answer other nodes, so that no delay is needed.
        unanswered: number of consecutive attempts without an answer.
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
    """Return the host's back-off times a random factor in [0.5, 1], which spreads returning subtasks; 0 if the host is
    not the cause."""
    if reason not in _ABOUT_HOST:
        return 0.0
    return backoff_s(settings.backoff_s, recalls + 1, settings.backoff_max_s) * rng.uniform(0.5, 1.0)
