"""Each column of each table is changed behind the loop's back: `verify` sees it, or docs/verify.md says it does not.

Foreign keys are off, as in the program `sqlite3`, so that the database refuses little.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Column, Date, LargeBinary, Row, String, Table, Text, func, select, text, update
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from test_store_unasked import unanswered
from world import CATALOG, SITE, World, hit, review

from splitter.catalog.model import TimeFilter
from splitter.catalog.names import Kind
from tasks.domain.attempt_end import Counters
from tasks.domain.errors import Unstorable
from tasks.domain.failures import FailureReason
from tasks.domain.hit_count import EngineLimits, PartitionState, Provenance
from tasks.domain.page_key import canonical, page_key
from tasks.domain.pages import Hit, ResultPage, Review
from tasks.domain.pair_stats import SUMS, RoundTrip
from tasks.domain.proxy import Proxy
from tasks.domain.reasons import Reason, because
from tasks.domain.recurrence import Recurrence
from tasks.domain.states import State, Transition
from tasks.domain.themes import Theme
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.jobs import recalling, sweeps
from tasks.jobs.repost_linking import link_reposts
from tasks.scheduling.alerting import Alert
from tasks.store.content import (
    archived_themes,
    correcting,
    imported_products,
    imports,
    numbered_imports,
    pages,
    products,
)
from tasks.store.content.corrections import Correction, list_linked, store_excluded_words
from tasks.store.content.imports import ImportedReview, review_key
from tasks.store.content.imports import page_of as page_of_import
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queue import attempts, hosts, manual, nodes, notices, schedules, tasks, upkeep
from tasks.store.queue.hosts import Robots
from tasks.store.queue.leases import Lease, WorkTarget
from tasks.store.queue.nodes import Node
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore
from tasks.store.queue.schedules import ScheduleKind
from tasks.store.sql.database import Store
from tasks.store.sql.tables import UtcDateTime, events, metadata, reviews
from tasks.store.sql.transaction import Transaction, ask_driver
from tasks.store.verify.verify import verify

DOCS = Path(__file__).parents[2] / "docs" / "verify.md"
LIMITS = EngineLimits(most=20, per_page=10)
TEXT = "投诉：光明高钙牛奶喝了第一口就发现结块了，打电话给客服也没有人理会，要求退款并且赔偿损失，希望尽快处理这件事情"

_MAY_BE_LESS = ("offered", "tried", "lost_s")
"""Faded sums that are far enough below the plain ones in the story for a change to go unseen."""


class Part(NamedTuple):
    """What is proved of a column that is proved in part.

    Attributes:
        rows: condition of the rows that are proved.
        but: kinds of changes that nothing tells even there: the first words of the kinds in `_changes`.
    """

    rows: str = "true"
    but: tuple[str, ...] = ()


_CRAWL = "'CRAWL' IN (from_state, to_state)"
_ENDED = "outcome IN ('succeeded', 'failed', 'silent')"
_PLANNED = "EXISTS (SELECT 1 FROM tasks t WHERE t.{} = {}.id)"
_CRAWLED = "(SELECT id FROM pages WHERE source IS NULL)"

PARTLY = {
    ("products", "counted_as"): Part("id IN (SELECT product_id FROM page_products WHERE verdict = 'review')"),
    ("products", "keywords"): Part(_PLANNED.format("product_id", "products")),
    ("products", "priority"): Part(_PLANNED.format("product_id", "products")),
    ("virtual_tasks", "id"): Part(_PLANNED.format("virtual_task_id", "virtual_tasks")),
    ("virtual_tasks", "keywords"): Part(_PLANNED.format("virtual_task_id", "virtual_tasks")),
    ("virtual_tasks", "planned_at"): Part(
        _PLANNED.format("virtual_task_id", "virtual_tasks"), ("near", "neighbour")
    ),
    ("tasks", "engine"): Part(
        "id IN (SELECT p.task_id FROM result_pages r JOIN task_parts p ON p.id = r.part_id)"
    ),
    ("targets", "url"): Part("kind = 'hit' AND state = 'stored'"),
    ("targets", "url_key"): Part("kind = 'hit' AND state = 'stored'"),
    ("targets", "state"): Part("state = 'stored' AND reason IS NULL OR state = 'todo'"),
    ("task_parts", "chunk_pages"): Part("pages > 1"),
    ("task_parts", "state"): Part(but=("word",)),
    ("task_parts", "provenance"): Part("found > 0 OR found IS NULL"),
    ("task_parts", "ended"): Part("provenance = 'counted'"),
    ("task_parts", "listed"): Part("provenance = 'counted'"),
    ("task_parts", "reported"): Part("parent_id IS NULL"),
    ("subtasks", "left"): Part("state NOT IN ('CRAWL', 'CANCELLED')"),
    ("subtasks", "lease_deadline"): Part(but=("near",)),
    ("pages", "url_key"): Part("source IS NULL"),
    ("page_products", "product_id"): Part(f"page_id IN {_CRAWLED}"),
    ("page_products", "linked_at"): Part(
        "EXISTS (SELECT 1 FROM pages p JOIN attempts a ON a.id = p.attempt_id "
        "WHERE p.id = page_products.page_id AND a.product_id = page_products.product_id)"
    ),
    ("page_products", "verdict"): Part(but=("word", "neighbour")),
    ("page_products", "missing"): Part("verdict <> 'wrong_product'"),
    ("reviews", "copy_key"): Part("same_as IS NOT NULL"),
    ("reviews", "refused"): Part(but=("neighbour",)),
    ("review_links", "review_id"): Part(but=("near", "neighbour")),
    ("review_links", "similarity"): Part(but=("near",)),
    **{("attempts", name): Part(but=("near", "neighbour")) for name in ("started_at", "progress_at")},
    **{
        ("attempts", name): Part(_ENDED)
        for name in ("offered", "tried", "collected", "late", "active_s", "wait_s", "lost_s", "requests")
    },
    ("attempts", "more"): Part(
        "subtask_id IN (SELECT a.id FROM subtasks a JOIN subtasks b ON b.part_id = a.part_id AND b.chunk = a.chunk + 1)"
    ),
    ("events", "at"): Part(
        f"{_CRAWL} OR id IN (SELECT min(id) FROM events GROUP BY subtask_id UNION SELECT max(id) FROM events "
        "GROUP BY subtask_id)"
    ),
    **{("events", name): Part(_CRAWL) for name in ("token", "attempt_id", "node")},
    ("events", "reason"): Part(f"{_CRAWL} AND transition <> 'cancel'"),
    **{
        ("pair_stats", f"f_{name}"): Part("attempts > 0", ("near", "neighbour", "empty"))
        for name in SUMS
        if name not in _MAY_BE_LESS
    },
}
"""Columns that are proved on some rows or in some ways only; the docs list them, too."""

LEGAL_VALUES: dict[tuple[str, str], list[str]] = {
    ("subtasks", "state"): [str(one) for one in State],
    ("events", "from_state"): [str(one) for one in State],
    ("events", "to_state"): [str(one) for one in State],
    ("events", "transition"): [str(one) for one in Transition],
    ("targets", "state"): ["todo", "stored", "refused", "given_up"],
    ("targets", "kind"): ["result", "hit"],
    ("attempts", "outcome"): ["succeeded", "failed", "silent", "released", "cancelled"],
    ("task_parts", "state"): [str(one) for one in PartitionState],
    ("task_parts", "provenance"): [str(one) for one in Provenance],
    ("tasks", "found_provenance"): [str(one) for one in Provenance],
    ("page_products", "verdict"): ["review", "wrong_product", "near_product", "no_review", "unjudged"],
}


class Story:
    """A short run in the tests' world in which everything happens that leaves a row."""

    def __init__(self, store: Store) -> None:
        self.world = World(store)
        times = TimeFilter(params={"gpc": "stf={from_s},{to_s}|stftype=1"}, least="hour")
        engine = CATALOG.engines["baidu"].model_copy(update={"max_hits": 20, "times": times})
        catalog = CATALOG.model_copy(update={"engines": {**CATALOG.engines, "baidu": engine}})
        self.world.context = replace(self.world.context, catalog=catalog)
        self.world.node("n1")
        self.world.node("n2")
        self.collected()
        self.recalled_and_retried()
        self.waiting_and_cancelled()
        self.split_and_relaxed()
        self.known_and_refused()
        self.of_hosts_and_nodes()
        self.imported()
        self.corrected()
        self.world.pass_s(100)
        self.world.begin(self.world.waiting("正在采集"))
        self.world.waiting("等待")

    def read(
        self,
        lease: Lease,
        target: WorkTarget,
        names: list[str],
        *,
        found: int | None,
        more: bool = False,
        **how: Any,
    ) -> tuple[WorkTarget, ...]:
        urls = [hit(name) for name in names]
        page = ResultPage(found, tuple(Hit(url, "标题") for url in urls), not urls, more)
        hits = [FoundHit(canonical(url), page_key(url)) for url in urls]
        read = ResultPageToStore(
            lease=lease, target=target, page=page, hits=hits, more=more, limits=LIMITS, **how
        )
        (stored,) = self.world.do(pages.save_result_pages, [read])
        found_targets: tuple[WorkTarget, ...] = stored.todo
        return found_targets

    def collected(self) -> None:
        """Two chunks: pages with equal and nearly equal reviews, hits refused, given up, left over, one page late."""
        world = self.world
        first = world.waiting("光明高钙牛奶", chunks=(True, False), priority=2)
        lease, work = world.begin(first)
        world.pass_s(1)
        one, two, three, four = self.read(lease, work.targets[0], ["1", "2", "3", "4"], found=None, more=True)
        judged = review("a", TEXT)._replace(
            voice=VoiceJudgement("complaint", 0.9, 0.95, -0.5, "m"), themes=(Theme("spoiled", -1, 3, 21),)
        )
        world.save(lease, one, [judged, review("b", "同感")])
        world.pass_s(1)
        world.save(lease, two, [review("a", "同感"), review("b", TEXT + "。谢谢")])
        world.progress(lease, Counters(offered=4, tried=2, requests=3))
        world.end_target(lease, three, "refused", "not_found")
        world.end_target(lease, four, "todo", "timeout")
        world.pass_s(1)
        counted = Counters(
            offered=3,
            tried=3,
            collected=2,
            requests=5,
            bytes=2000,
            active_s=1.25,
            wait_s=0.5,
            errors={"timeout": 1},
            statuses={"200": 4, "timeout": 1},
        )
        world.close(lease, counted, round_trip=RoundTrip(80.0, 5))
        world.pass_s(1)
        world.sweep(sweeps.wake)
        world.pass_s(120)
        link_reposts(world.store, world.do, lambda: 0.0, 1.0)
        late = world.waiting("迟到")
        lease, work = world.begin(late)
        (only,) = self.read(lease, work.targets[0], ["late"], found=1)
        world.pass_s(70)
        world.sweep(recalling.recall)
        world.save(lease, only)

    def recalled_and_retried(self) -> None:
        world = self.world
        failed = world.waiting("被召回")
        lease, work = world.begin(failed)
        self.read(lease, work.targets[0], ["r1", "r2"], found=7)
        world.pass_s(1)
        world.close(lease, Counters(offered=2, tried=1, requests=2), reason=FailureReason.BLOCKED)
        world.pass_s(1)
        world.sweep(recalling.recall)
        by_hand = world.waiting("人工")
        lease, _ = world.begin(by_hand, "n2")
        world.close(lease, Counters(requests=1, known=1), reason=FailureReason.BAD_RULE)
        world.sweep(recalling.recall)
        world.pass_s(5)
        world.do(manual.retry, by_hand, node="n2")
        again = world.waiting("再人工")
        lease, _ = world.begin(again, "n2")
        world.close(lease, Counters(requests=1), reason=FailureReason.BAD_RULE)
        world.sweep(recalling.recall)

    def waiting_and_cancelled(self) -> None:
        world = self.world
        held = world.waiting("无人应答")
        lease, _ = world.begin(held)
        world.pass_s(1)
        world.close(lease, **unanswered())
        back = world.waiting("放回")
        lease, _ = world.begin(back)
        world.interrupt(lease, Counters(wait_s=0.2), "shutdown")
        gone = world.waiting("取消")
        world.begin(gone)
        world.do(attempts.cancel, gone, because(Reason.PERSON_SAID, text="not wanted"))

    def split_and_relaxed(self) -> None:
        world = self.world
        first = world.waiting("太多", words=("光明", "高钙", "牛奶"))
        lease, work = world.begin(first)
        self.read(lease, work.targets[0], [f"m{n}" for n in range(10)], found=45, more=True)
        world.close(lease, Counters(offered=10, tried=10))
        none = world.waiting("太少", words=("蒙牛", "高钙", "牛奶"))
        lease, work = world.begin(none)
        self.read(lease, work.targets[0], [], found=0)
        world.close(lease, Counters())
        world.sweep(sweeps.wake)

    def known_and_refused(self) -> None:
        """A known page, and one that is about another product, whose reviews are kept back."""
        world = self.world
        lease, work = world.begin(world.waiting("已知", words=("光明", "牛奶")))
        (other,) = self.read(lease, work.targets[0], ["1", "w"], found=None)
        refused = (("login", review("c", "请先登录")), ("list", review("d", "更多")))
        world.save(lease, other, [review("a", "别的"), review("b", "东西")], refused=refused, judge=True)
        world.close(lease, Counters(offered=1, tried=1, known=1))
        world.judge_links()

    def of_hosts_and_nodes(self) -> None:
        world = self.world
        world.do(lambda tx: hosts.save_robots(tx, Robots(SITE, 200, "User-agent: *", tx.now)))
        assert world.do(
            products.add, NewProduct(name="每周", keywords=("每周",), recrawl_every=timedelta(days=7))
        )
        world.do(lambda tx: upkeep.store_value(tx, upkeep.RUN_TIME_MODEL, tx.now, {"network": {}}))
        second = Node("second", frozenset(Kind), 4, None, "proxy.cn:80", Proxy("http://proxy.cn:80"))
        world.do(nodes.add, second, 4)
        report = world.do(
            schedules.add, ScheduleKind.REPORT, Recurrence("0 8 * * 1", "UTC"), {"to": "file:/reports"}
        )
        world.pass_s(10 * 86_400)
        world.do(schedules.end_run, world.do(schedules.claim_due, report.id), "no answer")
        world.pass_s(-10 * 86_400)
        world.do(notices.record_action, "a person", "drain", "node n1")
        world.do(notices.keep_alerts, [Alert("silent", "n1", because(Reason.NODE_AWAY), 1.0)])
        (weekly,) = [one for one in world.look(tasks.list_unplanned, 10) if one.product == "每周"]
        world.do(tasks.put_off, weekly, {SITE: ("robots", because(Reason.HOST_ANSWERS_NOBODY, host=SITE))})

    def imported(self) -> None:
        """A product that came by an import alone, and its review; it is added again; an import that was undone."""
        world = self.world
        number = world.do(numbered_imports.begin, ImportKind.REVIEWS, "r.csv", "a person", "shop")
        brought = NewProduct(name="自带", keywords=("自带",), sites=())
        assert world.do(imported_products.add, number, [brought]) == [True]
        own = Review(review_key("", "", "", "很好", 4.0), "", "很好", "", "", None, 4.0)
        one = ImportedReview("自带", "自带", "jd.com", "", own, page_of_import("jd.com", "", "自带"))
        ids = world.look(products.ids, ["自带"])
        assert world.do(lambda tx: imports.save(tx, "shop", [one], ids, number)) == [False]
        world.do(numbered_imports.end, number)
        again = world.do(numbered_imports.begin, ImportKind.PRODUCTS, "p.csv", "a person")
        weekly = replace(brought, sites=None, recrawl_every=timedelta(days=7))
        assert world.do(imported_products.add, again, [weekly, replace(brought, name="另一")]) == [True, True]
        world.do(numbered_imports.count, again, 2, 0)
        world.do(numbered_imports.end, again)
        undone = world.do(numbered_imports.begin, ImportKind.REVIEWS, "gone.csv", "a person", "shop")
        world.do(numbered_imports.end, undone)
        world.do(numbered_imports.begin_undo, undone)
        assert world.do(numbered_imports.end_undo, undone)
        world.do(products.edit, "另一", ProductEdit(priority=1))
        world.do(products.edit, "自带", ProductEdit(counted_as="另一"))

    def corrected(self) -> None:
        """Reviews that a person corrected and hid, words that must not occur, and a theme that was archived."""
        world = self.world
        (product_id, *_) = world.look(products.ids, ["光明高钙牛奶"]).values()
        given = Correction(voice=Voice.QUESTION, themes=("packaging",), not_products=(product_id,))
        for number, one in (
            (2, given),
            (max(row.id for row in world.rows(reviews)), Correction(hidden=True)),
        ):
            world.do(correcting.save, world.look(list_linked, number), one, "a person", "it asks")
        world.do(store_excluded_words, product_id, ["奶粉", "罐"])
        world.do(archived_themes.archive, product_id, "packaging")


