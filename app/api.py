"""The Python interface of reviewloop: the collected reviews as rows.

import pandas
from app.api import reviews
table = pandas.DataFrame(reviews("sqlite:///reviewloop.db", products=["特仑苏"]))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date, datetime
from typing import Any

from app.cli.options import settings_of, store_there
from app.insight.periods import ALL, read_period
from tasks.domain.voices import voices_of
from tasks.store.queries.reviews import ReviewFilter, list_reviews


def reviews(
    db: str | None = None,
    *,
    products: Sequence[str] = (),
    sites: Sequence[str] = (),
    since: datetime | None = None,
    day_from: date | None = None,
    day_to: date | None = None,
    voices: Sequence[str] = (),
) -> Iterator[dict[str, Any]]:
    """Yield the collected reviews in the order of their storage, a row for each (review, product).

    Rows are read while they are used, so memory does not grow with their number.

    Args:
        db: database, as in the option `--db` of commands; `None` for the one that commands use in this folder.
        products: exact names of products; empty for all.
        sites: names of sites; empty for all.
        since: aware time. Only reviews collected at this time or later are returned; `None` for all.
        day_from, day_to: first and last day of writing. If one is given, undated reviews are left out.
        voices: any of complaint, praise, question, news, company, other. Empty for all, including reviews not judged.

    Yields:
        A dict with the columns of `reviewloop export reviews`: texts, numbers, days and aware times, `None` if
        a value is unknown.

    Raises:
        InputError: the store does not exist, a product or voice is unknown, or the days are in the wrong order.
        DatabaseUnusable, WrongRevision: the store can't be read.
    """
    days = read_period(None, day_from, day_to, ALL)
    wanted = ReviewFilter(
        products=tuple(products),
        sites=tuple(sites),
        since=since,
        day_from=days.first,
        day_to=days.last,
        voices=voices_of(voices),
    )
    with store_there(settings_of(db)) as store, store.read() as tx:
        for row in list_reviews(tx, wanted):
            yield asdict(row)
