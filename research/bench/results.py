"""Ratios of benches in a file, with version, date and machine, and comparisons with it.

`python -m research.bench.results` writes the table of docs/benchmarks.md again from docs/benchmarks.json.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.run.version import ROOT, VERSION
from research.bench.registry import is_lower_better
from splitter.errors import InputError

FILE = ROOT / "docs" / "benchmarks.json"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
_TOLERANCE = 0.1
"""Tolerance: the share of a ratio that it may lose."""

Results = dict[str, dict[str, Any]]
"""Results by bench: version, machine, date, size ("whole" or "smallest"), seconds, and ratios."""


def record(result: Mapping[str, Any], *, smallest: bool, seconds: float) -> dict[str, Any]:
    """Return the part of a bench's result that is stored."""
    return {
        "version": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": _machine(),
        "size": "smallest" if smallest else "whole",
        "seconds": round(seconds, 1),
        "ratios": dict(result["ratios"]),
    }


def _machine() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    processor = next(names, platform.machine())
    return f"{len(os.sched_getaffinity(0))} cores, {processor}, Python {platform.python_version()}"


def read(path: Path) -> Results:
    """Return the results in a file. Raises InputError."""
    try:
        found: Results = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} has no results of `bench all`: {error}") from error
    return found


def write(path: Path, results: Results) -> None:
    """Write results; those of other benches stay in the file."""
    both = {**(read(path) if path.exists() else {}), **results}
    path.write_text(json.dumps(both, ensure_ascii=False, indent=2, sort_keys=True) + "\n", "utf-8")


def fallen(results: Results, against: Results) -> Iterator[str]:
    """Yield a line for each ratio that is worse than before by more than a tenth; only runs of one size are compared."""
    for name, now in results.items():
        before = against.get(name)
        if before is None or before["size"] != now["size"]:
            continue
        for ratio, value in before["ratios"].items():
            if is_worse(name, ratio, now["ratios"].get(ratio), value):
                yield f"{name}: {ratio} was {value} and is {now['ratios'].get(ratio)}"


def is_worse(name: str, ratio: str, now: float | None, before: float | None) -> bool:
    """Return True if a ratio got worse by more than a tenth, or is missing now."""
    if before is None or now is None:
        return before is not None
    if is_lower_better(name, ratio):
        return now > before * (1 + _TOLERANCE)
    return now < before * (1 - _TOLERANCE)


def table(text: str, results: Results) -> str:
    """Return a document with its table of ratios made again, between ``<!-- ratios -->`` and ``<!-- end -->``."""
    head, begin, rest = text.partition("<!-- ratios -->\n")
    _, end, tail = rest.partition("<!-- end -->")
    if not begin or not end:
        raise InputError(f"{DOCUMENT} has no place for the table of ratios")
    return head + begin + "\n".join(_rows(results)) + "\n" + end + tail


def _rows(results: Results) -> Iterator[str]:
    yield "| bench | ratio | | better | version, date, size | machine |"
    yield "|---|---|---|---|---|---|"
    for name, one in sorted(results.items()):
        for ratio, value in one["ratios"].items():
            better = "lower" if is_lower_better(name, ratio) else "higher"
            shown = "-" if value is None else f"{value:,}"
            when = f"{one['version']}, {one['date']}, {one['size']}"
            yield f"| {name} | `{ratio}` | {shown} | {better} | {when} | {one['machine']} |"


if __name__ == "__main__":
    DOCUMENT.write_text(table(DOCUMENT.read_text("utf-8"), read(FILE)), "utf-8")
