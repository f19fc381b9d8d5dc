"""A node's slots."""

from __future__ import annotations

import asyncio

import pytest

from tasks.worker.slots import Slots, SlotUse


async def _cancelled_as_its_turn_comes() -> int:
    slots = Slots(1)
    first, second, third = SlotUse(slots), SlotUse(slots), SlotUse(slots)
    await first.enter()
    waiting = asyncio.create_task(second.enter())
    behind = asyncio.create_task(third.enter())
    await asyncio.sleep(0)
    waiting.cancel()
    first.leave()  # before the cancelled one could run
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await behind
    third.leave()
    return slots.free


def test_a_turn_that_was_cancelled_and_dropped_leaves_no_error_and_no_slot_behind() -> None:
    assert asyncio.run(_cancelled_as_its_turn_comes()) == 1
