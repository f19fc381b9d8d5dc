"""A statement of text gives the same over both databases: its values, its lists, and rows as records."""

import importlib
import pkgutil
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import NamedTuple

import pytest
from world import START, statements

import tasks.store
from splitter.catalog.names import Kind
from tasks.domain.errors import TaskError, Unstorable
from tasks.domain.verdicts import Verdict
from tasks.store.sql.transaction import as_pattern

VERBS = ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")
HOSTS = ("host", "robots_status")
OF = "SELECT robots_status FROM hosts WHERE robots_status IN :ids AND host NOT IN :but ORDER BY robots_status"


class Mark(NamedTuple):
    host: str
    robots_status: int


class NodeKinds(NamedTuple):
    name: str
    kinds: frozenset[Kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    name: str
    keywords: tuple[str, ...]
    aliases: list[str]
    sites: list[str] | None
    created_at: datetime
    verdict: Verdict
    detail: Mapping[str, int] | None = None


@pytest.fixture
def tx(store):
    """A transaction."""
    with store.begin() as tx:
        yield tx


@pytest.fixture
def filled(tx):
    """A transaction that sees the hosts s1 to s4."""
    tx.insert("hosts", HOSTS, [(f"s{n}", n) for n in range(1, 5)])
    return tx


@pytest.mark.parametrize(
    ("ids", "but", "found"),
    [([], [], []), ([2], ["s1"], [2]), (range(1, 100), ["s1", "s3"], [2, 4]), ((1, 2, 3), [], [1, 2, 3])],
)
def test_a_list_of_any_length_is_a_value(filled, ids, but, found):
    assert [n for (n,) in filled.rows(OF, ids=ids, but=but)] == found


def test_a_list_may_be_longer_than_sqlite_has_marks_for(filled):
    if filled.is_sqlite:
        filled._driver.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 32_766)
    texts = ["s3", *(f"'{n}\\" for n in range(20_000))]
    assert [n for (n,) in filled.rows(OF, ids=range(2, 40_000), but=texts)] == [2, 4]
    assert [n for (n,) in filled.rows(OF, ids=[1, *range(9, 20_000)], but=[Verdict.REVIEW] * 5_000)] == [1]


def test_a_list_may_hold_bytes_and_enums(tx):
    assert tx.value("SELECT 1 WHERE :key IN :keys", key=b"\xff\x00", keys=[b"a", b"\xff\x00"]) == 1
    assert tx.value("SELECT 1 WHERE 'review' IN :verdicts", verdicts=[Verdict.REVIEW]) == 1


