"""Scripts that pages share, kept as long as their hosts allow: each costs a permit once, not once a page."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable

from tasks.domain.pages import Response

MOST_BYTES = 32_000_000
LONGEST_S = 3600.0
_MAX_AGE = re.compile(r"\bmax-age\s*=\s*\"?(\d{1,9})")
_NOT_SHARED = re.compile(r"\b(?:no-store|no-cache|private)\b")


class ScriptCache:
    """Scripts by their addresses; those not used for the longest time go first.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Response]] = OrderedDict()
        self._bytes = 0

    def get(self, url: str) -> Response | None:
        """Return the script if it is cached and still fresh."""
        found = self._kept.get(url)
        if found is None:
            return None
        if self._clock() >= found[0]:
            self._drop(url)
            return None
        self._kept.move_to_end(url)
        return found[1]

    def keep(self, url: str, response: Response) -> None:
        """Keep a script that its host lets a shared cache keep (RFC 9111, 3)."""
        seconds = min(LONGEST_S, _fresh_s(response))
        if not seconds or len(response.body) > MOST_BYTES:
            return
        self._drop(url)
        self._kept[url] = (self._clock() + seconds, response)
        self._bytes += len(response.body)
        while self._bytes > MOST_BYTES:
            self._drop(next(iter(self._kept)))

    def _drop(self, url: str) -> None:
        if (found := self._kept.pop(url, None)) is not None:
            self._bytes -= len(found[1].body)


def _fresh_s(response: Response) -> float:
    """Return the seconds for which an answer may be used again; 0: never."""
    headers = response.headers
    control = headers.get("cache-control", "").lower()
    if response.status != 200 or "set-cookie" in headers or _NOT_SHARED.search(control):
        return 0.0
    if headers.get("vary", "accept-encoding").strip().lower() != "accept-encoding":
        return 0.0
    found = _MAX_AGE.search(control)
    return float(found[1]) if found else 0.0
