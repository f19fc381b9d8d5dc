"""The failed-task report: what waits for a person, grouped by cause, with what is suggested."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from tasks.store import reports
from tasks.store.database import Store, read_now
from tasks.store.reports import FailedRow


def as_text(rows: Sequence[FailedRow], when: str) -> str:
    """The report as Markdown."""
    lines = [f"# Subtasks that wait for a person: {len(rows)} at {when}", ""]
    for (reason, site), group in groupby(rows, key=lambda r: (r.reason, r.site)):
        of_cause = list(group)
        lines += [f"## {reason}: {site} ({len(of_cause)})", "", f"Suggested: {of_cause[0].suggestion}.", ""]
        lines += [
            f"- subtask {r.subtask_id}: {r.product}, chunk {r.chunk}, {r.attempts} attempts on "
            f"{', '.join(r.nodes) or 'no node'}; {r.why}"
            for r in of_cause
        ]
        lines.append("")
    return "\n".join(lines)


def write_report(store: Store, file: str) -> None:
    """Write the report, whole or not at all."""
    with store.read() as conn:
        text = as_text(reports.waiting_for_a_person(conn), read_now(conn).isoformat(timespec="seconds"))
    path = Path(file)
    draft = path.with_name(path.name + ".new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
