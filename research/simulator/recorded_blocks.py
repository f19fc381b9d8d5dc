"""How many pages a host of a recorded run bore from an address before it refused it.

The rule is that of a scenario (`research.simulator.scenario.PairSpec`): after so many pages within a window nothing is
collected for a while. A store says how many pages an attempt tried, and how many were refused: its tries are taken as
evenly spread over it. The window is the shortest one with which refusals come at a count that the pair had not yet
had; where all of them do as badly, the longest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from research.simulator.recorded_rows import RecordedAttempt
from research.simulator.world import Block
from tasks.domain.failures import ErrorClass

_WINDOWS_S = (10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 3600.0)
"""Windows that are tried."""

_AS_GOOD = 0.9
"""A window explains refusals as well as the best one does where it explains this share of what that does."""

_LEAST_FOR_S = ErrorClass.FORBIDDEN.facts.first_rest_s
"""A block lasts at least so long where nobody probed earlier: a node does not ask before."""

Pair = tuple[str, str]


@dataclass(slots=True)
class _History:
    """A pair's requests: when it was answered, and when refusals in a row began and ended, in seconds."""

    answered_s: list[float]
    refused_s: list[tuple[float, float]]

    def counts(self, window_s: float) -> tuple[list[int], list[bool], int]:
        """Of each refusal, the answers in the window before it, and whether there were never as many; the most."""
        counts, new = [], []
        most = first = place = 0
        for at_s, _ in [*self.refused_s, (float("inf"), 0.0)]:
            before = most
            count = 0
            while place < len(self.answered_s) and self.answered_s[place] <= at_s:
                while self.answered_s[first] <= self.answered_s[place] - window_s:
                    first += 1
                place += 1
                count = place - first
                before, most = most, max(most, count)
            if at_s < float("inf"):
                counts.append(count)
                new.append(count > before)
        return counts, new, most


def refused(attempt: RecordedAttempt) -> int:
    """Pages that the host refused the attempt."""
    return sum(count for kind, count in attempt.errors.items() if ErrorClass(kind).facts.blocks)


def blocks(by_pair: Mapping[Pair, Sequence[RecordedAttempt]]) -> dict[Pair, Block]:
    """The block of every pair of a site that refused somebody.

    A pair that was not refused bears more than it was asked, and as much as those that were, in the median. The site's
    entry for pairs without an attempt is at (site, "").
    """
    begun = min((one.begun_at for of in by_pair.values() for one in of), default=None)
    if begun is None:
        return {}
    histories = {pair: _history(of, begun) for pair, of in by_pair.items()}
    refusing = [history for history in histories.values() if history.refused_s]
    if not refusing:
        return {}
    window_s = _window_s(refusing)
    for_s = max([_LEAST_FOR_S, *(end - start for one in refusing for start, end in one.refused_s)])
    found = {}
    for site in dict.fromkeys(site for site, _ in by_pair):
        of_site = {pair: history.counts(window_s) for pair, history in histories.items() if pair[0] == site}
        after = [count for counts, _, _ in of_site.values() for count in counts]
        if not after:
            continue
        usual = median(after)
        for pair, (counts, _, most) in of_site.items():
            pages = median(counts) if counts else max(most + 1, usual)
            found[pair] = Block(max(1, round(pages)), window_s, for_s)
        found[site, ""] = Block(max(1, round(usual)), window_s, for_s)
    return found


def _window_s(histories: Sequence[_History]) -> float:
    explained = [
        sum(sum(new) for _, new, _ in (one.counts(window_s) for one in histories)) for window_s in _WINDOWS_S
    ]
    enough = _AS_GOOD * max(explained)
    return next(w for w, count in zip(_WINDOWS_S, explained, strict=True) if count >= enough)


def _history(attempts: Sequence[RecordedAttempt], begun: datetime) -> _History:
    moments = sorted(_moments(attempts, begun))
    history = _History([], [])
    rests = False
    for at_s, answered in moments:
        if answered:
            history.answered_s.append(at_s)
        elif rests:
            history.refused_s[-1] = history.refused_s[-1][0], at_s
        else:
            history.refused_s.append((at_s, at_s))
        rests = not answered
    return history


def _moments(attempts: Sequence[RecordedAttempt], begun: datetime) -> Iterator[tuple[float, bool]]:
    """When each request of a pair was made, and whether it was answered: one that was refused ends an attempt."""
    for one in attempts:
        start_s, end_s = ((at - begun).total_seconds() for at in (one.begun_at, one.ended_at))
        vain = refused(one)
        answered = max(0, one.tried - vain)
        yield from ((start_s + (end_s - start_s) * (n + 1) / (answered + 1), True) for n in range(answered))
        if vain:
            yield end_s, False
