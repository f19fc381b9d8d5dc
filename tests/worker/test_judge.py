"""How an attempt ended: success, or the reason of what stood in its way."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.failures import ErrorClass, FailureReason
from tasks.worker.ending import Ending, failure

errors = st.sampled_from(list(ErrorClass))


@given(st.integers(1, 9), st.integers(0, 9), st.none() | errors, st.dictionaries(errors, st.integers(0, 5)))
def test_a_stored_page_is_a_success_whatever_else_happened(collected, left, result_error, hit_errors):
    assert failure(Ending(collected, left, result_error, hit_errors)) is None


@given(st.none() | errors, st.dictionaries(errors, st.integers(0, 5)))
def test_nothing_left_to_store_is_a_success(result_error, hit_errors):
    assert failure(Ending(0, 0, result_error, hit_errors)) is None


@given(st.integers(1, 9), st.none() | errors, st.dictionaries(errors, st.integers(1, 5)))
def test_everything_else_fails_with_a_reason(left, result_error, hit_errors):
    assert isinstance(failure(Ending(0, left, result_error, hit_errors)), FailureReason)


@pytest.mark.parametrize(
    ("result_error", "hit_errors", "reason"),
    [
        (ErrorClass.CAPTCHA, {}, FailureReason.BLOCKED),
        (ErrorClass.RATE_LIMITED, {}, FailureReason.BLOCKED),
        (ErrorClass.CONNECT, {}, FailureReason.HOST_UNREACHABLE),
        (ErrorClass.BAD_RULE, {}, FailureReason.BAD_RULE),
        (ErrorClass.ROBOTS, {}, FailureReason.ROBOTS),
        (ErrorClass.NOT_FOUND, {}, FailureReason.BAD_URL),
        (ErrorClass.SERVER_ERROR, {}, FailureReason.RESULT_PAGE_BROKEN),
        (ErrorClass.TIMEOUT, {}, FailureReason.RESULT_PAGE_BROKEN),
        (None, {ErrorClass.LOGIN_WALL: 1, ErrorClass.CONNECT: 3}, FailureReason.BLOCKED),
        (None, {ErrorClass.CONNECT: 3, ErrorClass.NOT_FOUND: 1}, FailureReason.HOST_UNREACHABLE),
        (None, {ErrorClass.BAD_RULE: 3}, FailureReason.BAD_RULE),
        (None, {ErrorClass.BAD_RULE: 3, ErrorClass.SERVER_ERROR: 1}, FailureReason.NOTHING_STORED),
        (None, {ErrorClass.TIMEOUT: 1}, FailureReason.NOTHING_STORED),
    ],
)
def test_the_reason_names_what_stood_in_the_way(result_error, hit_errors, reason):
    assert failure(Ending(0, 2, result_error, hit_errors)) is reason
