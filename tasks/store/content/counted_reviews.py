"""Rows of `review_days` and `review_themes`: reviews by product and day, as they are counted.

Both tables follow from `reviews` and `page_products`, and change with them in the same transaction. They are narrow and
clustered by product, so that a query that counts reads no text. Of equal texts (`reviews.same_as`), a product has
only the first one. Reviews of a product that is counted as another one (`products.counted_as`) are rows of that one.
Themes are those of buyers. A person's correction wins over voice and themes; a review that does not count for a
product (`corrections.left_out`) has the voice `LEFT_OUT` there, and no themes.

After an upgrade, the sweep `counts` adds the rows of older reviews (`fill`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from tasks.domain.verdicts import Verdict
from tasks.domain.voices import Voice
from tasks.store.content.corrections import JOIN, VOICE, left_out
from tasks.store.queue.upkeep import load_value, store_value
from tasks.store.sql.database import try_lock
from tasks.store.sql.transaction import Transaction

NO_DAY = -1
"""The day of a review whose date could not be read. Days are numbered from 1970-01-01 on."""
LEFT_OUT = "left_out"
"""The voice of a review that does not count for a product."""
FILLED_AT_ONCE = 1_000
"""Reviews of a step of `fill`: some 10 ms, which SQLite's other writers wait for."""
STEPS_AT_ONCE = 12
"""Steps of a sweep: a million reviews take 7 minutes."""
_FILLING = "counted_reviews"
_LOCK_S = 2.0
_AT_ONCE = 1_000
"""Numbers of reviews in one statement."""


class _Dialect(NamedTuple):
    """Expressions that SQLite and PostgreSQL write in different ways.

    Attributes:
        day: number of a review's day.
        themes: what makes a row `t` of each theme of a review, if its column holds a list of lists, and of a person's
            theme a row `m` with the model's quote, if the model found that theme as well.
        sentiment: of such a row, whatever is in the column.
        list: the aggregate function that makes a JSON list of the values of rows.
    """

    day: str
    themes: str
    sentiment: str
    list: str


_DIALECTS = {
    True: _Dialect(
        f"coalesce(CAST(julianday(r.day) - 2440587.5 AS integer), {NO_DAY})",
        """json_each(CASE WHEN json_valid(coalesce(c.themes, r.themes)) THEN coalesce(c.themes, r.themes) END) t
            ON t.type = 'array'
            LEFT JOIN json_each(CASE WHEN c.themes IS NOT NULL AND json_valid(r.themes) THEN r.themes END) m
            ON CASE m.type WHEN 'array' THEN m.value ->> 0 END = t.value ->> 0""",
        "CAST(CASE t.type WHEN 'array' THEN t.value ->> 1 END AS integer)",
        "json_group_array",
    ),
    False: _Dialect(
        f"coalesce(r.day - DATE '1970-01-01', {NO_DAY})",
        """jsonb_array_elements(
                CASE WHEN jsonb_typeof(coalesce(c.themes, r.themes)) = 'array' THEN coalesce(c.themes, r.themes) END
            ) t ON jsonb_typeof(t.value) = 'array'
            LEFT JOIN jsonb_array_elements(
                CASE WHEN c.themes IS NOT NULL AND jsonb_typeof(r.themes) = 'array' THEN r.themes END
            ) m ON m.value ->> 0 = t.value ->> 0""",
        "CAST(t.value ->> 1 AS integer)",
        "jsonb_agg",
    ),
}

DAY_COLUMNS = ("product_id", "day", "site", "voice", "review_id")
THEME_COLUMNS = ("product_id", "theme", "day", "site", "review_id")
QUOTE_COLUMNS = ("quote_from", "quote_to", "sentiment")

_COUNTED_PRODUCT = "coalesce(p.counted_as, p.id)"
# A review that does not count for one product counts for another one of the page that is counted as the same.
IS_SHOWN = f"""
    l.verdict = '{Verdict.REVIEW}' AND r.refused IS NULL AND NOT EXISTS (
        SELECT 1 FROM page_products k JOIN products o ON o.id = k.product_id
        WHERE k.page_id = l.page_id AND k.product_id <> l.product_id AND k.verdict = '{Verdict.REVIEW}'
            AND coalesce(o.counted_as, o.id) = {_COUNTED_PRODUCT}
            AND {left_out()} IS NOT NULL AND {left_out(product_id="k.product_id")} IS NULL
    )
"""
# `+` keeps SQLite from walking through all earlier reviews.
IS_FIRST = f"""
    (r.same_as IS NULL OR NOT EXISTS (
        SELECT 1 FROM reviews e JOIN page_products k ON k.page_id = e.page_id AND k.verdict = '{Verdict.REVIEW}'
        JOIN products o ON o.id = k.product_id LEFT JOIN corrections d ON d.id = e.correction_id
        WHERE coalesce(o.counted_as, o.id) = {_COUNTED_PRODUCT} AND e.refused IS NULL AND +e.id < r.id
            AND (e.id = r.same_as OR e.same_as = r.same_as)
            AND ({left_out("e", "d", "k.product_id")} IS NULL) = ({left_out()} IS NULL)
    ))
"""
IS_BUYERS = f"coalesce({VOICE}, '') IN ('{Voice.COMPLAINT}', '{Voice.PRAISE}')"
IS_COUNTED = f"{left_out()} IS NULL"
QUOTED = "coalesce(m.value, t.value)"
"""The theme of a review with its clause: of a person's theme the model's one, if the model found it as well."""
_LINKED = f"""
    reviews r JOIN page_products l ON l.page_id = r.page_id JOIN products p ON p.id = l.product_id {JOIN}
"""
_COUNTED_VOICE = f"CASE WHEN {left_out()} IS NULL THEN coalesce({VOICE}, '') ELSE '{LEFT_OUT}' END"


