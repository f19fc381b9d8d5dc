"""The migrations make the declared tables and upgrade a store of version 0.9.0, on both databases."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from patience import PATIENCE_S
from sqlalchemy import inspect

from splitter.catalog.load import builtin
from splitter.catalog.model import TimeFilter
from splitter.spans import Span
from splitter.split import chunks
from splitter.urls import search_url
from tasks.domain.errors import Unstorable, WrongRevision
from tasks.jobs.partitioning import search_urls
from tasks.store.content import links
from tasks.store.content.counted_reviews import fill
from tasks.store.content.products import find
from tasks.store.queue import nodes, notices, tasks, transitions, upkeep
from tasks.store.sql import schema
from tasks.store.sql.database import Store
from tasks.store.sql.tables import metadata
from tasks.store.sql.transaction import as_pattern
from tasks.store.verify.verify import verify

CATALOG = builtin("paper-2014")
DUMPS = Path(__file__).parent / "store" / "data"


@pytest.fixture
def empty(empty_url: str) -> Iterator[Store]:
    store = Store.open(empty_url)
    yield store
    store.close()


@pytest.fixture
def old(empty: Store, empty_url: str) -> Store:
    """A store that version 0.9.0 wrote: products, crawls of the lab, an import, an added node, open and manual work."""
    kind = "sqlite" if empty.is_sqlite else "postgresql"
    dump = gzip.decompress((DUMPS / f"version-0.9.0.{kind}.sql.gz").read_bytes()).decode()
    if empty.is_sqlite:
        with closing(sqlite3.connect(empty_url.removeprefix("sqlite:///"))) as file:
            file.executescript(dump)
    else:
        with empty.begin() as conn:
            conn.engine_connection.connection.cursor().execute(dump)
    return empty


def _schema(store: Store) -> dict[tuple[str, ...], object]:
    """What the database says of its tables, without the order of columns and Alembic's own table."""
    with store.read() as conn:
        if store.is_sqlite:
            rows = conn.engine_connection.exec_driver_sql(
                "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name != 'alembic_version'"
            )
            return {(kind, name): _parts(sql) if kind == "table" else sql for kind, name, sql in rows}
        rows = conn.engine_connection.exec_driver_sql(
            """
            SELECT 'column', c.relname, a.attname,
                   concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid))
            FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
            WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'S') AND a.attnum > 0
              AND NOT a.attisdropped AND c.relname != 'alembic_version'
            UNION ALL
            SELECT 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid)
            FROM pg_constraint
            WHERE connamespace = 'public'::regnamespace AND contype != 'n'
              AND conrelid != 'alembic_version'::regclass
            UNION ALL
            SELECT 'index', tablename, indexname, indexdef FROM pg_indexes
            WHERE schemaname = 'public' AND tablename != 'alembic_version'
            UNION ALL
            SELECT 'trigger', tgrelid::regclass::text, tgname, pg_get_triggerdef(oid) FROM pg_trigger
            WHERE NOT tgisinternal
            """
        )
        return {(kind, table, name): definition for kind, table, name, definition in rows}


def _parts(create_table: str) -> list[str]:
    """Columns, constraints and options of a CREATE TABLE in alphabetical order; `DEFAULT (x)` is `DEFAULT x`."""
    body, options = re.fullmatch(r"CREATE TABLE \S+ \((.*)\)(.*?)", create_table, re.DOTALL).groups()
    parts = re.split(r",(?![^(]*\))", body)
    return sorted(
        re.sub(r"DEFAULT \((\S+)\)", r"DEFAULT \1", " ".join(part.split())) for part in [*parts, options]
    )


def test_the_migrations_make_the_tables_as_declared(
    empty: Store, migrations: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, "_create_tables", lambda tx, _: schema._run_migrations(tx, migrations))
        schema.upgrade(empty, migrations)
    migrated, rows = _schema(empty), _rows(empty)
    with empty.begin() as conn:
        metadata.drop_all(conn.engine_connection)
        conn.engine_connection.exec_driver_sql("DROP TABLE alembic_version")
    schema.upgrade(empty, migrations)
    assert migrated == _schema(empty)
    assert rows == _rows(empty) == {"alembic_version": [(schema.newest(migrations),)]}
    assert len(migrated) > len(metadata.tables)


