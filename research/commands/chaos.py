"""``reviewloop chaos``: faults on a real local cluster, and whether anything is lost, doubled or stalled."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from app.cli.options import FOLDER, json_option
from app.cli.output import print_json, printed, say, table
from app.run.setting_fields import Settings
from app.views.durations import seconds
from splitter.errors import InputError

if TYPE_CHECKING:
    from research.chaos.records import Report

_MOST_KILLS = 100_000
_MOST_NODES = 20


@click.command()
@click.option("--seed", type=int, help="Of the faults. Default: 1.")
@click.option("--kills", type=click.IntRange(1, _MOST_KILLS), help="How many faults. Default: 40.")
@click.option("--nodes", type=click.IntRange(2, _MOST_NODES), help="Crawl nodes. Default: 3.")
@click.option("--only", multiple=True, metavar="KIND", help="Only faults of this kind; repeatable.")
@click.option("--data", type=FOLDER, help="Folder of the run. Default: a new one in the temporary folder.")
@click.option(
    "--resume",
    type=FOLDER,
    metavar="FOLDER",
    help="Go on with the run in this folder; --kills may ask for more.",
)
@json_option
def chaos(
    seed: int | None,
    kills: int | None,
    nodes: int | None,
    only: tuple[str, ...],
    data: Path | None,
    resume: Path | None,
    as_json: bool,
) -> None:
    """Try a real cluster on this machine with faults.

    A lab, PostgreSQL, Redis, two control workers, two beats and the nodes, each behind connections of its own that
    can be spoiled. Faults come one after the other, drawn by the seed; after each the others have to go on within
    20 s. At the end all work is done, `verify` looks for violations, and what is stored is compared with a calm run
    of the same world. Loopback only; it ends only what it started. 40 faults take about a quarter of an hour.
    Exit status 1: a violation, something missing or doubled, a stall, or an interruption. docs/cluster.md.

    \b
    Examples:
      reviewloop chaos --seed 7 --kills 40
      reviewloop chaos --kills 4 --only "kill node" --only "freeze postgres"
      reviewloop chaos --data night --kills 100
      reviewloop chaos --resume night --kills 1000 --json > night.json
    """
    # Slow to import; a wrong option should be refused at once.
    from research.chaos.faults import FaultKind
    from research.chaos.records import Session
    from research.chaos.run import run

    if resume is not None:
        if seed is not None or nodes is not None or only or data is not None:
            raise InputError(
                "--resume goes on with the seed, nodes, kinds and folder of its run: leave these away"
            )
        session = Session.read(resume / "chaos.json")
        session.kills = max(kills or 0, session.kills)
    else:
        known = [str(kind) for kind in FaultKind]
        for kind in only:
            if kind not in known:
                raise InputError(f"there is no fault {kind!r}; there is {', '.join(known)}")
        session = Session(
            seed=1 if seed is None else seed, kills=kills or 40, nodes=nodes or 3, kinds=list(only) or known
        )
    folder = resume or data
    own = Path(tempfile.mkdtemp(prefix="reviewloop-chaos-")) if folder is None else None
    if data is not None and (data / "chaos.json").exists():
        raise InputError(f"{data} holds a run already: go on with --resume {data}, or name another folder")
    # The environment has no say: what is tried is this machine's own, and nothing else.
    report = run(Settings(), session, own or folder or Path(), say)
    if as_json:
        print_json(report.document())
    else:
        _print(report)
    if own is not None and report.clean:
        shutil.rmtree(own)
    elif not report.clean:
        say(f"Logs and data are in {own or folder}")
    if not report.clean:
        sys.exit(1)


def _print(report: Report) -> None:
    from research.chaos.records import costs

    out = printed()
    rows = (
        (
            cost.kind,
            cost.faults,
            seconds(cost.first_median_s),
            seconds(cost.first_most_s),
            seconds(cost.standstill_median_s),
            seconds(cost.standstill_most_s),
            cost.stalls,
        )
        for cost in costs(report.session.records)
    )
    heads = ("fault", "times", "goes on after", "at most", "stood still", "at most ", "stalls")
    out.print(table(heads, rows, "What each kind of fault cost: medians, and the worst"))
    for violation in report.violations:
        out.print(f"  {violation['kind']}: {violation['message']}", style="red")
    for line in report.differences:
        out.print(f"  {line}", style="red")
    for record in report.session.records:
        if record.stalled is not None:
            out.print(
                f"  stall after fault {record.no}, {record.kind} {record.target}: {record.stalled}",
                style="red",
            )
    counts = ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in report.counts.items())
    out.print(
        f"  {len(report.session.records)} faults, {report.session.seconds:.0f} s: {len(report.violations)} violations, "
        f"{report.missing} missing, {report.doubled} doubled, {report.stalls} stalls ({counts})",
        style="green" if report.clean else "red",
    )
    if not report.finished:
        say("The run did not get to its end: go on with --resume FOLDER.")
