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
@click.option("--products", type=click.IntRange(1), help="How many products, for a bench that crawls some.")
@click.option("--sites", type=click.IntRange(1), help="Of how many sites.")
@click.option("--nodes", type=click.IntRange(1, 250), help="With how many crawl nodes.")
@click.option(
    "--profile", help="How the lab behaves, for a bench that has one: a built-in profile or a file."
)
@json_option
def bench(
    name: str,
    shared: Path,
    plots: Path | None,
    products: int | None,
    sites: int | None,
    nodes: int | None,
    profile: str | None,
    as_json: bool,
) -> None:
    """Run a measurement: its ratios and figures.

    \b
    Example:
      reviewloop bench splitter
      reviewloop bench day --products 20 --sites 10 --nodes 3
    """
    known = _known()
    if name not in known:
        raise InputError(f"there is no bench {name!r}: there is {', '.join(known)}")
    if not shared.is_dir():
        raise InputError(f"the shared data is not at {shared}: name its folder with --shared")
    run = import_module(f"bench.{name}").run
    options: dict[str, Any] = {}
    given = {"plots": plots, "products": products, "sites": sites, "nodes": nodes, "profile": profile}
    for option, value in given.items():
        if value is not None:
            if option not in signature(run).parameters:
                raise InputError(f"the bench {name!r} has no {option}: leave --{option} out")
            options[option] = value
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
