"""The sizes of the filter keep its promise: the measured share of errors is the computed one."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.worker.redis_seen import BLOCK_BITS, HASHES, MOST_BITS, bits_per_key, error_rate, layer


@pytest.mark.parametrize("per_key", [8.0, 12.0])
def test_the_formula_tells_what_a_filter_of_that_size_does(per_key: float) -> None:
    rng = Random(1)
    blocks = 500
    filled = [0] * blocks

    def places() -> tuple[int, int]:
        bits = 0
        for _ in range(HASHES):
            bits |= 1 << rng.randrange(BLOCK_BITS)
        return rng.randrange(blocks), bits

    for _ in range(round(blocks * BLOCK_BITS / per_key)):
        block, bits = places()
        filled[block] |= bits
    asked = [places() for _ in range(100_000)]
    wrong = sum(filled[block] & bits == bits for block, bits in asked)
    assert wrong / len(asked) == pytest.approx(error_rate(per_key), rel=0.15)


@given(st.floats(2e-6, 0.5))
def test_the_least_bits_that_keep_the_error(error: float) -> None:
    per_key = bits_per_key(error)
    assert error_rate(per_key) <= error
    assert per_key == 1.0 or error_rate(per_key - 0.25) > error


@given(st.integers(1, 10**8), st.floats(0.001, 0.1))
def test_the_errors_of_all_layers_stay_below_the_bound(first: int, error: float) -> None:
    layers = [layer(number, first, error) for number in range(1, 8)]
    rates = [error_rate(one.blocks * BLOCK_BITS / one.capacity) for one in layers]
    assert sum(rates) < error
    assert all(one.blocks * BLOCK_BITS <= MOST_BITS for one in layers)
    assert all(a.capacity < b.capacity or b.blocks > MOST_BITS / BLOCK_BITS / 2 for a, b in pairwise(layers))