@contextmanager
def unguarded(store: Store, now: datetime | None = None) -> Iterator[Transaction]:
    """A transaction without foreign keys, as with the program `sqlite3`; it is rolled back at its end."""
    with store.engine.connect() as conn:
        if store.is_sqlite:
            ask_driver(conn.connection.driver_connection, "PRAGMA foreign_keys=OFF")
        tx = Transaction(conn, now)
        try:
            if not store.is_sqlite:
                tx.run("SET LOCAL session_replication_role = replica")
            yield tx
        finally:
            tx.roll_back()
            if store.is_sqlite:
                ask_driver(conn.connection.driver_connection, "PRAGMA foreign_keys=ON")


def _changes(column: Column[Any], value: Any, others: Sequence[Any]) -> dict[str, Any]:
    """Return other values for a column of a row, by the kind of change.

    Args:
        others: values of this column in other rows.
    """
    changed = dict(_of_type(column, value))
    changed |= {f"neighbour {n}": other for n, other in enumerate(others[:2])}
    changed |= {
        f"word {legal}": legal for legal in LEGAL_VALUES.get((str(column.table.name), column.name), ())
    }
    if column.nullable:
        changed["empty"] = None
    changed = {kind: new for kind, new in changed.items() if new != value}
    if not isinstance(column.type, String | LargeBinary):
        changed[OTHER_TYPE] = text("'x'")
    return changed