def write_day(*, sqlite: bool) -> str:
    """Return the expression for the number of the day of the review `r`."""
    return _DIALECTS[sqlite].day


def select_days(*, sqlite: bool) -> str:
    """Return the query for the rows that `review_days` may have, of each review and each product of its page.

    A condition follows: `IS_SHOWN` and `IS_FIRST` hold for those that it has. `IS_BUYERS` and `IS_COUNTED` hold for
    those with themes.
    """
    day = _DIALECTS[sqlite].day
    return f"""
        SELECT {_COUNTED_PRODUCT} AS product_id, {day} AS day, r.site, {_COUNTED_VOICE} AS voice, r.id AS review_id
        FROM {_LINKED}
    """


def select_themes(*, sqlite: bool) -> str:
    """Return the query for the rows that `review_themes` may have, see `select_days`."""
    dialect = _DIALECTS[sqlite]
    return f"""
        SELECT {_COUNTED_PRODUCT} AS product_id, t.value ->> 0 AS theme, {dialect.day} AS day, r.site,
            r.id AS review_id, CAST({QUOTED} ->> 2 AS integer) AS quote_from,
            CAST({QUOTED} ->> 3 AS integer) AS quote_to, {dialect.sentiment} AS sentiment
        FROM {_LINKED} JOIN {dialect.themes}
    """


def list_complained(value: str, *, sqlite: bool) -> str:
    """Return the expression for a list: a value of each theme that the review `r` of a buyer complains about.

    It is null if there is none.

    Args:
        value: SQL over the theme `t.value` or `QUOTED`, the review `r` and its correction `c`.
    """
    dialect = _DIALECTS[sqlite]
    return f"""
        CASE WHEN coalesce(c.themes, r.themes) IS NOT NULL AND {IS_BUYERS} THEN (
            SELECT CASE WHEN count(*) > 0 THEN {dialect.list}({value}) END FROM (SELECT 1) one JOIN {dialect.themes}
            WHERE {dialect.sentiment} = -1
        ) END
    """


def add_pages(tx: Transaction, page_ids: Collection[int], *, after: int = 0) -> None:
    """Add the rows of the reviews of pages; only of those with numbers above `after`."""
    if page_ids:
        _add(tx, "r.page_id IN :pages AND +r.id > :after", tx.later, pages=page_ids, after=after)


def _add(tx: Transaction, condition: str, send: Callable[..., object], **values: object) -> None:
    """Add the rows of reviews that have none yet.

    Args:
        send: `later` or `run` of the transaction.
    """
    days = f"{select_days(sqlite=tx.is_sqlite)} WHERE {condition} AND {IS_SHOWN} AND {IS_FIRST}"
    tx.later(_insert("review_days", DAY_COLUMNS, days), **values)
    has_themes = f"{IS_BUYERS} AND {IS_COUNTED} AND {IS_SHOWN} AND {IS_FIRST}"
    themes = f"{select_themes(sqlite=tx.is_sqlite)} WHERE {condition} AND {has_themes}"
    send(_insert("review_themes", (*THEME_COLUMNS, *QUOTE_COLUMNS), themes), **values)


def _insert(table: str, columns: Sequence[str], query: str) -> str:
    return f"INSERT INTO {table} ({', '.join(columns)}) {query} ON CONFLICT DO NOTHING"


