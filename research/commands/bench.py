"""`reviewloop bench`: side-by-side measurements."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from app.cli.options import FILE, FOLDER, json_option
from app.cli.output import print_json, printed, say, table
from app.run.version import ROOT
from research.bench import results
from research.bench.registry import BENCHES
from splitter.errors import InputError, ReviewloopError

_SHARED = ROOT.parent / "shared" / "data"
_ALL = "all"
_LONG = 60
"""A text longer than this is folded in a table."""


@click.command()
@click.argument("name")
@click.option(
    "--shared",
    type=FOLDER,
    default=_SHARED,
    help="Folder of the shared data. Default: ../shared/data beside the project.",
)
@click.option("--smallest", is_flag=True, help="As small as it can be: shows that it runs, not how well.")
@click.option("--plots", type=FOLDER, help="Folder to draw the plots into as PNG, for a bench that has some.")
@click.option("--nodes", type=click.IntRange(1, 250), help="field: with how many crawl nodes.")
@click.option("--regime", help="field: only these, separated by commas.")
@click.option("--strategies", help="field: only these, separated by commas.")
@click.option("--job", help="field: small (6 products) or long (30).")
@click.option("--runner", help="field: embedded (`run`) or cluster (`up`).")
@click.option("--seeds", type=click.IntRange(1), help="field: how many worlds of each regime.")
@click.option("--seed-from", type=int, help="field: the first seed.")
@click.option(
    "--for",
    "seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="field: the most a run takes.",
)
@click.option(
    "--full",
    is_flag=True,
    default=None,
    help="field: everything, five seeds, the most important first. Goes on where it was interrupted.",
)
@click.option(
    "--limit-minutes",
    type=click.FloatRange(0, min_open=True),
    metavar="M",
    help="field: begin no run that may end later.",
)
@click.option(
    "--runs",
    type=click.Path(dir_okay=False, path_type=Path),
    help="field: file of finished runs, which are not run again with the same code. With --full: field-runs.jsonl.",
)
@click.option("--only", multiple=True, help="all: only this bench; may be given several times.")
@click.option("--output", "-o", type=FILE, help="all: file for the ratios.")
@click.option(
    "--against", type=FILE, help="all: earlier ratios; exit status 1 where one fell by more than a tenth."
)
@json_option
def bench(
    name: str,
    shared: Path,
    smallest: bool,
    only: tuple[str, ...],
    output: Path | None,
    against: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Run a measurement: its ratios and figures; `all`: every one, and its ratios.

    \b
    Example:
      reviewloop bench splitter
      reviewloop bench field --regime scarce --seeds 3 --strategies feedback,random,sed
      reviewloop bench all -o docs/benchmarks.json
      reviewloop bench all --against docs/benchmarks.json
    """
    given = {option: value for option, value in options.items() if value is not None}
    if name != _ALL:
        _known(name)
        if only or output or against:
            raise InputError("--only, --output and --against belong to `bench all`")
        say(f"Measuring {name} ...", "dim")
        show(BENCHES[name].run(shared, smallest=smallest, **given), as_json=as_json)
        return
    if given:
        raise InputError(f"`bench all` has no --{next(iter(given))}")
    for one in only:
        _known(one)
    before = results.read(against) if against is not None else {}
    measured = _all(only or tuple(BENCHES), shared, smallest=smallest)
    if output is not None:
        results.write(output, measured)
    fallen = list(results.fallen(measured, before))
    if as_json:
        print_json({"benches": measured, "fallen": fallen})
    else:
        rows = [
            (name, ratio, value) for name, one in measured.items() for ratio, value in one["ratios"].items()
        ]
        printed().print(table(("bench", "ratio", "value"), rows))
    for line in fallen:
        say(f"fell: {line}", "red")
    if fallen or not measured:
        raise SystemExit(1)


def _known(name: str) -> None:
    if name not in BENCHES:
        raise InputError(f"there is no bench {name!r}: there is {', '.join(BENCHES)}, or all of them: {_ALL}")


def _all(names: tuple[str, ...], shared: Path, *, smallest: bool) -> results.Results:
    """Run benches one after the other; one that cannot run is named, and left out."""
    measured: results.Results = {}
    for name in names:
        say(f"Measuring {name} ...", "dim")
        began_s = time.monotonic()
        try:
            found = BENCHES[name].run(shared, smallest=smallest)
        except ReviewloopError as error:
            say(f"{name} was not measured: {error}", "yellow")
            continue
        took_s = time.monotonic() - began_s
        measured[name] = results.record(found, smallest=smallest, seconds=took_s)
        say(f"{name}: {took_s:.1f} s", "dim")
        if missing := BENCHES[name].peers_not_installed:
            say(f"{name}: not installed and left out: {', '.join(missing)}", "yellow")
    say(f"All: {sum(one['seconds'] for one in measured.values()):.1f} s", "dim")
    return measured


def show(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a bench's result."""
    if as_json:
        print_json(result)
        return
    out = printed()
    for part in ("ratios", "figures"):
        rows = list(_flat(result[part]))
        long = any(isinstance(value, str) and len(value) > _LONG for _, value in rows)
        out.print(table((part, "value>" if long else "value"), rows))


def _flat(values: Mapping[Any, Any], head: str = "") -> Iterator[tuple[str, str | int | float | None]]:
    """Names and values, those of a mapping in a mapping by dotted names, a list as one text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{head}{name}.")
        elif value is None or isinstance(value, str | int | float):
            yield f"{head}{name}", value
        elif isinstance(value, list | tuple):
            yield f"{head}{name}", ", ".join(map(str, value))
        else:
            yield f"{head}{name}", str(value)
