"""``reviewloop chaos``: faults on a real local cluster, and whether anything is lost, doubled or stalled."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.options import FOLDER, json_option
from app.cli.output import make_console, print_json, say
from splitter.errors import InputError

if TYPE_CHECKING:
    from research.chaos.report import Report

_MOST_KILLS = 100_000
_MOST_NODES = 20


@click.command()
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the faults.")
@click.option(
    "--kills", type=click.IntRange(1, _MOST_KILLS), default=40, show_default=True, help="Number of faults."
)
@click.option(
    "--nodes",
    type=click.IntRange(2, _MOST_NODES),
    default=3,
    show_default=True,
    help="Number of crawl nodes.",
)
@click.option("--only", multiple=True, metavar="KIND", help="Only faults of this kind. Repeatable.")
@click.option("--data", type=FOLDER, help="Folder of the run. Default: a new one in the temporary folder.")
@json_option
def chaos(
    seed: int,
    kills: int,
    nodes: int,
    only: tuple[str, ...],
    data: Path | None,
    as_json: bool,
) -> None:
    """Test a real cluster on this machine with faults.

    Starts a lab, PostgreSQL, Redis, two control workers, two beats and the nodes, each behind connections
    that can be broken. Faults are drawn by the seed and come one after the other; after each, the rest
    has to continue within 20 s. At the end all work is done, `verify` looks for violations, and the
    stored pages are compared with a run of the same world without faults. It uses loopback only and ends
    only what it started. 40 faults take about a quarter of an hour. Exit status 1: a violation, something
    missing or doubled, a stall, or an interruption. See docs/cluster.md.

    \b
    Examples:
      reviewloop chaos --seed 7 --kills 40
      reviewloop chaos --kills 4 --only "kill node" --only "freeze postgres"
      reviewloop chaos --data night --kills 100
    """
    # Slow to import; a wrong option should be refused at once.
    from research.chaos.faults import FaultKind
    from research.chaos.run import run

    known = [str(kind) for kind in FaultKind]
    for kind in only:
        if kind not in known:
            raise InputError(f"there is no fault {kind!r}; there is {', '.join(known)}")
    kinds = [FaultKind(kind) for kind in only or known]
    folder = data or Path(tempfile.mkdtemp(prefix="reviewloop-chaos-"))
    report = run(folder, say, seed=seed, kills=kills, nodes=nodes, kinds=kinds)
    if as_json:
        print_json(report.document())
    else:
        _print(report)
    if not report.clean:
        say(f"Logs and data are in {folder}")
        sys.exit(1)
    if data is None:
        shutil.rmtree(folder)


def _print(report: Report) -> None:
    out = make_console()
    lines = [f"{violation['kind']}: {violation['message']}" for violation in report.violations]
    lines += report.differences
    lines += [
        f"stall after fault {fault.no}, {fault.kind} {fault.target}: {fault.stalled}"
        for fault in report.faults
        if fault.stalled is not None
    ]
    for line in lines:
        out.print(f"  {line}", style="red")
    counts = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.counts.items())
    out.print(
        f"  {len(report.faults)} faults, {report.seconds:.0f} s: {len(report.violations)} violations, "
        f"{report.missing} missing, {report.doubled} doubled, {report.stalls} stalls ({counts})",
        style="green" if report.clean else "red",
    )
    if not report.finished:
        say("The run did not get to its end.")
