"""Write the report on subtasks that wait for a person: by cause, with attempts, last response and suggestion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import IO

from app.files.exporting import write_rows
from app.files.harmless import one_line, shown
from app.reports.report import page
from app.views.failed import get_cause
from app.views.moments import clock_text_with_zone
from app.views.words import describe, join_words, name_text, plural, translate
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queue import manual
from tasks.store.queue.manual import ManualRow
from tasks.store.sql.transaction import Transaction

FORMATS = {".html": "html", ".md": "md", ".csv": "csv", ".xlsx": "xlsx"}
"""Formats by the ending of a file name."""

_HEAD = 400
"""Maximum number of characters shown of a response."""
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~!&])")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """An attempt of a subtask that waits for a person, with data about the subtask.

    Attributes:
        no: number of the attempt; 0 if the subtask has no attempts.
        last_url, last_status, last_error, last_head: URL, status, error and beginning of the last response.
    """

    reason: str
    site: str
    subtask: int
    product: str
    why: str
    suggestion: str
    no: int = 0
    node: str | None = None
    allocated_at: datetime | None = None
    ended: str | None = None
    requests: int | None = None
    collected: int | None = None
    errors: str | None = None
    last_url: str | None = None
    last_status: int | None = None
    last_error: str | None = None
    last_head: str | None = None


def _find_attempts(tx: Transaction, row: ManualRow) -> Iterator[FailedAttempt]:
    """Yield all attempts of a subtask. If there are none, yield a row with number 0."""
    untried = FailedAttempt(
        reason=row.reason,
        site=row.site,
        subtask=row.subtask_id,
        product=row.product,
        why=row.why,
        suggestion=row.suggestion,
    )
    attempts = subtask_queries.list_attempts(tx, row.subtask_id)
    if not attempts:
        yield untried
    for one in attempts:
        last = one.last_response or {}
        yield replace(
            untried,
            no=one.no,
            node=one.node,
            allocated_at=one.allocated_at,
            ended=one.reason or one.outcome,
            requests=one.requests,
            collected=one.collected,
            errors=join_words(f"{n} × {translate(name)}" for name, n in one.errors.items()) or None,
            last_url=last.get("url"),
            last_status=last.get("status"),
            last_error=last.get("error"),
            last_head=(last.get("head") or "")[:_HEAD] or None,
        )


def write_failed_report(tx: Transaction, form: str, out: IO[bytes]) -> int:
    """Write the report, and return the number of subtasks in it.

    Args:
        form: file format, one of `FORMATS`.
    """
    waiting = sorted(manual.list_manual(tx), key=get_cause)
    stories = [(row, list(_find_attempts(tx, row))) for row in waiting]
    if form in ("csv", "xlsx"):
        write_rows((one for _, attempts in stories for one in attempts), FailedAttempt, form, out)
        return len(waiting)
    causes = [
        (reason, site, [(row, [one for one in attempts if one.no]) for row, attempts in of])
        for (reason, site), of in groupby(stories, key=lambda story: get_cause(story[0]))
    ]
    at = clock_text_with_zone(tx.now)
    if form == "html":
        text = page("failed_report.html", at=at, causes=causes, total=len(waiting))
    else:
        text = "\n".join(_markdown(at, causes, len(waiting))) + "\n"
    out.write(text.encode(errors="replace"))
    return len(waiting)


Cause = tuple[str, str, list[tuple[ManualRow, list[FailedAttempt]]]]
"""Reason, site, and the subtasks with their attempts."""


def _markdown(at: str, causes: Iterable[Cause], total: int) -> Iterator[str]:
    yield "# " + plural(
        "{n} subtask waits for a person at {at}", "{n} subtasks wait for a person at {at}", total, at=at
    )
    for reason, site, of in causes:
        suggestion = translate("Suggested: {suggestion}", suggestion=translate(of[0][0].suggestion))
        name = name_text(_plain(translate(reason)), _plain(site))
        heading = translate("{name} ({why})", name=name, why=len(of))
        yield f"\n## {heading}\n\n{_plain(suggestion)}"
        for row, attempts in of:
            subtask = translate("Subtask {n}", n=row.subtask_id)
            why = describe(row.because or "")
            yield f"\n### {name_text(subtask, _plain(row.product))}\n\n{_plain(why)}\n"
            for one in attempts:
                yield "- " + translate(
                    "attempt {no} on {node}: {outcome}, requests: {requests}, pages: {pages}; errors: {errors}",
                    no=one.no,
                    node=_plain(one.node or ""),
                    outcome=_plain(translate(one.ended or "runs")),
                    requests=one.requests,
                    pages=one.collected,
                    errors=_plain(one.errors or "-"),
                )
                if one.last_url:
                    error = _plain(translate(one.last_error or ""))
                    yield f"  - {translate('Last response:')} {one.last_status or ''} {error} {_plain(one.last_url)}"
                if one.last_head:
                    yield f"  - {_plain(' '.join(one.last_head.split()))}"


def _plain(text: str) -> str:
    """Escape a text from the web so that Markdown shows it unchanged."""
    return _MARKS.sub(r"\\\1", one_line(shown(text)))
