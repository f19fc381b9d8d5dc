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
    """The collected reviews in the order they were stored, a row for each (review, product), streamed.

    Args:
        db: as `--db` of the commands; None: as they find it in this folder.
        products: only of these, by exact name; empty: all.
        sites: only of these; empty: all.
        since: only those collected at this time (aware) or later.
        day_from, day_to: only those that were written on one of these days; undated reviews are outside.
        voices: only these: complaint, praise, question, news, company, other; empty: all, and those not judged.

    Yields:
        A dict with the columns of `reviewloop export reviews`: texts, numbers, days and aware times, `None` if
        it is not known.

    Raises:
        InputError: there is no such store, or no product or voice of a name, or the days are in the wrong order.
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
