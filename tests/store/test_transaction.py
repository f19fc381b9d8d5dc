"""A statement of text gives the same over both databases: its values, its lists, and rows as records."""

import importlib
import pkgutil
import re
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
ADD = "INSERT INTO hosts (host, robots_status) VALUES (:host, :robots_status)"
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
def filled(store):
    with store.begin() as tx:
        for n in range(1, 5):
            tx.later(ADD, host=f"s{n}", robots_status=n)
    return store


@pytest.mark.parametrize(
    ("ids", "but", "found"),
    [([], [], []), ([2], ["s1"], [2]), (range(1, 100), ["s1", "s3"], [2, 4]), ((1, 2, 3), [], [1, 2, 3])],
)
def test_a_list_of_any_length_is_a_value(filled, ids, but, found):
    with filled.read() as tx:
        assert [n for (n,) in tx.rows(OF, ids=ids, but=but)] == found


def test_a_list_may_hold_bytes_and_enums(store):
    with store.read() as tx:
        assert tx.value("SELECT 1 WHERE :key IN :keys", key=b"\xff\x00", keys=[b"a", b"\xff\x00"]) == 1
        assert tx.value("SELECT 1 WHERE 'review' IN :verdicts", verdicts=[Verdict.REVIEW]) == 1


@pytest.mark.parametrize("lock", ["FOR UPDATE", "FOR NO KEY UPDATE", "FOR UPDATE SKIP LOCKED"])
def test_rows_are_locked_where_the_database_locks_rows(filled, lock):
    with statements(filled) as sent, filled.begin() as tx:
        wanted = f"SELECT host FROM hosts WHERE robots_status IN (SELECT 2) {lock}"
        assert tx.run(f"DELETE FROM hosts WHERE host IN ({wanted})") == 1
    assert any(lock in statement for statement in sent) != filled.is_sqlite


def test_percent_signs_and_colons_stay(store):
    with store.read() as tx:
        assert tx.rows("SELECT '100%', 5 % 3, '12:30', CAST(:one AS text)", one="x") == [
            ("100%", 2, "12:30", "x")
        ]
        assert tx.value("SELECT 7 % 4") == 3


@pytest.mark.parametrize("text", ["100%", "a_b", "/", "特仑苏"])
def test_a_pattern_finds_just_the_text(store, text):
    with store.read() as tx:
        found = "SELECT :here LIKE :pattern ESCAPE '/', :there LIKE :pattern ESCAPE '/'"
        ((here, there),) = tx.rows(found, here=f"x{text}y", there="x100ab-y", pattern=as_pattern(text))
    assert (bool(here), bool(there)) == (True, False)


def test_a_row_becomes_a_record_by_its_annotations(store):
    at = datetime(2026, 1, 2, 3, 4, 5, 678, timezone(timedelta(hours=8)))
    with store.begin() as tx:
        tx.run(
            "INSERT INTO products (name, keywords, aliases, sites, priority, created_at) "
            "VALUES ('特仑苏', :keywords, :aliases, :sites, 0, :at)",
            keywords=["特仑苏", "牛奶"],
            aliases=(),
            sites=None,
            at=at,
        )
        found = tx.record(
            Product, "SELECT name, keywords, aliases, sites, created_at, 'review' AS verdict FROM products"
        )
    assert found == Product(
        name="特仑苏",
        keywords=("特仑苏", "牛奶"),
        aliases=[],
        sites=None,
        created_at=at,
        verdict=Verdict.REVIEW,
    )
    assert found.created_at.tzinfo == UTC
    assert type(found.verdict) is Verdict


def test_a_row_may_be_a_dict(filled):
    with filled.read() as tx:
        assert tx.records(dict, "SELECT robots_status AS n, host FROM hosts WHERE robots_status = 2") == [
            {"n": 2, "host": "s2"}
        ]


def test_a_set_leaves_out_what_the_enum_lacks(store):
    with store.begin() as tx:
        tx.run(
            "INSERT INTO nodes (name, kinds, slots, registered_at) VALUES ('n1', :kinds, 1, :at)",
            kinds=["meta", "new"],
            at=START,
        )
        found = tx.record(NodeKinds, "SELECT name, kinds FROM nodes")
    assert found == NodeKinds("n1", frozenset({Kind.META}))


def test_no_row_is_none(store):
    with store.read() as tx:
        assert tx.record(Mark, "SELECT host, robots_status FROM hosts") is None
        assert tx.value("SELECT robots_status FROM hosts") is None
        assert tx.time("SELECT created_at FROM products") is None


def test_rows_are_streamed(filled):
    with filled.read() as tx:
        marks = tx.stream(
            Mark, "SELECT host, robots_status FROM hosts WHERE robots_status > :n ORDER BY 2", n=2
        )
        assert list(marks) == [Mark("s3", 3), Mark("s4", 4)]


def test_run_counts_what_it_changed(filled):
    with filled.begin() as tx:
        assert (
            tx.run("UPDATE hosts SET robots_status = robots_status + :by WHERE robots_status > 2", by=10) == 2
        )
        assert tx.run("DELETE FROM hosts") == 4


def test_what_is_sent_later_keeps_its_order(filled):
    with filled.begin() as tx:
        tx.later("UPDATE hosts SET robots_status = 7 WHERE host = 's1'")
        tx.later("UPDATE hosts SET robots_status = robots_status + 1 WHERE host = 's1'")
        assert tx.value("SELECT robots_status FROM hosts WHERE host = 's1'") == 8


