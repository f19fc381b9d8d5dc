"""What follows from each class of errors: one row a class, and rows that don't contradict themselves."""

from __future__ import annotations

from collections import Counter

import pytest

from tasks.domain.failures import FACTS, ErrorClass, FailureReason, error_class
from tasks.reading.interstitials import refusal


def test_every_class_has_a_row():
    assert set(FACTS) == set(ErrorClass)


def test_a_status_means_one_class():
    statuses = Counter(status for facts in FACTS.values() for status in facts.statuses)
    assert set(statuses.values()) == {1}


@pytest.mark.parametrize("error", ErrorClass)
def test_the_facts_of_a_class_agree(error):
    facts = error.facts
    if facts.blocks:
        assert facts.about_host
        assert facts.first_rest_s > 0
        assert facts.search_reason is FailureReason.BLOCKED
    if facts.about_host:
        assert not facts.final
    if facts.is_signed_out or facts.is_of_frequency or facts.wording is not None:
        assert facts.blocks
    if facts.is_refused_here:
        assert facts.final
        assert not facts.is_evidence_of_pace
    if facts.is_unanswered:
        assert facts.is_lost
    if facts.is_lost:
        assert facts.is_fault
    if facts.is_fault:
        assert facts.is_evidence_of_pace
    if facts.is_quick_answer:
        assert not facts.blocks
        assert not facts.is_fault


@pytest.mark.parametrize(
    ("fact", "errors"),
    [
        ("blocks", {"rate_limited", "forbidden", "captcha", "login_wall"}),
        ("is_signed_out", {"forbidden", "login_wall"}),
        # Frequency, and no evidence, at once: 403 and a captcha.
        ("is_of_frequency", {"rate_limited", "forbidden", "captcha"}),
        ("is_fault_of_pair", {"server_error", "cut_off", "timeout"}),
        ("is_lost", {"connect", "cut_off", "timeout"}),
        ("is_unanswered", {"connect", "timeout"}),
        ("first_rest_s", {"rate_limited", "forbidden", "captcha", "login_wall", "unreadable"}),
    ],
)
def test_the_classes_a_fact_holds_for(fact, errors):
    assert {error for error in ErrorClass if getattr(error.facts, fact)} == errors


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, ErrorClass.FORBIDDEN),
        (403, ErrorClass.FORBIDDEN),
        (412, ErrorClass.FORBIDDEN),
        (432, ErrorClass.FORBIDDEN),
        (429, ErrorClass.RATE_LIMITED),
        (404, ErrorClass.NOT_FOUND),
        (410, ErrorClass.NOT_FOUND),
        (400, ErrorClass.OTHER_STATUS),
        (418, ErrorClass.OTHER_STATUS),
        (500, ErrorClass.SERVER_ERROR),
        (503, ErrorClass.SERVER_ERROR),
        (999, ErrorClass.SERVER_ERROR),
    ],
)
def test_what_a_status_means(status, expected):
    assert error_class(status) is expected


@pytest.mark.parametrize(
    ("wording", "expected"),
    [
        ("请输入验证码后登录", ErrorClass.CAPTCHA),
        ("访问频繁，请登录", ErrorClass.LOGIN_WALL),
        ("Too many requests", ErrorClass.RATE_LIMITED),
        ("您的访问被拒绝", ErrorClass.FORBIDDEN),
    ],
)
def test_of_several_classes_that_fit_a_wording_the_first_one_is_meant(wording, expected):
    assert refusal(wording) is expected