@pytest.mark.parametrize("lock", ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR UPDATE SKIP LOCKED"])
def test_rows_are_locked_if_the_database_locks_rows(store, lock):
    with statements(store) as sent, store.begin() as tx:
        tx.insert("hosts", HOSTS, [("s2", 2)])
        wanted = f"SELECT host FROM hosts WHERE robots_status IN (SELECT 2) {lock}"
        assert tx.run(f"DELETE FROM hosts WHERE host IN ({wanted})") == 1
    assert any(lock in statement for statement in sent) != store.is_sqlite


def test_percent_signs_and_colons_stay(tx):
    rows = tx.rows("SELECT '100%', 5 % 3, '12:30', CAST(:one AS text)", one="x")
    assert rows == [("100%", 2, "12:30", "x")]
    assert tx.value("SELECT 7 % 4") == 3


@pytest.mark.parametrize(
    ("text", "written", "other"),
    [
        ("奶粉", "進口嬭粉好", "奶 茶粉"),
        ("罐装", "罐裝的", "装罐"),
        ("后来", "後來漏了", "候来"),
        ("CAN_", "a ｃａｎ＿", "canx"),
        ("100%", "x１００％y", "1000"),
        ("250 ml", "250　ML", "250ml"),
        ("Ärger", "viel ÄRGER", "arger"),
        ("[a-c]", "x[a-c]", "b"),
        ("a]b^c-d", "A］B＾C－D", "a]b^c"),
        ("*?", "wie *?", "wie"),
        ("\\d", "C:\\d", "5"),
        ("^", "x＾", "x"),
        ("'/", "it '/ x", "'"),
    ],
)
def test_a_pattern_finds_a_text_in_each_spelling(tx, text, written, other):
    asked = "SELECT :written GLOB '*' || :pattern || '*'"
    found = [tx.value(asked, written=one, pattern=as_pattern(text)) for one in (f"x{text}y", written, other)]
    assert [*map(bool, found)] == [True, True, False]


def test_a_row_becomes_a_record_by_its_annotations(tx):
    at = datetime(2026, 1, 2, 3, 4, 5, 678, timezone(timedelta(hours=8)))
    given = {"name": "特仑苏", "keywords": ("特仑苏", "牛奶"), "aliases": [], "sites": None, "created_at": at}
    tx.run(
        "INSERT INTO products (name, keywords, aliases, sites, priority, created_at) "
        "VALUES (:name, :keywords, :aliases, :sites, 0, :created_at)",
        **given,
    )
    found = tx.record(
        Product, "SELECT name, keywords, aliases, sites, created_at, 'review' AS verdict FROM products"
    )
    assert found == Product(**given, verdict=Verdict.REVIEW)
    assert found.created_at.tzinfo == UTC
    assert type(found.verdict) is Verdict


def test_a_row_may_be_a_dict(filled):
    found = filled.records(dict, "SELECT robots_status AS n, host FROM hosts WHERE robots_status = 2")
    assert found == [{"n": 2, "host": "s2"}]


def test_a_set_leaves_out_what_the_enum_lacks(tx):
    add = "INSERT INTO nodes (name, kinds, slots, registered_at) VALUES ('n1', :kinds, 1, :at)"
    tx.run(add, kinds=["meta", "new"], at=START)
    assert tx.record(NodeKinds, "SELECT name, kinds FROM nodes") == NodeKinds("n1", frozenset({Kind.META}))


def test_no_row_is_none(tx):
    assert tx.record(Mark, "SELECT host, robots_status FROM hosts") is None
    assert tx.value("SELECT robots_status FROM hosts") is None
    assert tx.time("SELECT created_at FROM products") is None


def test_rows_are_streamed(filled):
    marks = filled.stream(
        Mark, "SELECT host, robots_status FROM hosts WHERE robots_status > :n ORDER BY 2", n=2
    )
    assert list(marks) == [Mark("s3", 3), Mark("s4", 4)]


def test_run_counts_what_it_changed(filled):
    change = "UPDATE hosts SET robots_status = robots_status + :by WHERE robots_status > 2"
    assert filled.run(change, by=10) == 2
    assert filled.run("DELETE FROM hosts") == 4


def test_what_is_sent_later_keeps_its_order(filled):
    filled.later("UPDATE hosts SET robots_status = 7 WHERE host = 's1'")
    filled.later("UPDATE hosts SET robots_status = robots_status + 1 WHERE host = 's1'")
    assert filled.value("SELECT robots_status FROM hosts WHERE host = 's1'") == 8


def test_a_transaction_has_one_time(store):
    with store.begin() as tx:
        assert tx.now == tx.now
        assert abs(tx.now - datetime.now(UTC)) < timedelta(minutes=5)
    with store.begin(now=START) as tx:
        assert tx.now == START


def _statements():
    """Return the statements that modules of the store hold as constants; not of `verify`, whose tests send them all."""
    found = (one.name for one in pkgutil.walk_packages(tasks.store.__path__, "tasks.store."))
    names = [name for name in found if not name.startswith(("tasks.store.sql.", "tasks.store.verify."))]
    return {
        f"{module.__name__}.{name}": value
        for module in map(importlib.import_module, names)
        for name, value in vars(module).items()
        if isinstance(value, str) and value.split(None, 1)[:1] in ([verb] for verb in VERBS)
    }


def test_every_statement_can_be_prepared(store):
    statements = _statements()
    assert len(statements) > 40
    failed = {}
    for name, statement in statements.items():
        if store.is_sqlite and name.endswith("_POSTGRES"):
            continue
        lists = re.findall(r"IN :(\w+)", statement)
        names = re.findall(r"(?<!:):([a-z]\w*)", statement)
        values = {one: [None] if one in lists else None for one in names}
        try:
            with store.read() as tx:
                tx.rows(f"EXPLAIN {statement}", **values)
        except TaskError as error:
            failed[name] = str(error)
    assert failed == {}


# --- batches --------------------------------------------------------------------------------------------------


class AuditRow(NamedTuple):
    at: datetime
    who: str
    subject: str
    detail: Mapping[str, object]


def add_audit(tx, *given):
    tx.insert("audit_log", ("who", "subject", "detail"), given, shared={"at": START, "action": "x"})


def read_audit(tx):
    return tx.records(AuditRow, "SELECT at, who, subject, detail FROM audit_log ORDER BY id")


def test_rows_are_inserted_with_values_that_all_share(tx):
    given = [(f"w{n}", "a % b :c", {"n": n, "text": 'a "\\" b'}) for n in range(5)]
    add_audit(tx, *given)
    add_audit(tx)
    assert read_audit(tx) == [AuditRow(START, *row) for row in given]


def test_a_batch_may_hold_bytes_nulls_times_and_truth_values(tx):
    columns = ("rule", "subject", "because", "level", "firing", "told_at")
    given = [("r1", "a", {"t": 1}, None, True, START), ("r2", "b", {}, 0.5, False, None)]
    tx.insert("alerts", columns, given, shared={"since": START})
    rows = tx.rows("SELECT rule, level, firing, told_at IS NULL FROM alerts")
    assert [tuple(row) for row in rows] == [("r1", None, True, False), ("r2", 0.5, False, True)]
    key, shared = b"\x00\xff" * 8, dict.fromkeys(("title", "content_hash", "encoding", "node"), "")
    tx.insert("pages", ("url", "url_key", "site"), [("s", key, "")], shared={"fetched_at": START, **shared})
    assert bytes(tx.value("SELECT url_key FROM pages")) == key


def test_json_that_postgresql_does_not_take_is_stored_without_it(tx):
    add_audit(tx, ("w", "s", {"a": "1\x002", "b": "\\u0000", "c": "\ud800"}))
    (row,) = read_audit(tx)
    assert row.detail == {"a": "1\ufffd2", "b": "\\u0000", "c": "\ufffd"}


def test_known_rows_are_left_out(store):
    with store.begin() as tx:
        tx.insert("hosts", HOSTS, [("a", 1)])
        given = [("a", 2), ("b", 3), ("b", 4)]
        added = tx.insert_returning("hosts", HOSTS, given, returning="host, robots_status", skip_known=True)
        assert [tuple(row) for row in added] == [("b", 3)]
        assert tx.insert_returning("hosts", HOSTS, [], returning="host") == []
    with pytest.raises(Unstorable), store.begin() as tx:
        tx.insert("hosts", HOSTS, [("c", 1), ("a", 1)])


def test_rows_are_updated_by_their_key(tx):
    add_audit(tx, *((f"w{n}", "old", {}) for n in range(4)))
    first, later = tx.value("SELECT min(id) FROM audit_log"), START + timedelta(seconds=1)
    given = [{"id": first + n, "subject": "old", "detail": {"n": n}, "who": f"v{n}"} for n in (1, 2)]
    given.append({"id": first + 3, "subject": "other", "detail": {}, "who": "nobody"})
    tx.update("audit_log", ("id", "subject"), given, shared={"subject": "new", "at": later})
    tx.update("audit_log", ("id",), [])
    assert read_audit(tx) == [
        (START, "w0", "old", {}),
        (later, "v1", "new", {"n": 1}),
        (later, "v2", "new", {"n": 2}),
        (START, "w3", "old", {}),
    ]
