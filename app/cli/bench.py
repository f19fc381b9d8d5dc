"""`reviewloop bench`: side-by-side measurements."""

from __future__ import annotations

from importlib import import_module
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
@json_option
def bench(name: str, shared: Path, as_json: bool) -> None:
    """Run a measurement: its ratios and figures.

    \b
    Example:
      reviewloop bench splitter
    """
    known = sorted(module.name for module in iter_modules(benches.__path__))
    known = [one for one in known if hasattr(import_module(f"bench.{one}"), "run")]
    if name not in known:
        raise InputError(f"there is no bench {name!r}: there is {', '.join(known)}")
    if not shared.is_dir():
        raise InputError(f"the shared data is not at {shared}: name its folder with --shared")
    say(f"Measuring {name} ...", "dim")
    result: dict[str, Any] = import_module(f"bench.{name}").run(shared)
    if as_json:
        print_json(result)
        return
    out = printed()
    for part in ("ratios", "figures"):
        out.print(table((part, "value"), result[part].items()))
