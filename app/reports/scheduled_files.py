"""The sweep `deliver`: make and send the reports and exports that are due. It does not hold the scheduler's lock."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from app.files.exporting import MEDIA_TYPES, pseudonymise_rows, whole_file, write_rows
from app.insight.periods import read_period
from app.sending.delivery import Sender, folder_of, send
from app.sending.parcel import Parcel
from app.views.moments import clock_text_with_zone, local_time
from app.views.words import describe, join_words, name_text, plural, switch_language, translate
from splitter.catalog.model import Catalog
from splitter.errors import ReviewloopError, system_reason
from tasks.store.queries.reviews import ReviewFilter, ReviewRow, list_reviews
from tasks.store.queue import schedules
from tasks.store.queue.schedules import Schedule, ScheduleKind
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction
from tasks.store.sql.writer import Operation
from tasks.worker.pseudonyms import Pseudonyms

log = logging.getLogger("reviewloop.schedules")

_MEDIA_TYPES: Mapping[str, str] = {
    **MEDIA_TYPES,
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
}
_TITLES: Mapping[ScheduleKind, str] = {
    ScheduleKind.REPORT: "What buyers complain about",
    ScheduleKind.FAILED_REPORT: "What waits for a person",
    ScheduleKind.EXPORT: "Export of reviews",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryTools:
    """Settings and functions to make and send files.

    Attributes:
        catalog, pseudonyms, sender: functions that return the object when a file needs it; each may raise InputError.
        language: language code of texts; `None` for the language of the person who made the schedule.
        address: public address of the dashboard for links in reports; empty if there is none.
    """

    catalog: Callable[[], Catalog]
    pseudonyms: Callable[[], Pseudonyms | None]
    sender: Callable[[], Sender]
    language: str | None = None
    address: str = ""


def deliver_due(
    tools: DeliveryTools,
    store: Store,
    write: Callable[[Operation[Any]], Any],
    goes_on: Callable[[], bool] = lambda: True,
    only: int | None = None,
) -> list[tuple[Schedule, str]]:
    """Make and send each report and export that is due. If several processes do this, each file is sent only once.

    Args:
        write: runs an operation in a transaction and waits until it is committed (not on an event loop).
        goes_on: called before each file and during sending; delivery stops when it returns False.
        only: number of the only schedule to deliver; `None` for all.

    Returns:
        The schedules that were run, each with the reason of its failure, or an empty text.
    """
    done: list[tuple[Schedule, str]] = []
    while goes_on() and (taken := write(lambda tx: schedules.claim_due(tx, only))) is not None:
        problem = ""
        try:
            with switch_language(tools.language or taken.options.get("lang", "en")):
                problem = _try_to_deliver(tools, store, taken, goes_on)
        except Exception as error:
            log.exception("schedule %d failed", taken.id)
            problem = f"{type(error).__name__}: {error}"
        write(partial(_end_run, taken=taken, problem=problem))
        done.append((taken, problem))
    return done


def _end_run(tx: Transaction, *, taken: Schedule, problem: str) -> None:
    schedules.end_run(tx, taken, problem)


def _try_to_deliver(tools: DeliveryTools, store: Store, taken: Schedule, goes_on: Callable[[], bool]) -> str:
    """Make a file and send it. Return the reason of a failure in the current language; empty if the file was sent."""
    try:
        _deliver(tools, store, taken, goes_on)
    except (ReviewloopError, OSError) as error:
        log.warning("schedule %d (%s): %s", taken.id, taken.kind, error)
        if not isinstance(error, OSError):
            return describe(error)
        reason = describe(system_reason(error))
        return name_text(error.filename, reason) if error.filename else reason
    return ""


def _deliver(tools: DeliveryTools, store: Store, taken: Schedule, goes_on: Callable[[], bool]) -> None:
    """Make a file and send it. Raises ReviewloopError or OSError."""
    kind, form, to = taken.kind, taken.options["format"], taken.options["to"]
    with TemporaryDirectory(prefix="reviewloop-") as own:
        folder = folder_of(to)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with store.read() as tx:
            now = tx.now
            path = (folder or Path(own)) / f"{kind}-{taken.id}-{local_time(now):%Y%m%d-%H%M%S}.{form}"
            with whole_file(path) as out:
                said = _write(tx, tools, taken, out)
        if folder is not None:
            return
        title = translate(_TITLES[kind])
        text = translate(
            "{title}: {contents}.\nProducts: {products}. As of {at}, by schedule {n}.\n",
            title=title,
            contents=said,
            products=join_words(taken.options.get("products", ())) or translate("all"),
            at=clock_text_with_zone(now),
            n=taken.id,
        )
        parcel = Parcel(
            path=path,
            media_type=_MEDIA_TYPES[form],
            kind=str(kind),
            subject=f"{title} · {clock_text_with_zone(now)}",
            text=text,
        )
        send(parcel, to, tools.sender(), private=bool(taken.options.get("private")), goes_on=goes_on)


def _write(tx: Transaction, tools: DeliveryTools, taken: Schedule, out: IO[bytes]) -> str:
    """Write the file of a schedule to `out`, and return the text of the message that accompanies it."""
    names, form = tuple(taken.options.get("products", ())), taken.options["format"]
    if taken.kind is ScheduleKind.EXPORT:
        rows = pseudonymise_rows(list_reviews(tx, ReviewFilter(products=names)), tools.pseudonyms())
        return plural("{n:,} row", "{n:,} rows", write_rows(rows, ReviewRow, form, out))
    if taken.kind is ScheduleKind.FAILED_REPORT:
        from app.reports.failed_report import write_failed_report  # brings Jinja2

        return plural("{n:,} subtask waits", "{n:,} subtasks wait", write_failed_report(tx, form, out))
    from app.reports.report import report

    days = read_period(taken.options.get("days"), None, None).find(local_time(tx.now).date())
    out.write(report(tx, tools.catalog(), names, days, tools.address).encode(errors="replace"))
    return translate("the file is attached")
