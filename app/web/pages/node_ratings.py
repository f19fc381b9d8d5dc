"""Judge in words how well nodes work at sites, from counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.views.pairs import PairView

FEWEST_ATTEMPTS = 3
"""Minimum number of attempts for a verdict on a pair."""
TOO_FEW = "{node}: too few attempts to tell."
_GOOD = 0.8
FEW = 0.5
"""Completion rate below which a node is poor at a site."""
_SLOW = 2.0
"""A node is slow if its seconds per page exceed those of the fastest node by this factor."""


@dataclass(frozen=True, slots=True)
class NodeVerdict:
    """A judgement on the work of one node at one site.

    Attributes:
        good: True if the node should get more work here, False if less, `None` for neither.
        phrase: text of the catalog with `{node}`, `{share}`, `{offered}`, `{seconds}`, `{times}` and `{why}`.
        reason: the most frequent reason of the node's failures; empty if there is none.
    """

    node: str
    good: bool | None
    phrase: str
    share: float | None
    offered: int
    seconds: float | None
    times: float = 1.0
    reason: str = ""


def list_verdicts(pairs: Sequence[PairView]) -> Sequence[NodeVerdict]:
    """Return a verdict on each node that tried a site, the best node first.

    Args:
        pairs: results of the nodes at this site.
    """
    quickest = min((one.efficiency_s for one in pairs if one.efficiency_s is not None), default=None)
    found = [_judge(one, quickest) for one in pairs]
    return sorted(found, key=lambda one: (_RANK[one.good], -(one.share or 0.0), one.seconds or 1e9, one.node))


def find_main_reason(pair: PairView) -> str:
    """Return the most frequent reason of failures in a node's newest attempts at a site; empty if there is none."""
    return max(pair.reasons, key=lambda name: (pair.reasons[name], name), default="")


_RANK = {True: 0, None: 1, False: 2}


def _judge(pair: PairView, quickest: float | None) -> NodeVerdict:
    share, seconds = pair.completion, pair.efficiency_s
    times = seconds / quickest if seconds is not None and quickest else 1.0
    if pair.attempts < FEWEST_ATTEMPTS:
        good, phrase = None, TOO_FEW
    elif share is None:
        failed = pair.failed + pair.silent > pair.attempts / 2
        good = False if failed else None
        phrase = "{node} collected nothing there{why}." if failed else "{node} met no new page there."
    elif share < FEW:
        good, phrase = False, "{node} is poor: {share} of {offered} pages{why}."
    elif times > _SLOW:
        good, phrase = (
            None,
            "{node} stores {share} of {offered} pages, but takes {times} times the quickest's time ({seconds} a page).",
        )
    elif share >= _GOOD:
        good, phrase = True, "{node} is good: {share} of {offered} pages, {seconds} a page."
    else:
        good, phrase = None, "{node} is fair: {share} of {offered} pages, {seconds} a page{why}."
    return NodeVerdict(
        pair.node, good, phrase, share, int(pair.offered), seconds, times, find_main_reason(pair)
    )
