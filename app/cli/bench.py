"""`reviewloop bench`: side-by-side measurements."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import click

import bench as benches
from app.cli.options import json_option
from app.cli.output import print_json, printed, say, table
from app.config import ROOT
from splitter.errors import InputError

_SHARED = ROOT.parent / "shared" / "data"


@click.command()
@click.argument("name")
@click.option(
    "--shared",
    type=click.Path(file_okay=False, path_type=Path),
    default=_SHARED,
    help="Folder of the shared data. Default: ../shared/data beside the project.",
)
@click.option(
    "--plots",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to draw the plots into as PNG, for a bench that has some.",
)
@json_option
def bench(name: str, shared: Path, plots: Path | None, as_json: bool) -> None:
    """Run a measurement: its ratios and figures.

    \b
    Example:
      reviewloop bench splitter
    """
    known = _known()
    if name not in known:
        raise InputError(f"there is no bench {name!r}: there is {', '.join(known)}")
    if not shared.is_dir():
        raise InputError(f"the shared data is not at {shared}: name its folder with --shared")
    run = import_module(f"bench.{name}").run
    options: dict[str, Any] = {}
    if plots is not None:
        if "plots" not in signature(run).parameters:
            raise InputError(f"the bench {name!r} has no plots: leave --plots out")
        options["plots"] = plots
    say(f"Measuring {name} ...", "dim")
    result: dict[str, Any] = run(shared, **options)
    if as_json:
        print_json(result)
        return
    out = printed()
    for part in ("ratios", "figures"):
        out.print(table((part, "value"), result[part].items()))


def _known() -> list[str]:
    """Names of the benches: modules with a `run`. None is imported: what one needs must not stop another."""
    names = sorted(module.name for module in iter_modules(benches.__path__) if not module.ispkg)
    folder = Path(benches.__path__[0])
    return [name for name in names if "\ndef run(" in (folder / f"{name}.py").read_text("utf-8")]
