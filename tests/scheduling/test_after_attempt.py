"""What becomes of an attempt that ended: a table of reports, of what other nodes could do, and of what follows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasks.domain.attempt_end import AttemptEnd, AttemptFacts, AttemptReport, Counters, UnaskedHost
from tasks.domain.breaker import Breaker, BreakerState, Rest
from tasks.domain.failures import FailureReason
from tasks.domain.grants import AddressGrants, HostGrants
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE, HostWait
from tasks.domain.pair_stats import AttemptOutcome
from tasks.domain.reasons import Reason, because
from tasks.scheduling.after_attempt import after_attempt, answers_nobody
from tasks.scheduling.recall import RecallSettings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOST = "h.cn"
FAILED, RELEASED, SUCCEEDED = AttemptOutcome.FAILED, AttemptOutcome.RELEASED, AttemptOutcome.SUCCEEDED
FREE = HostGrants()
ALL_BUSY = HostGrants(next_s=45.0)
N1_BUSY = HostGrants(addresses={"n1": AddressGrants(next_s=45.0)})
N2_BUSY = HostGrants(addresses={"n2": AddressGrants(next_s=40.0)})


def report(*, unreachable: bool | None = None, grants: HostGrants = FREE, **told) -> AttemptReport:
    """A report; of a host that did not answer or, if `unreachable` is False, grants no permit soon."""
    if unreachable is not None:
        told["unasked"] = UnaskedHost(host=HOST, unreachable=unreachable, grants=grants, silent_after_s=60.0)
        told.setdefault("reason", FailureReason.HOST_UNREACHABLE)
    if unreachable:
        told["rests"] = (Rest(HOST, UNREACHABLE, lambda times: 3.0 * 2 ** (times - 1)),)
    return AttemptReport(counters=Counters(), **told)


def breaker(node: str, rest_s: float, times: int = 1, cause: str = UNREACHABLE) -> Breaker:
    until = NOW + timedelta(seconds=rest_s)
    return Breaker(host=HOST, node=node, cause=cause, state=BreakerState.OPEN, until=until, times=times)


MINE = breaker("n1", 12.0)


def facts(
    *rests: Breaker, nodes: str = "n1 n2", unanswered: int = 0, is_assigned: bool = False
) -> AttemptFacts:
    """The facts of an attempt of n1."""
    return AttemptFacts(
        at=NOW,
        node="n1",
        unanswered=unanswered,
        is_assigned=is_assigned,
        addresses={name: name for name in nodes.split()},
        rests={(one.host, one.node): one for one in rests},
    )


DRAINED = because(Reason.NODE_DRAINED)


def after(told: AttemptReport, known: AttemptFacts, **rules) -> AttemptEnd:
    return after_attempt(told, known, RecallSettings(**rules))


@pytest.mark.parametrize(
    ("told", "end"),
    [
        ({}, AttemptEnd(SUCCEEDED, unanswered=0)),
        ({"given_back": DRAINED}, AttemptEnd(RELEASED, because=DRAINED, unanswered=3)),
        ({"given_back": DRAINED, "answered": True}, AttemptEnd(RELEASED, because=DRAINED, unanswered=0)),
        ({"reason": FailureReason.BLOCKED}, AttemptEnd(FAILED, FailureReason.BLOCKED, unanswered=3)),
        (
            {"reason": FailureReason.BLOCKED, "answered": True},
            AttemptEnd(FAILED, FailureReason.BLOCKED, unanswered=0),
        ),
    ],
)
def test_an_attempt_that_asked_its_hosts_ends_as_it_reports(told: dict[str, object], end: AttemptEnd) -> None:
    assert after(report(**told), facts(unanswered=3)) == end


@pytest.mark.parametrize(
    ("other", "grants", "end", "waits_s"),
    [
        ((), FREE, FAILED, 0.0),
        (
            (breaker("n2", 0.0),),
            HostGrants(),
            RELEASED,
            0.0,
        ),  # it may try now, but was not answered last time
        ((breaker("n2", 3.0),), FREE, RELEASED, 3.0),
        ((breaker("n2", 600.0, cause="captcha"),), FREE, RELEASED, 12.0),
        ((), N2_BUSY, RELEASED, 12.0),
        (
            (),
            HostGrants(addresses={"n2": AddressGrants(next_s=4.0)}),
            FAILED,
            0.0,
        ),  # it may wait for its permit
        ((), HostGrants(addresses={"n2": AddressGrants(next_s=9.0)}), RELEASED, 4.0),
        ((breaker("n3", 1.0),), N2_BUSY, RELEASED, 12.0),  # n3 is not there, or may not take it
    ],
)
def test_another_node_that_could_ask_makes_it_a_failure_else_it_waits_for_the_first(
    other: tuple[Breaker, ...], grants: HostGrants, end: AttemptOutcome, waits_s: float
) -> None:
    known = facts(MINE, *other, is_assigned=True)  # so that rests are not shared
    found = after(report(unreachable=True, grants=grants), known)
    assert (found.outcome, found.wait_s, found.unanswered) == (end, waits_s, 1)
    assert found.waits_for == (HostWait(HOST, UNREACHABLE) if waits_s else None)
    assert found.because == (None if end is FAILED else because(Reason.HOST_SILENT, host=HOST))
    assert found.reason == (FailureReason.HOST_UNREACHABLE if end is FAILED else None)


@pytest.mark.parametrize(
    ("grants", "rests", "waits_s", "cause"),
    [
        (ALL_BUSY, (), 40.0, NO_PERMIT),  # an attempt may wait 5 s for its permit
        (N1_BUSY, (), 0.0, None),  # n2 may ask at once
        (ALL_BUSY, (breaker("n1", 300.0, cause="forbidden"),), 40.0, "forbidden"),
        (ALL_BUSY, (breaker("n1", 0.0, cause="forbidden"),), 40.0, NO_PERMIT),
    ],
)
def test_a_permit_too_far_ahead_is_waited_for(
    grants: HostGrants, rests: tuple[Breaker, ...], waits_s: float, cause: str | None
) -> None:
    found = after(report(unreachable=False, grants=grants, given_back=DRAINED), facts(*rests))
    assert (found.outcome, found.because, found.wait_s) == (RELEASED, DRAINED, waits_s)
    assert found.waits_for == (HostWait(HOST, cause) if cause else None)


def test_nobody_there_is_nobody_to_wait_for() -> None:
    assert after(report(unreachable=False, grants=ALL_BUSY), facts(nodes="")).wait_s == 0.0


@pytest.mark.parametrize(
    ("before", "waits_s"), [(0, 12), (8, 12), (9, 30), (10, 60), (11, 120), (13, 480), (14, 900), (18, 900)]
)
def test_from_ten_attempts_without_an_answer_on_it_waits_longer_each_time(
    before: int, waits_s: float
) -> None:
    told, known = report(unreachable=True), facts(MINE, nodes="n1", unanswered=before, is_assigned=True)
    found = after(told, known)
    assert (found.outcome, found.wait_s, found.unanswered) == (RELEASED, waits_s, before + 1)
    assert after_attempt(told, known, RecallSettings(), 0.01).wait_s == max(12.0, waits_s * 0.01)


@pytest.mark.parametrize(
    ("rules", "known", "told", "end"),
    [
        ({}, facts(MINE, nodes="n1"), {}, RELEASED),
        ({"enabled": False}, facts(MINE, nodes="n1"), {}, FAILED),
        ({}, facts(MINE, nodes="n1", unanswered=18), {}, RELEASED),
        ({}, facts(MINE, nodes="n1", unanswered=19), {}, FAILED),
        ({}, facts(MINE, nodes="n1", unanswered=19), {"answered": True}, RELEASED),
        ({"most_unanswered": 4}, facts(MINE, nodes="n1", unanswered=3), {}, FAILED),
        ({}, facts(breaker("n1", 9.0, 10), breaker("n2", 9.0, 10)), {}, FAILED),
    ],
)
def test_a_person_is_asked_in_the_end(
    rules: dict[str, object], known: AttemptFacts, told: dict[str, object], end: AttemptOutcome
) -> None:
    assert after(report(unreachable=True, **told), known, **rules).outcome is end


@pytest.mark.parametrize(
    ("times", "dead"),
    [
        ([], False),
        ([20], True),
        ([19], False),
        ([10, 10], True),
        ([9, 10], False),
        ([8, 30], False),
        ([9, 11], True),
    ],
)
def test_a_host_is_dead_after_nine_rests_of_each_node_and_twenty_in_all(times: list[int], dead: bool) -> None:
    assert answers_nobody(times, RecallSettings()) is dead


@pytest.mark.parametrize(
    ("known", "shared"),
    [
        # n2 probes after 12 s, the rest of its three times; the others wait for it.
        (
            facts(MINE, breaker("n2", 5.0, 3), breaker("n3", 6.0), nodes="n1 n2 n3"),
            {"n1": 24, "n2": 12, "n3": 24},
        ),
        # n1 has just asked, n3 left: n2 probes. No rest gets shorter.
        (facts(MINE, breaker("n2", 90.0, 2), breaker("n3", 1.0)), {"n1": 12, "n2": 90, "n3": 12}),
        (facts(MINE, nodes="n1"), {"n1": 12}),  # alone it probes itself
        (facts(MINE, nodes=""), {"n1": 12}),
        (facts(MINE, breaker("n3", 1.0), nodes="n1 n2 n3"), {}),  # n2 was never asked
        (facts(MINE, breaker("n2", 9.0, cause="captcha")), {}),
        (facts(MINE, nodes="n1", is_assigned=True), {}),
    ],
)
def test_a_host_that_answers_no_node_is_probed_from_one_address(
    known: AttemptFacts, shared: dict[str, int]
) -> None:
    found = after(report(unreachable=True), known)
    assert {one.node: (one.until - NOW).total_seconds() for one in found.rests} == shared
    most = max((one.times for one in known.rests.values()), default=0)
    assert all(one.times == most for one in found.rests)
