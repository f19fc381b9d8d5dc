"""Runs of `bench field` as tables and a picture.

    python -m research.bench.field.report RUNS.jsonl

writes those of docs/strategies.md again.
"""

from __future__ import annotations

import statistics
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from app.run.version import ROOT
from research.bench.field import bound, contest
from research.bench.field.measured import OURS, Measured
from research.bench.field.records import Record, read
from research.bench.field.worlds import JOBS
from research.tools import plots
from splitter.errors import InputError

DOCUMENT = ROOT / "docs" / "strategies.md"
PICTURES: Mapping[str, str] = MappingProxyType({job: f"plots/field-{job}.png" for job in JOBS})
"""By job, beside the document."""

_BEGIN, _END = "<!-- field -->\n", "<!-- end of field -->\n"
_POINTS = 24

Points = list[tuple[float, float]]


def table(records: Sequence[Record]) -> Iterator[str]:
    """Lines of Markdown: medians over the seeds, by regime and strategy."""
    yield (
        "| regime | strategy | seeds | pages at the mark, of the bound | requests a page | half, 90 %, all stored at | "
        "done | end, of the bound | given up, MANUAL | most attempts | released | CPU a page | violations |"
    )
    yield "|" + "---|" * 13
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
            f"{_share(measured, 'given_up', 'targets')}, {_share(measured, 'manual', 'subtasks')}",
            str(max(one.most_attempts for one in measured)),
            f"{statistics.median(one.released_share for one in measured):.1%}",
            _number(_median(one.cpu_ms_per_page for one in measured), " ms"),
            str(sum(one.violations or 0 for one in measured)),
        ]
        yield f"| {' | '.join(cells)} |"


def differences(records: Sequence[Record]) -> Iterator[str]:
    """Lines of Markdown: paired differences to our strategy, with their lower 95 % bounds where there are two seeds."""
    yield "| regime | ours against | seeds | pages at the mark | pages in the end | half of the pages sooner by |"
    yield "|" + "---|" * 6
    for name, found in contest.compared(records, OURS).items():
        label, _, pair = name.partition(".")
        seeds = found["pages_at_mark"]["seeds"]
        cells = [
            label,
            f"`{pair.removeprefix(f'{OURS}_vs_')}`",
            str(seeds),
            *map(_difference, found.values()),
        ]
        yield f"| {' | '.join(cells)} |"


def _difference(found: Mapping[str, float | None]) -> str:
    if found["mean"] is None:
        return "-"
    lower = f" (at least {found['lower_95']:+.1%})" if found["lower_95"] is not None else ""
    return f"{found['mean']:+.1%}{lower}"


def _share(measured: Sequence[Measured], part: str, whole: str) -> str:
    """The median share of a count in another one."""
    return f"{statistics.median(getattr(one, part) / max(1, getattr(one, whole)) for one in measured):.1%}"


def _median(values: Iterable[float | None]) -> float | None:
    """The median where those that never came count as the largest; None where it is one of them."""
    ordered = sorted(values, key=lambda value: (value is None, value or 0.0))
    return ordered[len(ordered) // 2]


def _number(value: float | None, unit: str = "") -> str:
    return "-" if value is None else f"{value:.2f}{unit}"


def _time(value: float | None) -> str:
    return "never" if value is None else f"{value:.0f} s"


def written(text: str, records: Sequence[Record]) -> str:
    """A document with its tables made anew. Raises InputError where it has no place for it."""
    head, begin, rest = text.partition(_BEGIN)
    _, end, tail = rest.partition(_END)
    if not begin or not end:
        raise InputError(f"there is no place for the table: {_BEGIN.strip()} and {_END.strip()}")
    said = f"Seeds: {_seeds(records)}."
    jobs = dict.fromkeys(one.job for one in records)
    pictures = (f"![Pages over time, {job} job]({PICTURES[job]})" for job in jobs)
    parts = ("\n".join(table(records)), "\n".join(differences(records)), *pictures)
    return f"{head}{begin}{said}\n\n" + "\n\n".join(parts) + f"\n{end}{tail}"


def _seeds(records: Iterable[Record]) -> str:
    return ", ".join(map(str, sorted({one.seed for one in records})))


def draw_pages(path: Path, records: Sequence[Record]) -> None:
    """Draw the pages stored over time, mean over the seeds: a picture for each regime. Raises InputError."""
    by_label: dict[str, dict[str, Points]] = {}
    for label in dict.fromkeys(one.label for one in records):
        runs = [one for one in records if one.label == label]
        last_s = max(min(one.seconds, one.measured.ended_s) for one in runs)
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
    """Write the document's tables and picture of the runs in the file that the command line names."""
    records = read(Path(sys.argv[1]))
    for job, picture in PICTURES.items():
        if of_job := [one for one in records if one.job == job]:
            draw_pages(DOCUMENT.parent / picture, of_job)
    DOCUMENT.write_text(written(DOCUMENT.read_text("utf-8"), records), "utf-8")


if __name__ == "__main__":
    main()
