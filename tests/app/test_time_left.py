"""The words for the time left."""

from datetime import UTC, datetime, timedelta

import pytest

from app.cli.progress import Snapshot, speed
from app.views.loop_state import Ending, LoopState, TimeLeft
from tasks.store.queries.queues import Stored, WaitingSummary

NOW = datetime(2026, 1, 1, 14, 0, tzinfo=UTC)


def snapshot(at_s, queues, left, pages=0, held=0):
    state = LoopState(
        now=NOW,
        queues={"WAIT": 0, "CRAWL": 0, "DONE": 0, "MANUAL": 0, **queues},
        load=WaitingSummary(held, NOW + timedelta(seconds=3) if held else None, None),
        waits=(),
        left=left,
        unplanned=(),
        nodes=(),
    )
    return Snapshot(at_s, Stored(pages=pages), state)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (snapshot(1, {}, TimeLeft(Ending.NO_WORK)), "making tasks"),
        (snapshot(1, {"WAIT": 3}, TimeLeft(Ending.UNKNOWN)), "no page was stored in the last 5 minutes"),
        (snapshot(9, {"WAIT": 3}, TimeLeft(Ending.DONE_IN, 20.4), pages=9), "about 20 s left"),
        (snapshot(9, {"WAIT": 3}, TimeLeft(Ending.DONE_IN, 0.2), pages=9), "about 1 s left"),
        (snapshot(9, {"DONE": 9}, TimeLeft(Ending.NOTHING_LEFT), pages=9), "nothing left"),
        pytest.param(
            snapshot(1, {"DONE": 9, "MANUAL": 1}, TimeLeft(Ending.NOTHING_LEFT)),
            "nothing to do: all 10 subtasks are settled",
            id="a store that was done before",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 3, "DONE": 9}, TimeLeft(Ending.DONE_IN, 5.0), held=3),
            "about 5 s left: 3 held back, the next one goes in 3 s",
            id="all that is left is held back",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.DONE_IN, 300.0, 9, 0, 60.0)),
            "about 5 min left: 9 wait for hosts, the next is asked in 60 s",
            id="all rests until known times",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.DONE_IN, 30.0, 7, 7), pages=9),
            "about 30 s left for the others: 7 wait for hosts that don't answer",
            id="nobody knows how long these take",
        ),
        pytest.param(
            snapshot(9, {"WAIT": 9}, TimeLeft(Ending.HOSTS, 9.0, 9, 7, 9.0)),
            "9 wait for hosts, the next is asked in 9 s",
            id="all that is left waits, and nobody knows how long",
        ),
        (snapshot(9, {"WAIT": 9}, TimeLeft(Ending.HOSTS, 0.0, 9, 9, 0.0)), "the next is asked now"),
    ],
)
def test_what_is_said(last, said):
    assert speed(snapshot(0, {}, TimeLeft(Ending.NO_WORK)), last).left.endswith(said)


def test_rates():
    first, last = (snapshot(at_s, {}, TimeLeft(Ending.UNKNOWN), pages=n) for at_s, n in ((5, 10), (10, 60)))
    assert speed(first, last).pages_per_s == 10