def _rows(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of every table that has any."""
    with store.read() as conn:
        connection = conn.engine_connection
        tables = inspect(connection).get_table_names()
        found = {name: connection.exec_driver_sql(f"SELECT * FROM {name}").all() for name in tables}
    return {name: [tuple(row) for row in rows] for name, rows in found.items() if rows}


def test_a_store_of_0_9_0_gets_the_same_schema_as_a_new_one(old: Store, migrations: Path) -> None:
    schema.upgrade(old, migrations)
    upgraded = _schema(old)
    with old.begin() as conn:
        metadata.drop_all(conn.engine_connection)
        metadata.create_all(conn.engine_connection)
    assert upgraded == _schema(old)


def test_a_store_of_0_9_0_keeps_its_contents(old: Store, migrations: Path) -> None:
    def contents(
        reviews: str = "reviews", refused: str = "reviews WHERE refused IS NOT NULL"
    ) -> dict[str, Any]:
        with old.read() as conn:
            return {
                "reviews": conn.rows(f"SELECT id, page_id, body, same_as FROM {reviews} ORDER BY id"),
                "links": conn.rows(
                    "SELECT page_id, product_id, verdict, missing FROM page_products ORDER BY 1, 2"
                ),
                "queues": sorted(conn.rows("SELECT state, count(*) FROM subtasks GROUP BY state")),
                "refused": sorted(map(tuple, conn.rows(f"SELECT page_id, key, body, author FROM {refused}"))),
            }

    before = contents(refused="refused_reviews")
    with old.read() as conn:
        refusals = {reason: int(n) for reason, n in conn.rows(_REFUSALS_OF_0_9_0)}
        marks = dict(conn.rows("SELECT sweep, last_id FROM sweep_marks"))
        added = conn.rows("SELECT name, slots, address, proxy FROM added_nodes ORDER BY added_at, name")
        node_names = conn.rows("SELECT name FROM nodes ORDER BY name")
    schema.upgrade(old, migrations)
    with old.read() as conn:
        looked = upkeep.load_value(conn, "looked")
        carried = {name: last_id for name, last_id in marks.items() if name not in ("looked", "bridged")}
        carried |= {"reposts": 0}  # every review is compared again
        assert {name: upkeep.get_mark(conn, name) for name in carried} == carried
        assert (looked.at.timestamp() * 1000 if looked else None) == marks.get("looked")
        assert [
            (one.name, one.slots, one.address, one.proxy and one.proxy.url)
            for one in nodes.list_added(conn, 9)
        ] == [(name, slots or 9, address, proxy) for name, slots, address, proxy in added]
        assert conn.rows("SELECT name FROM nodes ORDER BY name") == node_names
    assert len(marks) > 1
    assert added
    assert contents(reviews="reviews WHERE refused IS NULL") == before
    assert len(before["reviews"]) > 40
    assert len(before["refused"]) > 0
    with old.read() as conn:
        assert links.refusals_by_reason(conn) == refusals
    with old.read() as conn:
        assert find(conn, " 光明 高钙牛奶").name == "光明高钙牛奶"
        assert schema.revision(conn) == schema.newest(migrations)
        schema.check_revision(conn, migrations)
        verification = verify(conn)
        counted = {state: n for state, n in transitions.count_queues(conn).items() if n}
    assert verification.violations == ()
    assert counted == dict(before["queues"])
    assert {"WAIT", "MANUAL", "DONE"} <= counted.keys()


def test_a_query_of_0_9_0_keeps_its_chunks(old: Store, migrations: Path) -> None:
    """Its search URLs are made again, also those of a span, whose first chunk is one page, and of fewer words."""
    spans = CATALOG.engines["baidu"].model_copy(
        update={"times": TimeFilter(params={"t": "{from_s}"}, least="day")}
    )
    catalog = CATALOG.model_copy(update={"engines": {**CATALOG.engines, "baidu": spans}})
    span = Span(datetime(2013, 1, 1, tzinfo=UTC), datetime(2013, 7, 1, tzinfo=UTC))

    def urls(words: list[str], span: Span | None) -> list[str]:
        return [search_url(spans, words, site="12315.com", page=page, span=span) for page in range(1, 7)]

    of_span, relaxed = urls(["蒙牛", "特仑苏"], span), urls(["蒙牛"], None)
    added = [
        (90, 3, [of_span[:1], *chunks(of_span[1:], 2)], ["蒙牛", "特仑苏"], span),
        (91, 7, chunks(relaxed, 4), ["蒙牛"], None),
        (92, 9, [of_span[:1]], ["蒙牛", "特仑苏"], span),
    ]
    with old.begin() as tx:
        for number, first_chunk, cut, words, of in added:
            given = {"id": number, "first": first_chunk, "chunks": cut, "words": words}
            tx.run(_OLD_QUERY, **given, start=of.start if of else None, end=of.end if of else None)
        before = dict(tx.rows("SELECT id, CAST(chunks AS text) FROM task_parts"))
    schema.upgrade(old, migrations)
    with old.read() as tx:
        after = {
            one.id: [
                search_urls(catalog, one, one.pages_of(number)) for number in range(one.first_chunk, one.end)
            ]
            for one in tasks.list_partitions(tx, before).values()
        }
    assert after == {number: json.loads(text) for number, text in before.items()}
    with old.begin() as tx:
        # A chunk that 0.9.0 planned and did not release:
        (released,) = tasks.release_chunks(tx, [(1, 2)], partial(search_urls, catalog)).values()
        asked = tx.rows("SELECT url FROM targets WHERE subtask_id = :id", id=released)
    assert [url for (url,) in asked] == after[1][1]


_OLD_QUERY = """
    INSERT INTO task_parts (id, task_id, parent_id, first_chunk, chunks, keywords, dropped, start_at, end_at)
    VALUES (:id, 1, 1, :first, :chunks, :words, '[]', :start, :end)
"""


def test_a_wait_becomes_a_host_and_a_reason(old: Store, migrations: Path) -> None:
    waits = {
        "a.cn does not answer": ("a.cn", "unreachable"),
        "b.cn:80 rests (login_wall)": ("b.cn:80", "login_wall"),
        "c.cn is asked as often as it may be": ("c.cn", "no_permit"),
    }
    with old.begin() as conn:
        for number, words in enumerate(waits, start=1):
            conn.run("UPDATE subtasks SET waits_for = :words WHERE id = :id", id=number, words=words)
    schema.upgrade(old, migrations)
    with old.read() as conn:
        found = conn.rows("SELECT wait_host, wait_reason FROM subtasks WHERE id IN (1, 2, 3) ORDER BY id")
    assert found == list(waits.values())


SENTENCES = {
    "12315.com does not answer": ("host_silent", {"host": "12315.com"}),
    "b.cn:80 rests (login_wall)": ("host_rests", {"host": "b.cn:80", "cause": "login_wall"}),
    "quota of 30 used up": ("quota_used", {"quota": 30}),
    "c.cn can be asked in 90 s only": ("permit_too_far", {"host": "c.cn", "wait_s": 90.0}),
    "blocked on node3 after 5 recalls in this round": (
        "recalls_used",
        {"failure": "blocked", "node": "node3", "recalls": 5},
    ),
    "rebalanced: n1 has 3 not begun at 0.5 attempts/s and would begin this one in inf s, n2 in 1.2e+03 s": (
        "rebalanced",
        {
            "giver": "n1",
            "waiting": 3,
            "per_s": 0.5,
            "giver_s": 31_536_000.0,
            "taker": "n2",
            "taker_s": 1200.0,
        },
    ),
    "ValueError: no: such thing": ("node_failed", {"error": "ValueError", "text": "no: such thing"}),
    "this no version wrote: it stays": ("other", {"text": "this no version wrote: it stays"}),
}


def test_sentences_become_reasons(old: Store, migrations: Path) -> None:
    with old.begin() as conn:
        before = conn.value("SELECT max(id) FROM events")
        columns = ("at", "subtask_id", "transition", "to_state", "detail")
        rows = [(conn.now, 1, "release", "WAIT", {"why": why, "requests": 2}) for why in SENTENCES]
        rows += [
            (
                conn.now,
                1,
                "wake",
                "DONE",
                {"split": "more than 45 hits, the engine lists 20: by day into 3 parts"},
            ),
            (conn.now, 1, "allocate", "CRAWL", {"modification": {"quota": 9, "why": "defaults of the site"}}),
            (conn.now, 1, "cancel", "CANCELLED", {"why": "we know: it is gone"}),
            (conn.now, 1, "silent", "FAILED", {"why": ""}),
        ]
        conn.insert("events", columns, rows)
        (virtual_task,) = conn.rows("SELECT min(id) FROM virtual_tasks")[0]
        conn.run(
            "INSERT INTO unplanned_sites (virtual_task_id, site, obstacle, why, since) "
            "VALUES (:id, 'a.cn', 'no_such_name', 'a.cn is no known name', :now)",
            id=virtual_task,
            now=conn.now,
        )
    schema.upgrade(old, migrations)
    with old.read() as conn:
        found = conn.records(
            _Detail, "SELECT detail FROM events WHERE id > :before ORDER BY id", before=before
        )
        unplanned = tasks.list_late_sites(conn)
    details = [one.detail for one in found]
    assert details == [
        *(
            {"because": {"reason": reason, "parameters": parameters}, "requests": 2}
            for reason, parameters in SENTENCES.values()
        ),
        {
            "split": {
                "because": {
                    "reason": "split_by_time",
                    "parameters": {"hits": 45, "most": 20, "unit": "day", "parts": 3},
                }
            }
        },
        {"modification": {"quota": 9, "because": {"reason": "site_defaults", "parameters": {}}}},
        {"because": {"reason": "person_said", "parameters": {"text": "we know: it is gone"}}},
        {},
    ]
    assert [(one.site, one.why) for one in unplanned] == [("a.cn", "a.cn is no known name")]


@dataclass(frozen=True)
class _Detail:
    detail: dict[str, Any]


@pytest.mark.parametrize(
    ("spoilt", "told"),
    [
        ("kind = 'video'", "kind IN ('meta', 'microblog').* 1 ('video')"),
        ("reason = 'of a newer version'", "reason IN .* 1 ('of a newer version')"),
        ("state = 'FAILED', reason = NULL", "state <> 'FAILED' OR reason IS NOT NULL.* 1 (None)"),
        ("failed_on = '7'", "failed_on.* 1 (7)"),
        ("failed_on = '{}'", "failed_on.* 1 ("),
    ],
)
def test_a_value_that_no_version_wrote_is_named_and_nothing_is_changed(
    old: Store, migrations: Path, spoilt: str, told: str
) -> None:
    with old.begin() as conn:
        conn.run(f"UPDATE subtasks SET {spoilt} WHERE id = 1")
        before = conn.rows("SELECT * FROM subtasks ORDER BY id"), conn.rows("SELECT * FROM added_nodes")
    pattern = re.escape(told).replace(r"\.\*", ".*")
    with pytest.raises(WrongRevision, match=rf"1 rows of the table subtasks.*{pattern}.*Nothing was changed"):
        schema.upgrade(old, migrations)
    with old.begin() as conn:
        assert schema.revision(conn) == "0027"
        assert (
            conn.rows("SELECT * FROM subtasks ORDER BY id"),
            conn.rows("SELECT * FROM added_nodes"),
        ) == before
        conn.run(
            "UPDATE subtasks SET kind = 'meta', state = 'WAIT', reason = NULL, failed_on = '[]' WHERE id = 1"
        )
    schema.upgrade(old, migrations)


def test_the_database_refuses_a_subtask_that_no_sweep_could_read(old: Store, migrations: Path) -> None:
    schema.upgrade(old, migrations)
    for spoilt in (
        "state = 'LATER'",
        "kind = 'video'",
        "reason = 'x'",
        "failed_on = '7'",
        "failed_on = '{}'",
    ):
        with pytest.raises(Unstorable), old.begin() as conn:
            conn.run(f"UPDATE subtasks SET {spoilt} WHERE id = 1")
    with pytest.raises(Unstorable), old.begin() as conn:
        conn.run("UPDATE subtasks SET state = 'FAILED', reason = NULL WHERE id = 1")


_REFUSALS_OF_0_9_0 = """
    SELECT reason, sum(n) FROM page_refusals GROUP BY reason UNION ALL
    SELECT verdict, sum(refused) FROM page_products WHERE verdict IN ('wrong_product', 'near_product') GROUP BY verdict
"""


def test_refused_records_of_0_9_0_that_were_only_counted_are_rows_without_text(
    old: Store, migrations: Path
) -> None:
    with old.begin() as conn:
        (page_id, n), *_ = conn.rows("SELECT id, withheld FROM pages WHERE withheld > 0 ORDER BY id")
        conn.run("DELETE FROM refused_reviews WHERE page_id = :page", page=page_id)
        conn.run("DELETE FROM page_refusals WHERE page_id = :page", page=page_id)
        conn.run("INSERT INTO page_refusals (page_id, reason, n) VALUES (:page, 'login', 3)", page=page_id)
        refusals = {reason: int(n) for reason, n in conn.rows(_REFUSALS_OF_0_9_0)}
    schema.upgrade(old, migrations)
    with old.read() as conn:
        rows = conn.rows("SELECT refused, body FROM reviews WHERE page_id = :page", page=page_id)
        assert sorted(rows) == [("login", "")] * 3 + [("wrong_product", "")] * n
        assert conn.value("SELECT content_hash FROM pages WHERE id = :page", page=page_id) == ""
        assert links.refusals_by_reason(conn) == refusals
        assert verify(conn).violations == ()


_WRITTEN = [
    ("2013-05-06 12:30", datetime(2013, 5, 6, 4, 30, tzinfo=UTC), "2013-05-06", True),
    ("2013-05-06 00:10", datetime(2013, 5, 5, 16, 10, tzinfo=UTC), "2013-05-06", True),
    ("2013-05-06", datetime(2013, 5, 5, 16, tzinfo=UTC), "2013-05-06", False),
    ("3天前", datetime(2013, 5, 5, 23, 59, 59, tzinfo=UTC), "2013-05-06", False),
    ("2 weeks ago", datetime(2013, 5, 5, 15, 59, 59, tzinfo=UTC), "2013-05-05", False),
    ("1天2小时前", datetime(2013, 5, 5, 16, 1, tzinfo=UTC), "2013-05-06", True),
    ("前天 14:20", datetime(2013, 5, 4, 6, 20, tzinfo=UTC), "2013-05-04", True),
    ("前所未有", None, None, False),
]
"""A text, the time that it was read as, and the day and whether there is a clock."""


class _Dated(NamedTuple):
    date_text: str
    published_at: datetime | None
    day: date | None
    has_clock: bool


def test_reviews_get_the_day_they_had_in_china(old: Store, migrations: Path) -> None:
    with old.begin() as conn:
        numbers = [number for (number,) in conn.rows("SELECT id FROM reviews ORDER BY id LIMIT 8")]
        for number, (written, at, _, _) in zip(numbers, _WRITTEN, strict=True):
            statement = "UPDATE reviews SET date_text = :written, published_at = :at WHERE id = :number"
            conn.run(statement, written=written, at=at, number=number)
    schema.upgrade(old, migrations)
    statement = "SELECT date_text, published_at, day, has_clock FROM reviews WHERE id IN :numbers ORDER BY id"
    with old.read() as conn:
        found = conn.records(_Dated, statement, numbers=numbers)
        undated = conn.value("SELECT count(*) FROM reviews WHERE (day IS NULL) <> (published_at IS NULL)")
    assert found == [
        _Dated(written, at, date.fromisoformat(day) if day else None, has_clock)
        for written, at, day, has_clock in _WRITTEN
    ]
    assert undated == 0


def test_an_alert_keeps_its_text(old: Store, migrations: Path) -> None:
    with old.begin() as conn:
        conn.run(
            "INSERT INTO alerts (rule, subject, text, since, firing, told, trouble) "
            "VALUES ('silent', 'n1', 'node n1 is away', :now, :on, :on, '')",
            now=conn.now,
            on=True,
        )
    schema.upgrade(old, migrations)
    with old.read() as conn:
        (alert,) = notices.list_alerts(conn)
    assert (alert.subject, alert.firing, alert.text) == ("n1", True, "node n1 is away")


def test_excluded_words_get_patterns_of_every_spelling_and_their_products_are_counted_again(
    old: Store, migrations: Path
) -> None:
    schema.upgrade(old, migrations)
    with old.begin() as conn:
        while fill(conn):
            pass
        counted = conn.rows("SELECT product_id, review_id FROM review_days ORDER BY 1, 2")
        words = [(product, "纯牛奶", "old") for product in sorted({product for product, _ in counted})[:2]]
        conn.insert("excluded_words", ("product_id", "word", "pattern"), words)
    spec = spec_from_file_location("m0040", migrations / "versions/0040_spellings_of_excluded_words.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    with (
        old.begin() as conn,
        Operations.context(MigrationContext.configure(conn.engine_connection)),
    ):
        module.upgrade()
    with old.begin() as conn:
        patterns = conn.rows("SELECT DISTINCT pattern FROM excluded_words")
        assert patterns == [(as_pattern("纯牛奶"),)]
        assert conn.value("SELECT count(*) FROM review_days WHERE product_id = :id", id=words[0][0]) == 0
        while fill(conn):
            pass
        assert conn.rows("SELECT product_id, review_id FROM review_days ORDER BY 1, 2") == counted


@pytest.mark.parametrize(("found", "advice"), [("0026", "0.9.0 first"), ("9999", "update reviewloop")])
def test_a_database_that_cannot_be_upgraded_is_refused(
    old: Store, migrations: Path, found: str, advice: str
) -> None:
    with old.begin() as conn:
        conn.engine_connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{found}'")
    with pytest.raises(WrongRevision, match=f"revision {found}.*{advice}"):
        schema.upgrade(old, migrations)
    with old.read() as conn:
        assert schema.revision(conn) == found
        with pytest.raises(WrongRevision, match=f"revision {found}.*{advice}"):
            schema.check_revision(conn, migrations)


@pytest.mark.parametrize("statement", ["CREATE TABLE notes (a)", "CREATE TABLE reviews (id INTEGER)"])
def test_a_file_of_another_program_gets_no_tables(tmp_path: Path, migrations: Path, statement: str) -> None:
    file = tmp_path / "other.db"
    with closing(sqlite3.connect(file)) as other:
        other.execute(statement)
    before = file.read_bytes()
    with closing(Store.open(f"sqlite:///{file}")) as store:
        for refused in (
            lambda: schema.upgrade(store, migrations),
            lambda: store.write(partial(schema.check_revision, scripts=migrations)),
        ):
            with pytest.raises(WrongRevision, match=re.escape(f"{file} holds tables of another program")):
                refused()
        assert inspect(store.engine).get_table_names() == [statement.split()[2]]
    assert before[100:] == file.read_bytes()[100 : len(before)], (
        "but for the header, which has the log's mode"
    )


def test_upgrading_twice_changes_nothing(empty: Store, migrations: Path) -> None:
    schema.upgrade(empty, migrations)
    with empty.begin() as conn:
        conn.engine_connection.exec_driver_sql("INSERT INTO hosts (host) VALUES ('cca.org.cn')")
    schema.upgrade(empty, migrations)
    with empty.read() as conn:
        assert schema.revision(conn) == schema.newest(migrations)
        assert conn.engine_connection.exec_driver_sql("SELECT host FROM hosts").scalars().all() == [
            "cca.org.cn"
        ]


def test_programs_that_start_together_upgrade_once(empty_url: str, migrations: Path) -> None:
    barrier = threading.Barrier(4)
    failures: list[Exception] = []

    def start() -> None:
        store = Store.open(empty_url)
        try:
            barrier.wait(timeout=PATIENCE_S)
            schema.upgrade(store, migrations)
        except Exception as error:
            failures.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    store = Store.open(empty_url)
    with store.read() as conn:
        assert set(metadata.tables) <= set(inspect(conn.engine_connection).get_table_names())
    store.close()


_OPENS = """
import sys
from pathlib import Path
from app.run.setting_fields import Settings
from app.run.open_store import open_store
with open_store(Settings(database_url=sys.argv[1])):
    print("alembic" in sys.modules)
"""


@pytest.mark.slow
def test_a_store_of_this_version_is_made_and_opened_without_alembic(empty_url: str) -> None:
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", _OPENS, empty_url], capture_output=True, encoding="utf-8", check=True
        )
        assert done.stdout.strip() == "False"
