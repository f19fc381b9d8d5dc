"""The happy path, which most subtasks take, proved at a glance: created, admitted, given to a node once, done.

`on_happy_path` is true only if `tasks.store.verify.replay` would find nothing. If it is false, replay looks event
by event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

_COUNTED: Final = 11
"""Place of the first counter in a row of an attempt (`tasks.store.verify.replay`)."""
_COUNTERS: Final = ("known", "requests", "bytes", "active_s", "wait_s")
_STEPS: Final = (
    ("create", None, "PRIORITY"),
    ("admit", "PRIORITY", "WAIT"),
    ("allocate", "WAIT", "CRAWL"),
    ("succeed", "CRAWL", "SLEEP"),
    ("wake", "SLEEP", "DONE"),
)
_NOBODY: Final = (None, None, None, None)
_ROW: Final = ("DONE", 1, 0, "[]", None, None, 0, None, None, None, None, None, False, 1)
"""The values of its row, from `state` to `attempts`."""


def on_happy_path(row: Sequence[Any], log: Sequence[Sequence[Any]], made: Sequence[Sequence[Any]]) -> bool:
    """Whether a subtask took it, and its events, its attempt and its row all say so.

    Args:
        row: its columns from `state` on.
        log: its events.
        made: its attempts.
    """
    if len(log) != 5 or len(made) != 1 or tuple(row[:14]) != _ROW:
        return False
    created, admitted, given, ended, woken = log
    ((_, attempt_id, no, round_, token, node, allocated_at, _, ended_at, outcome, reason, *_),) = made
    return bool(
        created[2:5] == _STEPS[0]
        and admitted[2:5] == _STEPS[1]
        and given[2:5] == _STEPS[2]
        and ended[2:5] == _STEPS[3]
        and woken[2:5] == _STEPS[4]
        and created[6:10] == _NOBODY
        and admitted[6:10] == _NOBODY
        and woken[6:10] == (None, None, node, None)
        and (no, round_, outcome) == (1, 1, "succeeded")
        and given[5:9] == (allocated_at, token, attempt_id, node)
        and ended[5:10] == (ended_at, token, attempt_id, node, reason)
        and created[5] <= admitted[5] <= allocated_at <= ended_at <= woken[5]
        and tuple(row[14:]) == (created[5], woken[5])
        and not miscounted(made[0], ended[10])
    )


def miscounted(attempt: Sequence[Any], detail: str | None) -> str:
    """Numbers on which an attempt and its end differ; empty where all agree, or the detail was dropped."""
    if detail is None:
        return ""
    counted = detail_of(detail)
    different = [
        f"{name} {is_}, not {counted[name]}"
        for name, is_ in zip(_COUNTERS, attempt[_COUNTED:-2], strict=True)
        if name in counted and is_ != counted[name]
    ]
    for name, text in zip(("errors", "statuses"), attempt[-2:], strict=True):
        if name in counted and _counts(text) != counted[name]:
            different.append(f"{name} {text}, not {counted[name]}")
    return ", ".join(different)


@lru_cache(maxsize=1024)
def _counts(text: str) -> Any:
    """Errors or statuses with their counts, as an attempt has them: few different texts."""
    return json.loads(text)


def detail_of(text: str | None) -> Mapping[str, Any]:
    """The detail of an event; empty where it has none, or it was dropped."""
    return json.loads(text) if text is not None else {}
