"""Flat rows of the store: one place for each thing"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from tasks.domain.errors import WrongRevision

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_STATES = ("PRIORITY", "WAIT", "CRAWL", "SLEEP", "FAILED", "MANUAL", "DONE", "CANCELLED")
_KINDS = ("meta", "microblog")
_REASONS = (
    "not_started",
    "silent",
    "host_unreachable",
    "blocked",
    "nothing_stored",
    "result_page_broken",
    "bad_rule",
    "robots",
    "bad_url",
    "node_error",
    "unknown_site",
    "unreadable",
)
_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Each function changes the tables of one subject."""
    _check_values()
    _keep_refused_records()
    _store_values_by_name()
    _join_added_nodes()
    _store_numbers_of_pages()
    _log_result_pages()
    _number_links()
    _divide_waits()
    _constrain_values()
    op.drop_table("import_sources")  # the columns that people named for a source
    _say_what_events_set()


def _store_values_by_name() -> None:
    """One table for marks of sweeps and the trained model; a scheduler measures again what it measured."""
    columns = (
        sa.Column("name", sa.String(60), primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data", _JSON, nullable=False),
    )
    stored = op.create_table("stored_values", *columns)
    conn, now = op.get_bind(), datetime.now(UTC)
    rows = []
    for name, last_id in conn.execute(
        sa.text("SELECT sweep, last_id FROM sweep_marks WHERE sweep <> 'bridged'")
    ):
        if name == "looked":  # milliseconds since 1970
            rows.append({"name": name, "at": datetime.fromtimestamp(last_id / 1000, UTC), "data": {}})
        else:
            rows.append({"name": name, "at": now, "data": {"last_id": last_id}})
    model = sa.table(
        "run_time_model",
        sa.column("trained_at", sa.DateTime(timezone=True)),
        sa.column("newest_attempt"),
        sa.column("network", _JSON),
    )
    for row in conn.execute(sa.select(model)):
        data = {"newest_attempt": row.newest_attempt, "network": row.network}
        rows.append({"name": "run_time_model", "at": row.trained_at, "data": data})
    op.bulk_insert(stored, rows)
    for name in ("sweep_marks", "run_time_model", "measurements"):
        op.drop_table(name)


def _join_added_nodes() -> None:
    """A node that a person added is a row of `nodes`."""
    op.add_column("nodes", sa.Column("added_at", sa.DateTime(timezone=True)))
    op.add_column("nodes", sa.Column("chosen_slots", sa.Integer))
    op.add_column("nodes", sa.Column("proxy", sa.Text))
    op.execute(
        "INSERT INTO nodes (name, kinds, slots, registered_at) "
        "SELECT name, kinds, coalesce(slots, 4), added_at FROM added_nodes "
        "WHERE name NOT IN (SELECT name FROM nodes)"
    )
    op.execute(
        "UPDATE nodes SET kinds = a.kinds, address = a.address, added_at = a.added_at, chosen_slots = a.slots, "
        "proxy = a.proxy FROM added_nodes a WHERE a.name = nodes.name"
    )
    op.drop_table("added_nodes")


def _store_numbers_of_pages() -> None:
    """Store how many result pages a partition has, and how they are cut, instead of their URLs.

    The first chunk of a partition is its largest, but for a span: its first chunk is one page.
    """
    for name, default in (("pages", "0"), ("chunk_pages", "1"), ("asked_before", "0")):
        column = sa.Column(name, sa.Integer, nullable=False, server_default=sa.text(default))
        op.add_column("task_parts", column)
    conn = op.get_bind()
    newest = conn.execute(sa.text("SELECT coalesce(max(id), 0) FROM tasks")).scalar_one()
    for first in range(1, newest + 1, _AT_ONCE):
        _count_pages({"first": first, "last": first + _AT_ONCE - 1})
    op.drop_column("task_parts", "chunks")


def _count_pages(tasks: dict[str, int]) -> None:
    """Store the numbers of pages of the partitions of some tasks."""
    conn = op.get_bind()
    begun: dict[int, set[int]] = defaultdict(set)
    for part_id, chunk in conn.execute(sa.text(_BEGUN_CHUNKS), tasks):
        begun[part_id].add(chunk)
    rows: list[dict[str, int]] = []
    asked: set[str] = set()
    of_task = None
    for part in conn.execute(sa.text(_PARTS), tasks):
        if part.task_id != of_task:
            of_task, asked = part.task_id, set()
        chunks = json.loads(part.chunks)
        urls = [
            url
            for number, chunk in enumerate(chunks, part.first_chunk)
            if number in begun[part.id]
            for url in chunk
        ]
        row = {
            "key": part.id,
            "pages": sum(map(len, chunks)),
            "chunk_pages": max(map(len, chunks), default=1),
        }
        rows.append({**row, "asked_before": len(urls) - len(set(urls) - asked)})
        asked.update(urls)
    if rows:
        names = ("pages", "chunk_pages", "asked_before")
        parts_table = sa.table("task_parts", *map(sa.column, ("id", *names)))
        new: dict[str, sa.BindParameter[int]] = {name: sa.bindparam(name) for name in names}
        conn.execute(parts_table.update().where(parts_table.c.id == sa.bindparam("key")).values(new), rows)


_AT_ONCE = 1000
"""Tasks or pages whose rows are in memory at once."""
_BEGUN_CHUNKS = """
    SELECT part_id, chunk FROM subtasks WHERE parent_id IS NULL AND task_id BETWEEN :first AND :last
"""
_PARTS = """
    SELECT id, task_id, first_chunk, CAST(chunks AS TEXT) AS chunks FROM task_parts
    WHERE task_id BETWEEN :first AND :last ORDER BY task_id, id
"""


def _number_links() -> None:
    """A serial for links whose verdict becomes `review` later; those that are there came with their pages."""
    op.add_column(
        "page_products", sa.Column("serial", sa.BigInteger, nullable=False, server_default=sa.text("0"))
    )
    later = sa.text("serial > 0")
    op.create_index(
        "ix_page_products_serial", "page_products", ["serial"], sqlite_where=later, postgresql_where=later
    )


def _log_result_pages() -> None:
    """One row for each result page that is read from now on."""
    op.create_table(
        "result_pages",
        sa.Column("id", _ID, primary_key=True, autoincrement=True),
        sa.Column("product_id", _ID, sa.ForeignKey("products.id"), nullable=False),
        sa.Column("site", sa.String(255), nullable=False),
        sa.Column("engine", sa.String(100), nullable=False),
        sa.Column("part_id", _ID, sa.ForeignKey("task_parts.id"), nullable=False),
        sa.Column("node", sa.String(100), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("hits", sa.LargeBinary, nullable=False),
    )


def _divide_waits() -> None:
    """A wait was one text, such as "a.cn rests (forbidden)"; now it is a host and a reason."""
    op.add_column("subtasks", sa.Column("wait_host", sa.String(255)))
    op.add_column("subtasks", sa.Column("wait_reason", sa.String(40)))
    reasons = {"does not answer": "unreachable", "is asked as often as it may be": "no_permit"}
    conn = op.get_bind()
    found = conn.execute(
        sa.text("SELECT DISTINCT waits_for FROM subtasks WHERE waits_for IS NOT NULL")
    ).scalars()
    for text in found.all():
        host, _, words = text.partition(" ")
        reason = reasons.get(words) or words.removeprefix("rests (").removesuffix(")")
        statement = "UPDATE subtasks SET wait_host = :host, wait_reason = :reason WHERE waits_for = :text"
        conn.execute(sa.text(statement), {"host": host, "reason": reason, "text": text})
    op.drop_column("subtasks", "waits_for")


def _checks() -> dict[str, str]:
    """Return the conditions of the constraints of `subtasks` by name."""
    sqlite = op.get_bind().dialect.name == "sqlite"
    one_of = {"state": _STATES, "kind": _KINDS, "reason": _REASONS}
    conditions = {name: f"{name} IN ({', '.join(map(repr, values))})" for name, values in one_of.items()}
    conditions["failed"] = "state <> 'FAILED' OR reason IS NOT NULL"
    conditions["failed_on"] = f"{'json_type' if sqlite else 'jsonb_typeof'}(failed_on) = 'array'"
    return {f"ck_subtasks_{name}": condition for name, condition in conditions.items()}


def _check_values() -> None:
    """Refuse to upgrade a database with a value that no version of reviewloop wrote; nothing was changed then."""
    conn = op.get_bind()
    if conn.dialect.name == "sqlite":  # json_type fails on what is no JSON
        invalid = "SELECT id, failed_on FROM subtasks WHERE NOT json_valid(failed_on) ORDER BY id"
        _refuse("failed_on must be a list", conn.execute(sa.text(invalid)).all())
    for name, condition in _checks().items():
        column = "reason" if name == "ck_subtasks_failed" else name.removeprefix("ck_subtasks_")
        found = f"SELECT id, {column} FROM subtasks WHERE NOT ({condition}) ORDER BY id"
        _refuse(condition, conn.execute(sa.text(found)).all())


def _refuse(condition: str, rows: Sequence[Any]) -> None:
    if rows:
        listed = ", ".join(f"{number} ({value!r})" for number, value in rows[:5])
        raise WrongRevision(
            f"{len(rows)} rows of the table subtasks hold a value that no version of reviewloop wrote, and the new "
            f"version demands {condition}. By id (value): {listed}{', ...' if len(rows) > 5 else ''}. Nothing was "
            "changed: correct these rows by SQL, then upgrade again"
        )


def _constrain_values() -> None:
    """The database refuses a subtask that no sweep could read."""
    conn = op.get_bind()
    if conn.dialect.name != "sqlite":
        for name, condition in _checks().items():
            op.create_check_constraint(name, "subtasks", condition)
        return
    # SQLite adds no constraint to a table; its documentation says how to edit the text instead, which costs the same
    # for any number of rows: https://www.sqlite.org/lang_altertable.html#otheralter
    checks = "".join(f",\n\tCONSTRAINT {name} CHECK ({condition})" for name, condition in _checks().items())
    version = conn.exec_driver_sql("PRAGMA schema_version").scalar_one()
    text = conn.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'subtasks'").scalar_one()
    before, _, after = text.rpartition(")")
    conn.exec_driver_sql("PRAGMA writable_schema = ON")
    conn.exec_driver_sql(
        "UPDATE sqlite_master SET sql = ? WHERE type = 'table' AND name = 'subtasks'",
        (f"{before}{checks}){after}",),
    )
    conn.exec_driver_sql(f"PRAGMA schema_version = {version + 1}")
    conn.exec_driver_sql("PRAGMA writable_schema = RESET")


def _say_what_events_set() -> None:
    """Events say which columns they set; what older ones set is not known."""
    op.add_column("events", sa.Column("sets", _JSON))


def _keep_refused_records() -> None:
    """Make a row of `reviews` of each refused record, and of each one that was only counted a row without text."""
    op.add_column("reviews", sa.Column("refused", sa.String(20)))
    conn = op.get_bind()
    newest = conn.execute(sa.text("SELECT coalesce(max(id), 0) FROM pages")).scalar_one()
    for first in range(1, newest + 1, _AT_ONCE):
        pages = {"first": first, "last": first + _AT_ONCE - 1}
        records = conn.execute(sa.text(_REFUSED_RECORDS), pages).mappings().all()
        _insert_refused([{**one, "text_hash": _text_hash(one["body"])} for one in records])
        counted = conn.execute(sa.text(_COUNTED_RECORDS), pages).mappings().all()
        _insert_refused(
            [
                {**_NO_TEXT, **one, "key": f"{one['reason']} {place}"}
                for one in counted
                for place in range(one["n"] - one["there"])
            ]
        )
    # Of these pages texts are missing: they are read again if another product finds them.
    op.execute(
        """
        UPDATE pages SET content_hash = '', etag = NULL, last_modified = NULL WHERE id IN (
            SELECT page_id FROM reviews WHERE refused = 'wrong_product' AND body = ''
        )
        """
    )
    op.drop_table("refused_reviews")
    op.drop_table("page_refusals")
    op.execute("ALTER TABLE pages DROP COLUMN withheld")
    op.execute("ALTER TABLE page_products DROP COLUMN refused")
    for name in ("ix_reviews_voice", "ix_reviews_text_hash"):
        op.drop_index(name, "reviews")
    for name, table, columns, rows in (
        ("ix_reviews_text_hash", "reviews", ["text_hash"], "refused IS NULL"),
        ("ix_reviews_voice_refused", "reviews", ["voice", "refused"], "refused IS NULL"),
        ("ix_reviews_refused_page_id", "reviews", ["refused", "page_id"], "refused IS NOT NULL"),
        ("ix_reviews_refused_texts", "reviews", ["collected_at"], "refused IS NOT NULL AND body <> ''"),
        ("ix_page_products_unjudged", "page_products", ["page_id"], "verdict = 'unjudged'"),
    ):
        some = sa.text(rows)
        op.create_index(name, table, columns, sqlite_where=some, postgresql_where=some)


def _text_hash(body: str) -> bytes:
    return blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).digest()


_TEXTS = ("key", "title", "body", "author", "date_text", "published_at", "rating", "variant")
_PAGE = ("url", "site", "node", "attempt_id")
_NO_TEXT = dict.fromkeys(_TEXTS, "") | {"published_at": None, "rating": None, "text_hash": b""}
_GIVEN = ("page_id", *_TEXTS, *_PAGE, "collected_at", "text_hash")


def _insert_refused(rows: list[dict[str, object]]) -> None:
    names = ", ".join(_GIVEN)
    values = ", ".join(f":{name}" for name in _GIVEN)
    statement = sa.text(f"INSERT INTO reviews ({names}, refused) VALUES ({values}, :reason)")
    if rows:
        op.get_bind().execute(statement, rows)


_ORIGIN = f"{', '.join(f'g.{name}' for name in _PAGE)}"
# A record that was read again may have the key of a review that the page had before.
_REFUSED_RECORDS = f"""
    SELECT f.page_id, f.reason, CASE WHEN EXISTS (
        SELECT 1 FROM reviews r WHERE r.page_id = f.page_id AND r.key = f.key
    ) THEN 'refused ' || CAST(f.id AS varchar(20)) ELSE f.key END AS key,
        {", ".join(f"f.{name}" for name in _TEXTS[1:])}, {_ORIGIN},
        CASE WHEN f.refused_at < g.fetched_at THEN g.fetched_at ELSE f.refused_at END AS collected_at
    FROM refused_reviews f JOIN pages g ON g.id = f.page_id
    WHERE f.page_id BETWEEN :first AND :last ORDER BY f.page_id, f.id
"""
# Pages that were emptied when a product was removed have no hash.
_COUNTED_RECORDS = f"""
    SELECT c.page_id, c.reason, c.n, {_ORIGIN}, coalesce(g.checked_at, g.fetched_at) AS collected_at,
        (SELECT count(*) FROM reviews r WHERE r.page_id = c.page_id AND r.refused = c.reason) AS there
    FROM (
        SELECT page_id, reason, n FROM page_refusals WHERE page_id BETWEEN :first AND :last
        UNION ALL
        SELECT id, 'wrong_product', withheld FROM pages
        WHERE id BETWEEN :first AND :last AND withheld > 0 AND content_hash <> ''
    ) c JOIN pages g ON g.id = c.page_id ORDER BY c.page_id, c.reason
"""
