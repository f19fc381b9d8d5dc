"""The server of the coroutine bench: one page of 20 KB for every request, slow in one of three ways.

    delay   each answer comes AMOUNT seconds after its request
    hold    no answer before AMOUNT requests wait at once; then all of them
    link    answers share one link of AMOUNT bits a second

`python -m research.bench.coroutine_peers.slow MODE AMOUNT` serves it.
"""

from __future__ import annotations

import sys

from research.tools.pageserver import Delayed, Held, Pace, SharedLink, answered, serve

BODY_BYTES = 20_480
ANSWER = answered(('<p class="review">这款奶粉很好</p>\n'.encode() * BODY_BYTES)[:BODY_BYTES])


def pace(mode: str, amount: float) -> Pace:
    """Return the pace of a mode."""
    if mode == "delay":
        return Delayed(amount)
    return Held(int(amount)) if mode == "hold" else SharedLink(amount)


if __name__ == "__main__":
    serve(lambda _request: ANSWER, pace(sys.argv[1], float(sys.argv[2])))
