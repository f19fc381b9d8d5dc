"""The end of an attempt: the report of its node, the facts that decide what follows, and the decision.

`tasks.scheduling.after_attempt` decides, `tasks.store.queue.attempts` carries it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from tasks.domain.breaker import Breaker, Rest
from tasks.domain.failures import FailureReason
from tasks.domain.grants import HostGrants
from tasks.domain.host_wait import HostWait
from tasks.domain.pair_stats import AttemptOutcome, RoundTrip
from tasks.domain.reasons import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class Counters:
    """An attempt's work so far: sums, in hits, seconds and bytes.

    Attributes:
        errors: requests that gave no page, by error class.
        statuses: requests by HTTP status, or by error if there was no response.
    """

    offered: int = 0
    tried: int = 0
    collected: int = 0
    known: int = 0
    requests: int = 0
    bytes: int = 0
    active_s: float = 0.0
    wait_s: float = 0.0
    errors: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)

    def columns(self) -> dict[str, Any]:
        """Return the columns of the attempt's row."""
        rounded = {"active_s": round(self.active_s, 6), "wait_s": round(self.wait_s, 6)}
        return asdict(self) | rounded


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaskedHost:
    """A host that an attempt could not ask.

    Attributes:
        unreachable: it did not answer; False: its next permit was too far ahead.
        grants: its grants to every address at that time.
        silent_after_s: seconds without a heartbeat after which a node counts as silent, and can't ask it either.
    """

    host: str
    unreachable: bool
    grants: HostGrants
    silent_after_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptReport:
    """How an attempt ended, as its node reports it.

    Attributes:
        reason: None = it succeeded.
        given_back: why the rest goes back to WAIT without a recall (drain, shutdown, nothing left of the host);
            None: it succeeded or failed, see `reason`.
        rests: hosts that refused the node's address, or did not answer it.
        last_response: the last response, for `failed show`: url, status, head of the body.
        page_hosts: hosts that gave it a page.
        round_trip: to its site; None: too few of its requests were answered.
        answered: True if any host answered one of its requests.
        unasked: the host that it could not ask, if it ended because of that alone.
    """

    counters: Counters
    reason: FailureReason | None = None
    given_back: Explanation | None = None
    rests: tuple[Rest, ...] = ()
    last_response: Mapping[str, Any] | None = None
    note: Explanation | None = None
    page_hosts: frozenset[str] = frozenset()
    round_trip: RoundTrip | None = None
    answered: bool = False
    unasked: UnaskedHost | None = None

    def __str__(self) -> str:
        """Return a line for the log."""
        did, how = self.counters, self.reason or self.note or "ended"
        return (
            f"{how}; {did.collected} of {did.offered} hits stored, {did.requests} requests, "
            f"{did.active_s:.1f} s active, {did.wait_s:.1f} s waited"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFacts:
    """The facts that the end of an attempt depends on, in addition to its report.

    Attributes:
        at: the time of the transaction.
        node: that made the attempt.
        unanswered: attempts in a row before this one that no host answered.
        is_assigned: a person chose the only node that may take its subtask.
        addresses: by live node that may take the subtask, the address that its permits are granted to.
        rests: at hosts that could not be asked, by host and node; the rests of the report are among them.
    """

    at: datetime
    node: str
    unanswered: int
    is_assigned: bool = False
    addresses: Mapping[str, str] = field(default_factory=dict)
    rests: Mapping[tuple[str, str], Breaker] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ends, and what becomes of its subtask.

    Attributes:
        reason: why it failed or was taken back.
        because: why it was given back or cancelled, or the note of its report.
        unanswered: attempts in a row that no host answered, this one included; None: as many as before.
        wait_s: seconds before which a subtask that was given back is not allocated again.
        waits_for: the host that it waits for until then.
        rests: breakers that change.
    """

    outcome: AttemptOutcome
    reason: FailureReason | None = None
    because: Explanation | None = None
    unanswered: int | None = None
    wait_s: float = 0.0
    waits_for: HostWait | None = None
    rests: Sequence[Breaker] = ()


Decide = Callable[[AttemptReport, AttemptFacts], AttemptEnd]
