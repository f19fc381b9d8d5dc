"""Plots of a bench's figures as PNG files, and the option for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

import click

from app.cli.options import FOLDER
from splitter.errors import InputError

Points = Sequence[tuple[float, float]]


def _drawable(_ctx: click.Context, _param: click.Parameter, folder: Path | None) -> Path | None:
    """Refuse the option without matplotlib, before a bench spends minutes on its figures."""
    if folder is not None and find_spec("matplotlib") is None:
        raise InputError("plots need matplotlib: make research")
    return folder


plots_option = click.option("--plots", type=FOLDER, callback=_drawable, help="Folder for the plots, as PNG.")


def lines(path: Path, title: str, axes: tuple[str, str], series: Mapping[str, Points], note: str) -> None:
    """Draw one picture: a line with marks for each series.

    Args:
        path: of the PNG; its folder is made.
        axes: labels of x and y, with their units.
        series: points (x, y) by the name in the legend. A name that begins with "paper" or "limit" is drawn
            dashed and without marks: it was not measured here.
        note: what the picture shows, set below it.
    """
    # Not pyplot: it keeps every figure and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.4), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    drawn = figure.add_subplot()
    # Hollow marks of several kinds show that there are two lines if one lies on the other.
    for (name, points), mark in zip(series.items(), cycle("os^Dv"), strict=False):
        given = name.startswith(("paper", "limit"))
        drawn.plot(
            *zip(*points, strict=True),
            label=name,
            linestyle="--" if given else "-",
            marker="" if given or len(points) > 40 else mark,
            markersize=8,
            markerfacecolor="none",
        )
    drawn.set_title(title, fontsize=12)
    drawn.set_xlabel(axes[0])
    drawn.set_ylabel(axes[1])
    drawn.set_ylim(bottom=0)
    drawn.grid(alpha=0.3)
    drawn.legend(frameon=False)
    figure.supxlabel(note, fontsize=8.5, color="0.3", wrap=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