OTHER_TYPE = "a text"
"""The kind of change that only SQLite takes: a text in a column of numbers, times or JSON."""
_STEPS = {
    "near": timedelta(seconds=1),
    "near, less": timedelta(seconds=-1),
    "day": timedelta(days=1),
    "day, less": timedelta(days=-1),
    "far": timedelta(days=400),
    "far, less": timedelta(days=-400),
}


def _of_type(column: Column[Any], value: Any) -> Mapping[str, Any]:
    """Return other values that only the type of the column decides, and its value; by the kind of change."""
    if value is None:
        return {"new": _NEW.get(type(column.type), 7)}
    if isinstance(value, bool):
        return {"other": not value}
    if isinstance(value, datetime):
        return {kind: value + step for kind, step in _STEPS.items()}
    if isinstance(value, date):
        return {"near": value + timedelta(days=1), "far": value - timedelta(days=400)}
    if isinstance(value, str):  # no longer than it may be
        near = {"near": value[:-1] + "~", "near, first": "~" + value[1:]}
        return {**near, "far": "word"[: len(value) or 1], "empty": "", "case": value.swapcase()}
    if isinstance(value, bytes):
        near = {"near": bytes([value[0] ^ 1]) + value[1:], "near, last": value[:-1] + b"~"} if value else {}
        return {"longer": value + b"1", "far": bytes(len(value) + 1), "empty": b"", **near}
    if isinstance(value, list):
        return {"near": [*value, "x"], "near, less": value[:-1], "far": ["x"], "empty": [], "other": {}}
    if isinstance(value, dict):
        less = dict(list(value.items())[1:])
        return {"near": {**value, "x": 1}, "near, less": less, "far": {"x": 1}, "empty": {}, "other": []}
    near = {"near": value * 0.99, "near, more": value + 0.01} if isinstance(value, float) else {}
    near = near or {"near": value + 1, "near, less": value - 1}
    return {**near, "far": value + 1000, "far, less": -value - 1000, "empty": 0}


