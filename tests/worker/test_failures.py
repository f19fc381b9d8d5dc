"""How an attempt ended: success, or the reason of what stood in its way."""

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.catalog.load import builtin
from splitter.catalog.model import Limits
from tasks.domain.failures import ErrorClass, FailureReason, FetchError
from tasks.fetching.hosts import HostCatalog
from tasks.fetching.pace import AnswerSample
from tasks.fetching.permits import LocalPermits
from tasks.worker.failures import Failures, failure_reason
from tasks.worker.settings import CrawlSettings

errors = st.sampled_from(list(ErrorClass))


def reason_of(collected, left, result_error, hit_errors):
    return failure_reason(collected=collected, left=left, result_error=result_error, hit_errors=hit_errors)


@given(st.integers(1, 9), st.integers(0, 9), st.none() | errors, st.sets(errors))
def test_a_stored_page_is_a_success_whatever_else_happened(collected, left, result_error, hit_errors):
    assert reason_of(collected, left, result_error, hit_errors) is None


@given(st.none() | errors, st.sets(errors))
def test_nothing_left_to_store_is_a_success(result_error, hit_errors):
    assert reason_of(0, 0, result_error, hit_errors) is None


@given(st.integers(1, 9), st.none() | errors, st.sets(errors))
def test_everything_else_fails_with_a_reason(left, result_error, hit_errors):
    assert isinstance(reason_of(0, left, result_error, hit_errors), FailureReason)


@pytest.mark.parametrize(
    ("result_error", "hit_errors", "reason"),
    [
        (ErrorClass.CAPTCHA, set(), FailureReason.BLOCKED),
        (ErrorClass.RATE_LIMITED, set(), FailureReason.BLOCKED),
        (ErrorClass.CONNECT, set(), FailureReason.HOST_UNREACHABLE),
        (ErrorClass.BAD_RULE, set(), FailureReason.BAD_RULE),
        (ErrorClass.ROBOTS, set(), FailureReason.ROBOTS),
        (ErrorClass.NOT_FOUND, set(), FailureReason.BAD_URL),
        (ErrorClass.SERVER_ERROR, set(), FailureReason.RESULT_PAGE_BROKEN),
        (ErrorClass.TIMEOUT, set(), FailureReason.RESULT_PAGE_BROKEN),
        (None, {ErrorClass.LOGIN_WALL, ErrorClass.CONNECT}, FailureReason.BLOCKED),
        (None, {ErrorClass.CONNECT, ErrorClass.NOT_FOUND}, FailureReason.HOST_UNREACHABLE),
        (None, {ErrorClass.BAD_RULE}, FailureReason.BAD_RULE),
        (None, {ErrorClass.BAD_RULE, ErrorClass.SERVER_ERROR}, FailureReason.NOTHING_STORED),
        (None, {ErrorClass.TIMEOUT}, FailureReason.NOTHING_STORED),
    ],
)
def test_the_reason_names_what_stood_in_the_way(result_error, hit_errors, reason):
    assert reason_of(0, 2, result_error, hit_errors) is reason


def test_a_host_whose_pages_can_t_be_read_rests():
    """Each of them takes seconds of the reader that all hosts share."""

    async def rests(*answers: str) -> dict[str, str]:
        permits, hosts = LocalPermits(lambda: 100.0), HostCatalog(builtin("paper-2014"))
        deps: Any = SimpleNamespace(
            permits=permits, hosts=hosts, address="127.0.0.2", settings=CrawlSettings(), rng=Random(0)
        )
        failures = Failures(deps)
        for answer in answers:
            if answer == "page":
                failures.note_page("http://s.cn/1")
            else:
                await failures.note_error("http://s.cn/1", FetchError(ErrorClass(answer), "by the reader"))
        assert failures.avoids("http://s.cn/2") == bool(failures.rests)
        return {rest.host: rest.cause for rest in failures.rests.values()}

    assert asyncio.run(rests(*["unreadable"] * 3, "bad_rule")) == {"s.cn": "unreadable"}
    assert asyncio.run(rests("unreadable", "page", "unreadable", "unreadable")) == {}
    assert asyncio.run(rests("unreadable", "unreadable", "bad_rule")) == {}


@pytest.mark.parametrize("kind", [ErrorClass.CAPTCHA, ErrorClass.FORBIDDEN, ErrorClass.RATE_LIMITED])
def test_a_refusal_that_looks_like_a_page_tells_what_the_host_bears(kind):
    async def share_after_it() -> float:
        now = [100.0]
        permits, hosts = LocalPermits(lambda: now[0]), HostCatalog(builtin("paper-2014"))
        deps: Any = SimpleNamespace(
            permits=permits, hosts=hosts, address="127.0.0.2", settings=CrawlSettings(), rng=Random(0)
        )
        limits = Limits(per_address_per_s=2, total_per_s=8)
        for _ in range(30):
            await permits.observe("s.cn", "127.0.0.2", limits, AnswerSample(0.1))
            now[0] += 0.5
        await Failures(deps).note_error("http://s.cn/1", FetchError(kind, "said by a page with status 200"))
        return (await permits.get_grants(["s.cn"]))["s.cn"].grant_for("127.0.0.2").share

    assert asyncio.run(share_after_it()) < 1.0
