"""`reviewloop bench`: side-by-side measurements, one command a bench."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from app.cli.help_texts import translate_help
from app.cli.options import FILE, FOLDER, json_option
from app.cli.output import make_console, print_json, say, table
from app.run.version import ROOT
from app.views.words import translate
from research.bench import results
from research.bench.registry import BENCHES, function, own_lines
from splitter.errors import ReviewloopError

_SHARED = ROOT.parent / "shared" / "data"
_LONG = 60
"""Longest text that a table does not fold."""


def _shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every bench."""
    smallest = click.option(
        "--smallest", is_flag=True, help="Run as small as possible, only to see that it works."
    )
    about = "Folder of the shared data. Default: ../shared/data, next to the project."
    shared = click.option("--shared", type=FOLDER, default=_SHARED, help=about)
    return shared(smallest(json_option(command)))


class Benches(click.Group):
    """The benches, each imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the benches, then `all`."""
        return [*BENCHES, "all"]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of a bench."""
        return (
            translate_help(_command(cmd_name)) if cmd_name in BENCHES else super().get_command(ctx, cmd_name)
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the benches without importing any."""
        with formatter.section(translate("Benches")):
            rows = [(name, translate(_describe(name))) for name in BENCHES]
            formatter.write_dl(
                [*rows, ("all", translate("Run every bench, one after the other, and print the ratios."))]
            )


def _command(name: str) -> click.Command:
    measure = function(name)

    def run(shared: Path, smallest: bool, as_json: bool, **options: Any) -> None:
        say(f"Measuring {name} ...", "dim")
        result = measure(shared, smallest, **options)
        show(result, as_json=as_json)
        failed = result["figures"].get("below", ())
        for line in failed:
            say(line, "red")
        if failed:
            raise SystemExit(1)

    run.__click_params__ = list(getattr(measure, "__click_params__", ()))  # type: ignore[attr-defined]
    about = f"{_describe(name)}\n\n\b\nExample:\n  reviewloop bench {name} --json"
    return click.command(name, help=about)(_shared_options(run))


def _describe(name: str) -> str:
    return f"Measure {BENCHES[name][1]}."


@click.group(cls=Benches)
def bench() -> None:
    """Measure one subject side by side, or all of them.

    \b
    Example:
      reviewloop bench splitter
      reviewloop bench field --regime scarce --seeds 3 --strategies feedback,random,sed
      reviewloop bench all -o docs/benchmarks.json
      reviewloop bench all --against docs/benchmarks.json
    """


@bench.command(name="all")
@click.option("--only", multiple=True, type=click.Choice(list(BENCHES)), help="Only this bench. Repeatable.")
@click.option("--output", "-o", type=FILE, help="File to write the ratios to.")
@click.option("--against", type=FILE, help="Earlier ratios; exit status 1 if one fell by more than a tenth.")
@_shared_options
def all_benches(
    only: tuple[str, ...],
    output: Path | None,
    against: Path | None,
    shared: Path,
    smallest: bool,
    as_json: bool,
) -> None:
    """Run every bench, one after the other, and print the ratios.

    A bench that cannot run is reported and skipped. Exit status 1 if a figure is below its floor.

    \b
    Example:
      reviewloop bench all --against docs/benchmarks.json
    """
    before = results.read(against) if against is not None else {}
    measured: results.Results = {}
    below: list[str] = []
    for name in only or BENCHES:
        say(f"Measuring {name} ...", "dim")
        begin_s = time.monotonic()
        try:
            found = function(name)(shared, smallest)
        except ReviewloopError as error:
            say(f"{name} was not measured: {error}", "yellow")
            continue
        below += found["figures"].get("below", ())
        measured[name] = results.record(found, smallest=smallest, seconds=time.monotonic() - begin_s)
        say(f"{name}: {measured[name]['seconds']} s", "dim")
    if output is not None:
        results.write(output, measured)
    fallen = [*results.fallen(measured, before), *below]
    if as_json:
        print_json({"benches": measured, "fallen": fallen})
    else:
        rows = [(name, *pair) for name, one in measured.items() for pair in one["ratios"].items()]
        make_console().print(table(("bench", "ratio", "value"), rows))
    for line in fallen:
        say(f"fell: {line}", "red")
    if fallen or not measured:
        raise SystemExit(1)


def show(result: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a bench's result."""
    if as_json:
        print_json(result)
        return
    own = own_lines(result["bench"], result["figures"])
    for part in ("ratios",) if own else ("ratios", "figures"):
        rows = list(_flat(result[part]))
        long = any(isinstance(value, str) and len(value) > _LONG for _, value in rows)
        make_console().print(table((part, "value>" if long else "value"), rows))
    for line in own or ():
        click.echo(line)


def _flat(values: Mapping[Any, Any], head: str = "") -> Iterator[tuple[str, str | int | float | None]]:
    """Yield names and values: those of a nested mapping with dotted names, a list as one text."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{head}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{head}{name}", ", ".join(map(str, value))
        else:
            yield (
                f"{head}{name}",
                value if value is None or isinstance(value, str | int | float) else str(value),
            )
