"""Actions of a person on stored reviews, by command; noted in the audit log."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection

from tasks.store import audit
from tasks.store.database import Store, read_now


def record_import(conn: Connection, now: datetime, source: str, file: str, who: str) -> None:
    """Record that the reviews of a file are imported."""
    audit.record(conn, now, audit.Entry(who, "import reviews", source, {"file": file}))


def record_judging(store: Store, product: str | None, again: bool, who: str) -> None:
    """Record that stored reviews are judged again, all of them or those of a product."""
    with store.begin() as conn:
        entry = audit.Entry(who, "judge reviews", product or "all products", {"again": again})
        audit.record(conn, read_now(conn), entry)
