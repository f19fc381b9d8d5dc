from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.failures import SUGGESTIONS, FailureReason
from tasks.scheduling.recall import (
    Recall,
    RecallSettings,
    ToManual,
    decide_recall,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS = RecallSettings()
CURABLE = [reason for reason in FailureReason if reason.curable]


def fail(reason, recalls=0, failed_on=(), settings=SETTINGS, node="n1", seed=0):
    return decide_recall(reason, node, recalls, failed_on, settings, Random(seed))


def test_a_granted_send_time_may_be_30_s_ahead_and_less_where_silence_is_shorter():
    assert SETTINGS.longest_wait_s == 30
    assert RecallSettings(silent_after_s=8).longest_wait_s == 4


@pytest.mark.parametrize("reason", CURABLE)
def test_five_recalls_in_a_round_then_a_person(reason):
    outcomes = [fail(reason, recalls) for recalls in range(6)]
    assert all(isinstance(outcome, Recall) for outcome in outcomes[:5])
    assert isinstance(outcomes[5], ToManual)
    assert "after 5 recalls" in str(outcomes[5].because)


@pytest.mark.parametrize("reason", [FailureReason.BAD_RULE, FailureReason.ROBOTS, FailureReason.BAD_URL])
def test_what_no_other_node_could_cure_goes_to_a_person_at_once(reason):
    outcome = fail(reason)
    assert isinstance(outcome, ToManual)
    assert "no other node could cure it" in str(outcome.because)


@pytest.mark.parametrize(
    "reason",
    [FailureReason.SILENT, FailureReason.NOT_STARTED, FailureReason.BLOCKED, FailureReason.NODE_ERROR],
)
def test_what_lies_with_a_node_is_recalled_at_once(reason):
    assert fail(reason, recalls=4).not_before_delay_s == 0.0


@given(st.integers(0, 4), st.integers(0, 1000))
def test_the_delay_before_asking_a_host_again_grows_and_is_bounded(recalls, seed):
    settings = RecallSettings(backoff_s=2, backoff_max_s=20)
    delay = fail(FailureReason.HOST_UNREACHABLE, recalls, settings=settings, seed=seed).not_before_delay_s
    full = min(20, 2 * 2**recalls)
    assert full / 2 <= delay <= full


def test_delays_of_several_subtasks_differ():
    delays = {fail(FailureReason.HOST_UNREACHABLE, 2, seed=seed).not_before_delay_s for seed in range(20)}
    assert len(delays) == 20


def test_nodes_to_avoid_are_kept_the_oldest_failure_first_and_once_each():
    assert fail(FailureReason.SILENT, 2, ("n2", "n3")).avoid == ("n2", "n3", "n1")
    assert fail(FailureReason.SILENT, 2, ("n1", "n3")).avoid == ("n3", "n1")


def test_with_recall_switched_off_every_failure_waits_for_a_person():
    for reason in FailureReason:
        assert isinstance(fail(reason, settings=RecallSettings(enabled=False)), ToManual)


def test_every_reason_has_a_suggestion():
    assert set(SUGGESTIONS) == set(FailureReason)
