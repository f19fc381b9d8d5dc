import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.bench.coroutine_peers.slowserver import ANSWER, BODY_BYTES, Bucket

steps = st.lists(st.tuples(st.floats(0.0, 0.1), st.integers(0, 5000)), max_size=50)


def test_the_answer_announces_its_body() -> None:
    head, _, body = ANSWER.partition(b"\r\n\r\n")
    assert len(body) == BODY_BYTES == 20 * 1024
    assert f"Content-Length: {len(body)}".encode() in head


@given(steps)
def test_a_link_carries_what_its_rate_allows_and_no_byte_more(steps: list[tuple[float, int]]) -> None:
    bucket = Bucket(1_250_000.0)
    taken, elapsed_s = 0, 0.0
    for step_s, wanted in steps:
        may_go = bucket.fill(step_s)
        elapsed_s += step_s
        took = min(wanted, may_go)
        bucket.take(took)
        taken += took
        assert taken <= elapsed_s * 1_250_000.0 + 1e-3
    taken += bucket.fill(0.0)
    assert taken == pytest.approx(elapsed_s * 1_250_000.0, abs=1.001)


def test_a_segment_more_than_allowed_is_paid_by_the_next_filling() -> None:
    bucket = Bucket(1000.0)
    assert bucket.fill(0.01) == 10
    bucket.take(15)
    assert bucket.fill(0.01) == 5


def test_an_idle_link_saves_nothing_up_and_forgives_nothing() -> None:
    bucket = Bucket(1000.0)
    bucket.fill(1.0)
    bucket.idle()
    assert bucket.fill(0.0) == 0
    bucket.take(7)
    bucket.idle()
    assert bucket.fill(0.01) == 3