@contextmanager
def recount(tx: Transaction, *, pages: Collection[int] = (), reviews: Collection[int] = ()) -> Iterator[None]:
    """Take out the rows of reviews that change within the context, and add them again as they are at its end.

    The equal texts of these reviews change with them: another one may be a product's first.

    Args:
        pages: whose reviews and links change.
        reviews: that change.
    """
    affected = _lock_affected(tx, pages, reviews)
    # PostgreSQL must answer in time to all statements that are sent together.
    send = tx.later if len(affected) == 1 else tx.run
    for some in affected:
        tx.later(_delete("review_days", DAY_COLUMNS, select_days(sqlite=tx.is_sqlite)), ids=some)
        send(_delete("review_themes", THEME_COLUMNS, select_themes(sqlite=tx.is_sqlite)), ids=some)
    yield
    add_pages(tx, pages)
    for some in affected:
        _add(tx, "r.id IN :ids", send, ids=some)


def _delete(table: str, columns: Sequence[str], query: str) -> str:
    names = ", ".join(columns)
    return f"DELETE FROM {table} WHERE ({names}) IN (SELECT {names} FROM ({query} WHERE r.id IN :ids) old)"


def _lock_affected(tx: Transaction, pages: Collection[int], reviews: Collection[int]) -> list[Sequence[int]]:
    """Lock reviews with the ones that equal them, and return their numbers, at most `_AT_ONCE` in a list."""
    found: list[tuple[int, int | None]] = []
    if pages:
        found += tx.rows("SELECT id, same_as FROM reviews WHERE page_id IN :pages", pages=pages)
    for some in _parts(sorted(set(reviews))):
        found += tx.rows("SELECT id, same_as FROM reviews WHERE id IN :ids", ids=some)
    numbers = {number for number, _ in found}
    originals = {number if same_as is None else same_as for number, same_as in found}
    for some in _parts(sorted(originals)):
        numbers |= {number for (number,) in tx.rows("SELECT id FROM reviews WHERE same_as IN :ids", ids=some)}
    affected = _parts(sorted(numbers | originals))
    for some in affected:
        tx.later("SELECT id FROM reviews WHERE id IN :ids ORDER BY id FOR NO KEY UPDATE", ids=some)
    return affected


def refresh_statistics(tx: Transaction) -> None:
    """Let PostgreSQL see now how many reviews there are, not when it looks again by itself, which is once a minute.

    Until then it plans for few rows, and the time of a recount grows with the square of the number of reviews.
    """
    if not tx.is_sqlite:
        tx.later("ANALYZE products, pages, page_products, reviews, review_days, review_themes")


def _parts(numbers: Sequence[int]) -> list[Sequence[int]]:
    return [numbers[at : at + _AT_ONCE] for at in range(0, len(numbers), _AT_ONCE)]


@contextmanager
def recount_products(tx: Transaction, product_ids: Collection[int]) -> Iterator[None]:
    """Count the reviews of products again, as `recount` does. Until the end, no other transaction stores any."""
    tx.later("SELECT id FROM products WHERE id IN :ids ORDER BY id FOR UPDATE", ids=product_ids)
    tx.later(_LOCK_PAGES, ids=product_ids)
    with recount(tx, reviews=[number for (number,) in tx.rows(_REVIEWS_OF, ids=product_ids)]):
        yield


_LOCK_PAGES = """
    SELECT id FROM pages WHERE id IN (SELECT page_id FROM page_products WHERE product_id IN :ids) ORDER BY id
    FOR NO KEY UPDATE
"""
_REVIEWS_OF = """
    SELECT r.id FROM page_products l JOIN reviews r ON r.page_id = l.page_id WHERE l.product_id IN :ids
"""


# --- older reviews, after an upgrade -------------------------------------------------------------------------


def get_unfilled(tx: Transaction) -> tuple[int, int]:
    """Return the range of numbers of reviews whose rows are still to be added: behind the first, up to the second."""
    mark = load_value(tx, _FILLING)
    return (0, 0) if mark is None else (mark.data["after"], mark.data["upto"])


def get_filled_share(tx: Transaction) -> float:
    """Return the share of the older reviews, 0 to 1, whose rows are there; 1 if there are no older ones."""
    after, upto = get_unfilled(tx)
    return after / upto if upto else 1.0


def fill(tx: Transaction, most: int = FILLED_AT_ONCE) -> bool:
    """Add the rows of the next older reviews; False if there are none left, or another process is adding them."""
    if not try_lock(tx, _FILLING, _LOCK_S):
        return False
    after, upto = get_unfilled(tx)
    numbers = [one for (one,) in tx.rows(_NEXT_UNFILLED, after=after, upto=upto, most=most)]
    if numbers:
        _add(tx, "r.id IN :ids", tx.later, ids=numbers)
        store_value(tx, _FILLING, tx.now, {"after": numbers[-1], "upto": upto})
    elif upto:
        tx.later("DELETE FROM stored_values WHERE name = :name", name=_FILLING)
    return bool(numbers)


_NEXT_UNFILLED = """
    SELECT id FROM reviews WHERE id > :after AND id <= :upto ORDER BY id LIMIT :most FOR NO KEY UPDATE
"""
