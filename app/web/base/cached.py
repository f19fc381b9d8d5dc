"""Answers that are costly to make, kept for a while: the longer, the more they cost."""

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
"""An answer is kept so many times as long as it took: asking takes at most 1/20 of a core."""
_SLOW_S = 0.1
_MOST = 500

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    value: object
    made_at: float
    took_s: float
    making: bool = False


class Cached:
    """Keeps answers by key. What takes longer than 0.1 s is made anew beside the request, which gets the former one."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The answer of that key, made by `make` where there is none or it is old."""
        with self._lock:
            kept = self._kept.get(key)
            old = kept is None or self._clock() - kept.made_at > max(_KEPT_S, _SHARE * kept.took_s)
            beside = kept is not None and old and kept.took_s > _SLOW_S
            if kept is not None and beside and not kept.making:
                kept.making = True
                Thread(target=self._made_beside, args=(key, make), daemon=True).start()
        if kept is None or (old and not beside):
            return self._made(key, make)
        return cast("T", kept.value)

    def clear(self) -> None:
        """Forget everything: something was changed."""
        with self._lock:
            self._kept.clear()

    def _made(self, key: Hashable, make: Callable[[], T]) -> T:
        began = self._clock()
        value = make()
        ended = self._clock()
        with self._lock:
            self._kept[key] = _Kept(value, ended, ended - began)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return value

    def _made_beside(self, key: Hashable, make: Callable[[], object]) -> None:
        try:
            self._made(key, make)
        except Exception:
            _log.exception("%r could not be made anew", key)
            with self._lock:
                self._kept.pop(key, None)
