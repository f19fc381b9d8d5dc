"""CPU time of other processes, as Linux tells it in /proc."""

from __future__ import annotations

import os
from pathlib import Path

_PARENT, _USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM = 1, 11, 12, 13, 14
"""Fields of /proc/PID/stat (proc(5)), counted from the one behind the name in brackets."""


def family_s(pid: int) -> float:
    """CPU seconds of a process, its children, and those of its children that have ended; 0 where nobody tells.

    Counted in clock ticks, of a hundredth of a second as a rule.
    """
    proc = Path("/proc")
    if not (proc / str(pid)).exists():
        return 0.0
    ticks = 0
    for folder in proc.iterdir():
        fields = _fields(folder) if folder.name.isdigit() else None
        if fields is None:
            continue
        if folder.name == str(pid):
            ticks += sum(fields[place] for place in (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM))
        elif fields[_PARENT] == pid:
            ticks += fields[_USER] + fields[_SYSTEM]
    return ticks / os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> dict[int, float]:
    """CPU seconds, with those of their ended children, of a process and of all that descend from it, by pid."""
    told = {int(folder.name): _fields(folder) for folder in Path("/proc").iterdir() if folder.name.isdigit()}
    found: dict[int, float] = {}
    waiting = [pid]
    while waiting:
        here = waiting.pop()
        if (fields := told.get(here)) is None:
            continue
        ticks = sum(fields[place] for place in (_USER, _SYSTEM, _CHILDREN_USER, _CHILDREN_SYSTEM))
        found[here] = ticks / os.sysconf("SC_CLK_TCK")
        waiting += [other for other, of in told.items() if of is not None and of[_PARENT] == here]
    return found


def _fields(folder: Path) -> list[int] | None:
    """Numbers behind the name and the state of a process; None: it has ended."""
    try:
        told = (folder / "stat").read_text()
    except OSError:
        return None
    state, *numbers = told.rpartition(")")[2].split()
    return [0, *map(int, numbers)] if state else None
