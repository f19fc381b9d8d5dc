"""Plots of what a bench measured, as PNG files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from splitter.errors import InputError


def check_there() -> None:
    """Raise InputError where plots can't be drawn, before a bench spends minutes on them."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise InputError("plots need matplotlib: make research") from error


def lines(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Sequence[tuple[float, float]]],
    note: str = "",
) -> None:
    """Draw one picture: a line with marks for each series.

    Args:
        path: of the PNG; its folder is made.
        x_label, y_label: with their units.
        series: points (x, y) by the name in the legend. A name that begins with "paper" or "limit" is drawn
            dashed and without marks: it was not measured here.
        note: what the picture shows, set below it.

    Raises:
        InputError: matplotlib is not installed.
    """
    figure = _figure(8, 5.4)
    axes = figure.add_subplot()
    # Hollow marks of several kinds: lines that lie on each other are still seen to be two.
    for (name, points), mark in zip(series.items(), cycle("os^Dv"), strict=False):
        given = name.startswith(("paper", "limit"))
        axes.plot(
            [x for x, _ in points],
            [y for _, y in points],
            label=name,
            linestyle="--" if given else "-",
            marker="" if given or len(points) > 40 else mark,
            markersize=8,
            markerfacecolor="none",
            linewidth=1.2 if given else 1.8,
        )
    axes.set_title(title, fontsize=12)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    _save(figure, path, note)


def panels(
    path: Path,
    title: str,
    x_label: str,
    y_label: str,
    by_panel: Mapping[str, Mapping[str, Sequence[tuple[float, float]]]],
    note: str = "",
) -> None:
    """Draw small pictures with the same axes, two in a row, a line for each series.

    Args:
        path: of the PNG; its folder is made.
        by_panel: by the title of each, points (x, y) by the name in the legend; a name has the same colour in all.
        note: what the picture shows, set below it.

    Raises:
        InputError: matplotlib is not installed.
    """
    rows = (len(by_panel) + 1) // 2
    figure = _figure(9.6, 1.4 + 2.7 * rows)
    grid = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
    names = list(dict.fromkeys(name for series in by_panel.values() for name in series))
    for unused in grid.flat[len(by_panel) :]:
        unused.remove()
    for axes, (panel, series) in zip(grid.flat, by_panel.items(), strict=False):
        for place, name in enumerate(names):
            points = series.get(name, ())
            axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                label=name,
                color=f"C{place}",
                marker="os^Dv"[place % 5],
                markersize=3.5,
                linewidth=1.4,
            )
        axes.set_title(panel, fontsize=10)
        axes.grid(alpha=0.3)
        axes.set_ylim(bottom=0)
    for axes in grid[-1]:
        axes.set_xlabel(x_label)
    for axes in grid[:, 0]:
        axes.set_ylabel(y_label)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.suptitle(title, fontsize=12)
    _save(figure, path, note)


def _figure(width: float, height: float) -> Any:
    """An empty picture, in inches."""
    check_there()
    # Not pyplot: it keeps every figure and looks for a display.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Any, path: Path, note: str) -> None:
    if note:
        figure.supxlabel(note, fontsize=8.5, color="0.3", wrap=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