_NEW: dict[type, Any] = {
    UtcDateTime: datetime(2026, 1, 2, tzinfo=UTC),
    Date: date(2026, 1, 2),
    String: "x",
    Text: "x",
    LargeBinary: b"x" * 16,
    type(events.c.detail.type): {"x": 1},
}
"""Values for columns that have none, by type; numbers get 7."""


def _rows(tx: Transaction, column: Column[Any]) -> list[Row[Any]]:
    """Return the last row, and the first one of each kind: with the same empty columns and the same words."""
    table = column.table
    assert isinstance(table, Table)
    query = select(table).order_by(*table.primary_key.columns)
    if part := PARTLY.get((table.name, column.name)):
        query = query.where(text(f"({part.rows})"))
    found = tx.engine_connection.execute(query).all()
    first: dict[tuple[Any, ...], int] = {}
    for place, row in enumerate(found):
        first.setdefault(tuple(_kind(table, *item) for item in row._mapping.items()), place)
    return [found[place] for place in sorted({*first.values(), len(found) - 1}) if found]


def _kind(table: Table, name: str, value: Any) -> Any:
    """Return what is common to rows of one kind in a column."""
    return value if isinstance(value, bool) or (table.name, name) in LEGAL_VALUES else value is None


def _others(tx: Transaction, column: Column[Any], value: Any) -> list[Any]:
    """Return values that the column has in other rows, or the keys that it may refer to."""
    source = next(iter(column.foreign_keys)).column if column.foreign_keys else column
    found = tx.engine_connection.scalars(select(source).where(source.is_not(None))).all()
    return [one for n, one in enumerate(found) if one != value and one not in found[:n]]


