"""Decide how an attempt ends: its outcome, and the wait of its subtask if its host could not be asked.

- If a host did not answer, and another live node of the subtask's kind could ask it now without a known obstacle, it
  is a failure of this node: the subtask is recalled and goes to that node.
- Otherwise it goes back to WAIT by release, without a recall and without an avoided node, with the time before which
  no node's address may ask.
- Consecutive attempts without any answer are counted (a refused connection is no answer, a 403 is one). From
  `PATIENT_RELEASES` on the subtask waits longer each time, independent of the host's rests and permits. Releases by
  the node (drain, stop, not started in time, rebalanced) don't count: they are not the host's fault.
- After `RecallSettings.most_unanswered` of them a person is asked, if the host did not answer. Many subtasks may
  share the few attempts at a host: so also after as many rests of all nodes together, once each rested `SILENT_RESTS`
  times in a row. Then all its waiting subtasks go to a person (`tasks.store.queue.manual.set_aside_unanswered`).
- A host that answers none of the nodes is probed from one address after each rest (`_host_rests`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

from tasks.domain.attempt_end import AttemptEnd, AttemptFacts, AttemptReport, UnaskedHost
from tasks.domain.backoff import backoff_s
from tasks.domain.breaker import Breaker
from tasks.domain.grants import LONGEST_QUEUE_S
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE, HostWait
from tasks.domain.pair_stats import AttemptOutcome
from tasks.scheduling.recall import RecallSettings

PATIENT_RELEASES = 10
"""Number of consecutive attempts without an answer after which the subtask itself waits."""

SILENT_RESTS = 9
"""Minimum number of consecutive rests of each node before a host counts as dead. The ninth begins after 13 minutes."""

FIRST_WAIT_S = 30.0
"""First of these waits, in seconds; each further wait doubles it."""

LONGEST_WAIT_S = 900.0
"""Maximum wait, in seconds."""


def after_attempt(
    report: AttemptReport, facts: AttemptFacts, rules: RecallSettings, wait_factor: float = 1.0
) -> AttemptEnd:
    """Return how an attempt ends.

    Args:
        wait_factor: factor of the waits after attempts without an answer (`CrawlSettings.rest_factor`).
    """
    if report.unasked is not None:
        return _decide_unasked(report, report.unasked, facts, rules, wait_factor)
    unanswered = 0 if report.answered else facts.unanswered
    if report.given_back is not None:
        return AttemptEnd(AttemptOutcome.RELEASED, because=report.given_back, unanswered=unanswered)
    if report.reason is None:
        return AttemptEnd(AttemptOutcome.SUCCEEDED, because=report.note, unanswered=0)
    return AttemptEnd(AttemptOutcome.FAILED, report.reason, report.note, unanswered=unanswered)


def _decide_unasked(
    report: AttemptReport, host: UnaskedHost, facts: AttemptFacts, rules: RecallSettings, wait_factor: float
) -> AttemptEnd:
    """Return how an attempt ends if its host could not be asked."""
    unanswered = 0 if report.answered else facts.unanswered + 1
    rests = {name: one for (at, name), one in facts.rests.items() if at == host.host}
    shared: list[Breaker] = []
    if (
        host.unreachable
        and not facts.is_assigned
        and all(name in rests and rests[name].unanswered for name in facts.addresses)
    ):
        shared = _host_rests(report, facts, rests.values())
        rests |= {one.node: one for one in shared}
    waits_s, times = {}, {}
    for name, address in facts.addresses.items():
        rest = rests.get(name)
        rest_s = (rest.until - facts.at).total_seconds() if rest is not None else 0.0
        permit_s = max(host.grants.grant_for(address).next_s, host.grants.next_s)
        waits_s[name] = max(rest_s, permit_s - LONGEST_QUEUE_S, 0.0)
        times[name] = rest.unanswered if rest is not None else 0
    another_could = any(
        not times[name] and wait_s == 0.0 for name, wait_s in waits_s.items() if name != facts.node
    )
    if host.unreachable and (
        not rules.enabled
        or unanswered >= rules.most_unanswered
        or answers_nobody(times.values(), rules)
        or another_could
    ):
        return AttemptEnd(AttemptOutcome.FAILED, report.reason, report.note, unanswered, rests=shared)
    wait_s = min(waits_s.values(), default=0.0)
    if unanswered >= PATIENT_RELEASES:
        patience_s = backoff_s(FIRST_WAIT_S, unanswered - PATIENT_RELEASES + 1, LONGEST_WAIT_S)
        wait_s = max(wait_s, wait_factor * patience_s)
    mine = rests.get(facts.node)
    cause = mine.cause if mine is not None and mine.until > facts.at else NO_PERMIT
    waits_for = HostWait(host.host, UNREACHABLE if host.unreachable else cause)
    return AttemptEnd(
        AttemptOutcome.RELEASED,
        because=waits_for.reason if host.unreachable else report.given_back,
        unanswered=unanswered,
        wait_s=wait_s,
        waits_for=waits_for if wait_s > 0.0 else None,
        rests=shared,
    )


def answers_nobody(times: Collection[int], rules: RecallSettings) -> bool:
    """Return True if a host answered no node for many attempts, so that a person is asked.

    Args:
        times: attempts in a row without an answer, of each node that may ask it.
    """
    return bool(times) and min(times) >= SILENT_RESTS and sum(times) >= rules.most_unanswered


def _host_rests(report: AttemptReport, facts: AttemptFacts, rests: Collection[Breaker]) -> list[Breaker]:
    """Return the rests of a host that answers no node. One address probes it instead of each.

    Every address gets the highest number `n` of refusals in a row among them. The address that could ask next, except
    the one that has just asked, probes the host after the rest for `n`. All others rest as for `n` + 1: they wait for
    the answer to that probe, or make it if that address does not.

    Args:
        rests: at the host.
    """
    silent = [one for one in rests if one.unanswered]
    others = [one for one in silent if one.node != facts.node and one.node in facts.addresses]
    able = others or [one for one in silent if one.node == facts.node]
    if not able:
        return []
    prober = min(able, key=lambda one: one.until)
    times = max(one.times for one in silent)
    (asked,) = [rest for rest in report.rests if rest.host == prober.host]
    shared = []
    for one in silent:
        rest_s = asked.seconds(times if one is prober else times + 1)
        until = max(one.until, facts.at + timedelta(seconds=rest_s))
        shared.append(replace(one, until=until, times=times))
    return shared
