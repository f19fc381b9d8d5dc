"""An attempt that could not ask its host: whether another node could, until when its subtask waits, when that ends.

- Where another live node of its kind could ask the host now, and knows nothing against it, a host that did not answer
  is a failure of this node: the subtask is recalled to that one.
- Otherwise it goes back to WAIT by release, without a recall and without an avoided node, with the time before which
  no node's address may ask.
- Attempts in a row that no host answered anything are counted (a refused connection is no answer, a 403 is one). From
  `PATIENT_RELEASES` on the subtask waits longer each time, whatever the host's rests and permits say. Releases by the
  node (drain, stop, not started in time, rebalanced) don't count: they are not the host's fault.
- After `RecallSettings.most_unanswered` of them a person is asked, where the host did not answer. Many subtasks may
  share the few attempts at a host: so also after as many rests of all nodes together, once each rested `SILENT_RESTS`
  times in a row. Then all that waits for it goes to a person at once (`tasks.store.queue.manual.set_aside_unanswered`).
- A host that left all of them unanswered is probed from one address after each rest
(`tasks.store.queue.hosts.rest_for_all`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tasks.domain.backoff import backoff_s
from tasks.domain.grants import LONGEST_QUEUE_S, HostGrants
from tasks.scheduling.recall import RecallSettings

PATIENT_RELEASES = 10
"""Attempts in a row without an answer from which on the subtask waits by itself."""

SILENT_RESTS = 9
"""The fewest rests in a row of each node after which a host counts as dead: the ninth begins after 13 minutes."""

FIRST_WAIT_S = 30.0
"""The first of these waits; each further one doubles it."""

LONGEST_WAIT_S = 900.0
"""The most it grows to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaskedHost:
    """A host that an attempt could not ask.

    Attributes:
        unreachable: it did not answer; False: its next permit was too far ahead.
        grants: what it granted every address then.
        settings: who is alive, and when a person is asked.
        factor: multiplies the waits (`CrawlSettings.rest_factor`).
    """

    host: str
    unreachable: bool
    grants: HostGrants
    settings: RecallSettings
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAccess:
    """When a live node that may take the subtask could ask the host.

    Attributes:
        rest_s: seconds until its rest there ends; 0: it has none, or it is over.
        unanswered: the host did not answer it the last time, ...
        times: ... nor the times before, in a row; 0: it did.
        permit_s: seconds until its address is granted a permit.
    """

    node: str
    rest_s: float = 0.0
    unanswered: bool = False
    times: int = 0
    permit_s: float = 0.0

    @property
    def wait_s(self) -> float:
        """Seconds before which it makes no sense to give it an attempt."""
        return max(self.rest_s, self.permit_s - LONGEST_QUEUE_S, 0.0)


def another_could(node: str, accesses: Collection[NodeAccess]) -> bool:
    """Whether a node other than this one could ask the host now, as far as is known."""
    return any(one.node != node and not one.unanswered and one.wait_s == 0.0 for one in accesses)


def answers_nobody(times: Collection[int], settings: RecallSettings) -> bool:
    """Whether a host left every node unanswered so often that a person is asked.

    Args:
        times: by node that may ask it, how often in a row.
    """
    return bool(times) and min(times) >= SILENT_RESTS and sum(times) >= settings.most_unanswered


def wait_s(accesses: Collection[NodeAccess], releases: int, factor: float) -> float:
    """Seconds that a subtask waits after a release: until the first node may ask, or longer after many of them.

    Args:
        accesses: of the nodes that may take it; none: nobody is there to wait for.
        releases: attempts in a row without an answer, this one included.
        factor: multiplies the waits that grow with them.
    """
    soonest_s = min((one.wait_s for one in accesses), default=0.0)
    if releases < PATIENT_RELEASES:
        return soonest_s
    return max(soonest_s, factor * backoff_s(FIRST_WAIT_S, releases - PATIENT_RELEASES + 1, LONGEST_WAIT_S))