def test_an_error_is_sqlalchemys_and_nothing_stays_of_its_transaction(filled):
    with pytest.raises(Unstorable), filled.begin() as tx:
        _add(tx, "s5", "s1")
    with filled.read() as tx:
        assert tx.value("SELECT count(*) FROM hosts") == 4


def _add(tx, *hosts):
    for host in hosts:
        tx.run(ADD, host=host, robots_status=5)


def test_a_transaction_has_one_time(store):
    with store.begin() as tx:
        assert tx.now == tx.now
        assert abs(tx.now - datetime.now(UTC)) < timedelta(minutes=5)
    with store.begin(now=START) as tx:
        assert tx.now == START


def _statements():
    """Return the statements that modules of the store hold as constants, by module and name; not those of `sql`."""
    found = (one.name for one in pkgutil.walk_packages(tasks.store.__path__, "tasks.store."))
    names = [name for name in found if not name.startswith("tasks.store.sql.")]
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
        values = {
            one: [None] if one in lists else None for one in re.findall(r"(?<!:):([a-z]\w*)", statement)
        }
        try:
            with store.read() as tx:
                tx.rows(f"EXPLAIN {statement}", **values)
        except TaskError as error:
            failed[name] = str(error)
    assert failed == {}


AUDIT = ("who", "subject", "detail")
READ_AUDIT = "SELECT at, who, subject, detail FROM audit_log ORDER BY id"


class AuditRow(NamedTuple):
    at: datetime
    who: str
    subject: str
    detail: Mapping[str, object]


def test_rows_are_inserted_with_values_that_all_share(store):
    given = [(f"w{n}", "a % b :c", {"n": n, "text": 'a "\\" b'}) for n in range(5)]
    with store.begin() as tx:
        tx.insert("audit_log", AUDIT, given, shared={"at": START, "action": "x"})
        tx.insert("audit_log", AUDIT, [], shared={"at": START, "action": "x"})
        assert tx.records(AuditRow, READ_AUDIT) == [AuditRow(START, *row) for row in given]


def test_a_batch_may_hold_bytes_nulls_times_and_truth_values(store):
    columns = ("rule", "subject", "text", "level", "firing", "told_at")
    given = [("r1", "a", "t", None, True, START), ("r2", "b", "", 0.5, False, None)]
    with store.begin() as tx:
        tx.insert("alerts", columns, given, shared={"since": START})
        assert [tuple(row) for row in tx.rows("SELECT rule, level, firing, told_at IS NULL FROM alerts")] == [
            ("r1", None, True, False),
            ("r2", 0.5, False, True),
        ]
        tx.insert(
            "pages",
            ("url", "url_key", "site"),
            [("s", b"\x00\xff" * 8, "")],
            shared={"fetched_at": START, "title": "", "content_hash": "", "encoding": "", "node": ""},
        )
        assert bytes(tx.value("SELECT url_key FROM pages")) == b"\x00\xff" * 8


def test_json_that_postgresql_does_not_take_is_stored_without_it(store):
    given = [("w", "s", {"a": "1\x002", "b": "\\u0000", "c": "\ud800"})]
    with store.begin() as tx:
        tx.insert("audit_log", AUDIT, given, shared={"at": START, "action": "x"})
        (row,) = tx.records(AuditRow, READ_AUDIT)
    assert row.detail == {"a": "1\ufffd2", "b": "\\u0000", "c": "\ufffd"}


def test_known_rows_are_left_out(store):
    columns = ("host", "robots_status")
    with store.begin() as tx:
        tx.insert("hosts", columns, [("a", 1)])
        added = tx.insert_returning(
            "hosts",
            columns,
            [("a", 2), ("b", 3), ("b", 4)],
            returning="host, robots_status",
            skip_known=True,
        )
        assert [tuple(row) for row in added] == [("b", 3)]
        assert tx.insert_returning("hosts", columns, [], returning="host") == []
    with pytest.raises(Unstorable), store.begin() as tx:
        tx.insert("hosts", columns, [("c", 1), ("a", 1)])


def test_rows_are_updated_by_their_key(store):
    with store.begin() as tx:
        tx.insert(
            "audit_log", AUDIT, [(f"w{n}", "old", {}) for n in range(4)], shared={"at": START, "action": "x"}
        )
        first = tx.value("SELECT min(id) FROM audit_log")
        later = START + timedelta(seconds=1)
        given = [{"id": first + n, "subject": "old", "detail": {"n": n}, "who": f"v{n}"} for n in (1, 2)]
        given.append({"id": first + 3, "subject": "other", "detail": {}, "who": "nobody"})
        tx.update("audit_log", ("id", "subject"), given, shared={"subject": "new", "at": later})
        tx.update("audit_log", ("id",), [])
        assert [tuple(row) for row in tx.records(AuditRow, READ_AUDIT)] == [
            (START, "w0", "old", {}),
            (later, "v1", "new", {"n": 1}),
            (later, "v2", "new", {"n": 2}),
            (START, "w3", "old", {}),
        ]


def test_a_batch_for_postgresql_travels_with_the_next_statement(store):
    with statements(store) as sent, store.begin() as tx:
        tx.insert("hosts", ("host", "robots_status"), [(f"s{n}", n) for n in range(100)])
        tx.update("hosts", ("host",), [{"host": f"s{n}", "robots_status": 0} for n in range(100)])
        assert tx.value("SELECT sum(robots_status) FROM hosts") == 0
    assert store.is_sqlite or [one.split()[0] for one in sent] == [
        "BEGIN",
        "INSERT",
        "UPDATE",
        "SELECT",
        "COMMIT",
    ]
