"""Hosts with limits or blocks: send times, blocks, rests, and how a strategy sees them.

Only sites with a limit or a block have a host here. Rests are those of production (`tasks.domain.breaker`): a host
that refused a node rests for it, then is probed by one attempt at a time until a page comes.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from random import Random

from app.simulator.world import Block, Site
from splitter.catalog.model import Limits
from tasks.domain.breaker import rest_s
from tasks.domain.failures import ErrorClass
from tasks.domain.views import HostView
from tasks.scheduling.capacity import REQUEST_S, attempt_rate, attempts_in_all, attempts_per_address

_UNLIMITED = Limits(per_address_per_s=1000, total_per_s=10_000)
_NO_LIMIT = 1_000_000
"""Attempts that a host without a limit may be given: more than there are slots."""


@dataclass(slots=True)
class _Blocking:
    """Pages of one pair within the window, and until when nothing is collected."""

    starts: deque[float] = field(default_factory=deque)
    until_s: float = 0.0


@dataclass(slots=True)
class _Rest:
    until_s: float
    times: int


class Host:
    """The host of one site.

    Args:
        site: whose host.
        names: of the nodes, by number.
    """

    def __init__(self, site: Site, names: list[str]) -> None:
        spec = site.spec
        self.name = site.name
        self.limits = Limits(
            per_address_per_s=spec.per_address_per_s or _UNLIMITED.per_address_per_s,
            total_per_s=spec.total_per_s or _UNLIMITED.total_per_s,
        )
        self._limited = site.limited
        self._names = names
        self._per_s = spec.total_per_s or math.inf
        self._address_per_s = spec.per_address_per_s or math.inf
        self._gap_s = 1.0 / self._per_s
        self._address_gap_s = 1.0 / self._address_per_s
        self._next_s = 0.0
        self._address_next_s: dict[int, float] = {}
        self._blocking: dict[int, _Blocking] = {}
        self._rests: dict[int, _Rest] = {}
        self._held: dict[int, int] = {}
        self._running = 0
        self._asked_s = 0.0
        self._tried = 0

    # --- send times and blocks -------------------------------------------------------------------------------

    def grant(self, node: int, now_s: float) -> float:
        """Reserve the next send time of a node; first come, first served."""
        at = max(now_s, self._next_s, self._address_next_s.get(node, 0.0))
        self._next_s = at + self._gap_s if self._gap_s else 0.0
        if self._address_gap_s:
            self._address_next_s[node] = at + self._address_gap_s
        return at

    def answers(self, node: int, block: Block | None, at_s: float) -> bool:
        """Whether a page that starts then may be collected; counts it (at_s never falls for a node)."""
        if block is None:
            return True
        state = self._blocking.get(node)
        if state is None:
            state = self._blocking[node] = _Blocking()
        if at_s < state.until_s:
            return False
        starts = state.starts
        starts.append(at_s)
        while starts[0] <= at_s - block.window_s:
            starts.popleft()
        if len(starts) >= block.pages:
            state.until_s = at_s + block.for_s
            starts.clear()
        return True

    def blocked(self, node: int, at_s: float) -> bool:
        """Whether nothing is collected by a node then."""
        state = self._blocking.get(node)
        return state is not None and at_s < state.until_s

    # --- what strategies see ------------------------------------------------------------------------------------

    def leased(self, node: int) -> None:
        """An attempt was given to a node."""
        self._held[node] = self._held.get(node, 0) + 1
        self._running += 1

    def ended(self, node: int, tried: int, asked_s: float) -> None:
        """An attempt ended; `asked_s`: seconds of its pages, waits for send times included."""
        self._held[node] -= 1
        if not self._held[node]:
            del self._held[node]
        self._running -= 1
        self._tried += tried
        self._asked_s += asked_s

    def refused(self, node: int, now_s: float, rng: Random) -> float:
        """It refused a node: its breaker opens. Returns when the rest ends."""
        rest = self._rests.get(node)
        if rest is None:
            rest = self._rests[node] = _Rest(now_s, 0)
        if rest.until_s <= now_s:
            rest.times += 1
        length = rest_s(ErrorClass.FORBIDDEN, rest.times, None, rng)
        rest.until_s = max(rest.until_s, now_s + length)
        return rest.until_s

    def gave(self, node: int, now_s: float) -> None:
        """It gave a node a page: a half-open breaker closes."""
        rest = self._rests.get(node)
        if rest is not None and rest.until_s <= now_s:
            del self._rests[node]

    def view(self, now_s: float) -> HostView:
        """As a strategy sees it."""
        room, alone = _NO_LIMIT, None
        if self._limited:
            request_s = max(0.01, self._asked_s / self._tried) if self._tried else REQUEST_S
            per_s = attempt_rate(self.limits, request_s, lanes=1)
            room = max(0, attempts_in_all(self.limits.total_per_s, per_s) - self._running)
            alone = attempts_per_address(self.limits, per_s)
        names = self._names
        return HostView(
            host=self.name,
            room=room,
            resting=frozenset(names[node] for node, rest in self._rests.items() if rest.until_s > now_s),
            address_limit=alone,
            held={names[node]: held for node, held in self._held.items()},
            probing=frozenset(names[node] for node, rest in self._rests.items() if rest.until_s <= now_s),
            pages_per_s=self._per_s,
            address_pages_per_s=self._address_per_s,
        )
