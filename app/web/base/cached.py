"""Cache values that are costly to compute. The longer a value takes to compute, the longer it is cached."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock, Thread
from typing import TypeVar, cast

T = TypeVar("T")

_KEPT_S = 0.5
_SHARE = 20
"""A value is cached for this multiple of its computing time, so computing takes at most 1/20 of a core."""
_SLOW_S = 0.1
_OVERDUE_S = 5.0
"""Maximum age, after its end, of a value that is shown while it is renewed. An older one is renewed first."""
_MOST = 500

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    value: object
    made_at: float
    took_s: float
    making: bool = False


class Cached:
    """Caches values by key.

    If computing a value takes over 0.1 s, it is renewed in a thread, and requests get the old value.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return the value of a key. If it is missing or too old, it is computed by `make`."""
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None:
                overdue_s = self._clock() - kept.made_at - max(_KEPT_S, _SHARE * kept.took_s)
                if overdue_s <= (_OVERDUE_S if kept.took_s > _SLOW_S else 0.0):
                    if overdue_s > 0 and not kept.making:
                        kept.making = True
                        Thread(target=self._remake, args=(key, make), daemon=True).start()
                    return cast("T", kept.value)
        return self._make(key, make)

    def clear(self) -> None:
        """Remove all values. Called after data has changed."""
        with self._lock:
            self._kept.clear()

    def _make(self, key: Hashable, make: Callable[[], T]) -> T:
        began = self._clock()
        value = make()
        ended = self._clock()
        with self._lock:
            self._kept[key] = _Kept(value, ended, ended - began)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return value

    def _remake(self, key: Hashable, make: Callable[[], object]) -> None:
        try:
            self._make(key, make)
        except Exception:
            _log.exception("%r could not be made anew", key)
            with self._lock:
                self._kept.pop(key, None)