def _outcome(tx: Transaction, column: Column[Any], row: Row[Any], value: Any) -> str:
    """What a change comes to: refused by the database, seen, or unseen."""
    table = column.table
    assert isinstance(table, Table)
    key = [one == row._mapping[one.name] for one in table.primary_key.columns]
    step = tx.engine_connection.begin_nested()
    try:
        tx.engine_connection.execute(update(table).where(*key).values({column.name: value}))
        return "seen" if verify(tx).violations else "unseen"
    except (Unstorable, IntegrityError, DataError, OperationalError):
        return "refused"
    finally:
        step.rollback()


def _documented() -> dict[tuple[str, str], str]:
    """What docs/verify.md says is not proved: (table, column) to the reason."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| ([^|]+) \|$", DOCS.read_text(), re.MULTILINE)
    return {
        (table, name): why.strip() for table, names, why in rows for name in re.findall(r"`(\w+)`", names)
    }


@pytest.mark.slow
def test_each_column_is_proved_or_said_not_to_be(store: Store) -> None:
    """At least five other values of each column where its type has as many, with foreign keys off."""
    story = Story(store)
    assert story.world.verification().violations == ()
    outcomes: dict[tuple[str, str], dict[str, set[str]]] = {}
    with unguarded(store, story.world.now) as tx:
        for table in metadata.sorted_tables:
            for column in table.columns:
                rows = _rows(tx, column)
                assert rows, f"the story leaves no row to change {table.name}.{column.name} in"
                found = outcomes.setdefault((table.name, column.name), defaultdict(set))
                for row in rows:
                    value = row._mapping[column.name]
                    for kind, new in _changes(column, value, _others(tx, column, value)).items():
                        found[kind].add(_outcome(tx, column, row, new))
    by_type = {outcome for found in outcomes.values() for outcome in found.pop(OTHER_TYPE, ())}
    assert store.is_sqlite or by_type == {"refused"}
    unseen = {
        of: {kind for kind, told in found.items() if "unseen" in told} for of, found in outcomes.items()
    }
    unseen = {of: kinds for of, kinds in unseen.items() if kinds}
    documented = _documented()
    print(Counter("unseen" if of in unseen else "seen" for of in outcomes))
    assert documented.keys() - outcomes.keys() == set(), "no such column"
    new = {of: kinds for of, kinds in unseen.items() if of not in documented}
    assert new == {}, "changed, and neither seen nor listed in docs/verify.md"
    assert documented.keys() - unseen.keys() - PARTLY.keys() == set(), "listed as not proved, and seen"
    more = {
        of: [kind for kind in unseen.get(of, ()) if not kind.startswith(part.but)]
        for of, part in PARTLY.items()
    }
    assert {of: kinds for of, kinds in more.items() if kinds} == {}, "said to be proved on these rows"
    assert PARTLY.keys() - documented.keys() == set(), "proved on some rows only, and not listed"
    assert story.world.verification().violations == ()


def _delete(tx: Transaction, table: Table, row: Row[Any]) -> None:
    tx.engine_connection.execute(
        table.delete().where(*(one == row._mapping[one.name] for one in table.primary_key))
    )


def _double(tx: Transaction, table: Table, row: Row[Any]) -> None:
    """Insert the row again, under a number of its own where rows have numbers."""
    copied = dict(row._mapping)
    if "id" in copied:
        copied["id"] = tx.engine_connection.execute(select(func.max(table.c.id))).scalar_one() + 1
    tx.engine_connection.execute(table.insert().values(copied))


ROW_CHANGES: dict[str, Callable[[Transaction, Table, Row[Any]], None]] = {
    "a row that is gone": _delete,
    "a row that is there twice": _double,
}


def _row_outcome(tx: Transaction, table: Table, row: Row[Any], change: str) -> str:
    step = tx.engine_connection.begin_nested()
    try:
        ROW_CHANGES[change](tx, table, row)
        return "seen" if verify(tx).violations else "unseen"
    except (Unstorable, IntegrityError, DataError):
        return "refused"
    finally:
        step.rollback()


@pytest.mark.slow
def test_each_row_is_proved_or_said_not_to_be(store: Store) -> None:
    story = Story(store)
    unseen: dict[tuple[str, str], list[Any]] = {}
    with unguarded(store, story.world.now) as tx:
        for table in metadata.sorted_tables:
            rows = tx.engine_connection.execute(select(table).order_by(*table.primary_key.columns)).all()
            for change in ROW_CHANGES:
                for row in rows:
                    if _row_outcome(tx, table, row, change) == "unseen":
                        unseen.setdefault((table.name, change), []).append(tuple(row))
    for of, rows in unseen.items():
        print(*of, len(rows), rows[:2])
    changes = "|".join(ROW_CHANGES)
    listed = set(re.findall(rf"^\| `(\w+)` \| ({changes}) \|", DOCS.read_text(), re.MULTILINE))
    assert unseen.keys() - listed == set(), "neither seen nor listed in docs/verify.md"
    assert listed - unseen.keys() == set(), "listed as not proved, and seen"
