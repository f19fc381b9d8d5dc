"""Runs of `bench field` as a table and a picture.

    python -m bench.field.report RUNS.jsonl

writes the table of docs/strategies.md anew.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from app.version import ROOT
from bench.field import bound, contest
from bench.field.records import Record, read
from bench.tools import plots
from splitter.errors import InputError

DOCUMENT = ROOT / "docs" / "strategies.md"
_BEGIN, _END = "<!-- field -->\n", "<!-- end of field -->\n"
_POINTS = 24

Points = list[tuple[float, float]]


def table(records: Sequence[Record]) -> Iterator[str]:
    """Lines of Markdown: medians over the seeds, by regime and strategy."""
    yield (
        "| regime | strategy | seeds | pages at the mark, of the bound | requests a page | half, 90 %, all stored at | "
        "done | end, of the bound | released | CPU a page | violations |"
    )
    yield "|" + "---|" * 11
    ratios = contest.ratios(records)
    for label, strategy in dict.fromkeys((one.label, one.strategy) for one in records):
        runs = [one for one in records if (one.label, one.strategy) == (label, strategy)]
        told = {name: ratios[f"{label}.{strategy}.{name}"] for name in contest.RATIOS}
        measured = [one.measured for one in runs]
        cells = [
            label,
            f"`{strategy}`",
            str(len(runs)),
            f"{statistics.median(one.pages_at_mark for one in measured):,.0f}, {_number(told['pages_of_bound'])}",
            _number(told["requests_per_page"]),
            ", ".join(
                _time(_median(one.stored_at[name] for one in measured)) for name in measured[0].stored_at
            ),
            f"{sum(contest.is_done(one, records) for one in runs)} of {len(runs)}",
            _number(told["done_of_bound"]),
            f"{statistics.median(one.released_share for one in measured):.0%}",
            _number(_median(one.cpu_ms_per_page for one in measured), " ms"),
            str(sum(one.violations or 0 for one in measured)),
        ]
        yield f"| {' | '.join(cells)} |"


def _median(values: Iterable[float | None]) -> float | None:
    """The median where those that never came count as the largest; None where it is one of them."""
    ordered = sorted(values, key=lambda value: (value is None, value or 0.0))
    return ordered[len(ordered) // 2]


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}"


def _time(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f} s"


def written(text: str, records: Sequence[Record]) -> str:
    """A document with its table made anew. Raises InputError where it has no place for it."""
    head, begin, rest = text.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise InputError(f"there is no place for the table: {_BEGIN.strip()} and {_END.strip()}")
    return head + begin + "\n".join(table(records)) + "\n" + end + tail


def draw_pages(path: Path, records: Sequence[Record]) -> None:
    """Draw the pages stored over time, mean over the seeds: a picture for each regime. Raises InputError."""
    by_label: dict[str, dict[str, Points]] = {}
    for label in dict.fromkeys(one.label for one in records):
        runs = [one for one in records if one.label == label]
        last_s = max(one.seconds for one in runs)
        times = [last_s * n / _POINTS for n in range(_POINTS + 1)]
        by_label[label] = {
            name: [(t, statistics.fmean(stored_by(one, t) for one in group)) for t in times]
            for name, group in _by_strategy(runs).items()
        }
        by_label[label]["bound"] = _bounds(runs, times)
    plots.panels(path, "Pages stored over real HTTP", "seconds from the first request", "pages", by_label)


def stored_by(one: Record, t: float) -> float:
    """Pages a run had stored by whole seconds, at the last one until ``t``."""
    by_s = (0, *one.measured.stored_by_s)
    return float(by_s[min(int(t), len(by_s) - 1)])


def _by_strategy(runs: Iterable[Record]) -> Mapping[str, list[Record]]:
    groups: dict[str, list[Record]] = {}
    for one in runs:
        groups.setdefault(one.strategy, []).append(one)
    return groups


def _bounds(runs: Sequence[Record], times: Sequence[float]) -> Points:
    """The bound over time, mean over the worlds; flat once all is there, which needs no program."""
    worlds = {one.seed: one for one in runs}
    curves = []
    for one in worlds.values():
        facts = one.facts
        full_at = one.bound.possible_at["all"]
        solved = times[: bisect_left(times, full_at) if full_at is not None else len(times)]
        curve = [bound.pages_by(facts, t) for t in solved]
        curves.append([*curve, *[float(facts.pages)] * (len(times) - len(curve))])
    return [(t, statistics.fmean(at)) for t, at in zip(times, zip(*curves, strict=True), strict=True)]


def main() -> None:
    """Write the document's table of the runs in the file that the command line names."""
    records = read(Path(sys.argv[1]))
    DOCUMENT.write_text(written(DOCUMENT.read_text("utf-8"), records), "utf-8")


if __name__ == "__main__":
    main()
