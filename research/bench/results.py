"""Ratios of benches in a file: written with where and when they were measured, compared, and made into tables.

    python -m research.bench.results

writes the tables of docs/benchmarks.md anew from docs/benchmarks.json.
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
from research.bench.registry import BENCHES, Bench
from splitter.errors import InputError

FILE = ROOT / "docs" / "benchmarks.json"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
_MOST = 0.1
"""A ratio that falls by more than this share is worse."""

Results = dict[str, dict[str, Any]]
"""By bench: version, machine, date, size ("whole" or "smallest"), the seconds it took, and ratios."""


def record(result: Mapping[str, Any], *, smallest: bool, seconds: float) -> dict[str, Any]:
    """What is kept of a bench's result."""
    return {
        "version": VERSION,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(),
        "size": "smallest" if smallest else "whole",
        "seconds": round(seconds, 1),
        "ratios": dict(result["ratios"]),
    }


def machine() -> str:
    """Cores, processor and Python."""
    cores = len(os.sched_getaffinity(0))
    return f"{cores} cores, {_processor()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "?")


def read(path: Path) -> Results:
    """The results in a file. Raises InputError."""
    try:
        found: Results = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} holds no results of `bench all`: {error}") from error
    return found


def write(path: Path, results: Results) -> None:
    """Write results, those of other benches in the file kept."""
    kept = read(path) if path.exists() else {}
    text = json.dumps({**kept, **results}, ensure_ascii=False, indent=2, sort_keys=True)
    path.write_text(text + "\n", "utf-8")


def fallen(results: Results, against: Results) -> Iterator[str]:
    """Each ratio that is worse than before by more than a tenth, in one line; runs of one size are compared only."""
    for name, now in results.items():
        before = against.get(name)
        if before is None or before["size"] != now["size"]:
            continue
        for ratio, value in before["ratios"].items():
            if is_worse(BENCHES[name], ratio, now["ratios"].get(ratio), value):
                yield f"{name}: {ratio} was {value} and is {now['ratios'].get(ratio)}"


def is_worse(bench: Bench, ratio: str, now: float | None, before: float | None) -> bool:
    """Whether a ratio fell by more than a tenth: rose, where lower is better; or is not there any more."""
    if before is None:
        return False
    if now is None:
        return True
    if bench.lower_is_better(ratio):
        return now > before * (1 + _MOST)
    return now < before * (1 - _MOST)


def tables(text: str, results: Results) -> str:
    """A document with its tables made anew: each between a pair of comments, ``<!-- NAME -->`` and ``<!-- end -->``."""
    for name, lines in (("needs", _needs()), ("ratios", _ratios(results))):
        head, begin, rest = text.partition(f"<!-- {name} -->\n")
        _, end, tail = rest.partition("<!-- end -->")
        if not begin or not end:
            raise InputError(f"there is no place for the table {name!r}")
        text = head + begin + "\n".join(lines) + "\n" + end + tail
    return text


def _needs() -> Iterator[str]:
    yield "| bench | measures | of the shared data | without them | compared with, where installed |"
    yield "|---|---|---|---|---|"
    for bench in BENCHES.values():
        without = "small samples of its own" if bench.own_samples else "does not run" if bench.shared else ""
        cells = f"`{bench.name}`", bench.measures, ", ".join(bench.shared), without, ", ".join(bench.peers)
        yield f"| {' | '.join(cells)} |"


def _ratios(results: Results) -> Iterator[str]:
    yield "| bench | ratio | | better | version, date, size | machine |"
    yield "|---|---|---|---|---|---|"
    for name, one in sorted(results.items()):
        for ratio, value in one["ratios"].items():
            better = "lower" if BENCHES[name].lower_is_better(ratio) else "higher"
            shown = "-" if value is None else f"{value:,}"
            when = f"{one['version']}, {one['date']}, {one['size']}"
            yield f"| {name} | `{ratio}` | {shown} | {better} | {when} | {one['machine']} |"


def main() -> None:
    """Write the tables of the document."""
    DOCUMENT.write_text(tables(DOCUMENT.read_text("utf-8"), read(FILE)), "utf-8")


if __name__ == "__main__":
    main()
