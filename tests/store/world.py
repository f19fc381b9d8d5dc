"""A store with a movable clock, and the few steps that every story about it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import partial, partialmethod
from random import Random
from typing import Any

import psycopg2.extensions
from contents import Snapshot
from sqlalchemy import Table, event, select

from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog, Limits
from splitter.catalog.names import Kind
from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.breaker import Rest
from tasks.domain.facts import HostFacts
from tasks.domain.failures import FailureReason
from tasks.domain.hit_count import NewPartition
from tasks.domain.page_key import canonical, page_key
from tasks.domain.pages import Hit, ResultPage, Review
from tasks.domain.reasons import Reason, because
from tasks.domain.states import State
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import VoiceJudgement
from tasks.fetching.hosts import HostCatalog
from tasks.jobs import judging, recalling, sweeps
from tasks.jobs.context import Context, LoopSettings
from tasks.jobs.scheduler_state import SchedulerState
from tasks.reading.copies.copy_key import copy_key
from tasks.reading.judge.product_match import matchable_text
from tasks.reading.judge.verdicts import judge_page
from tasks.scheduling import capacity
from tasks.scheduling.after_attempt import after_attempt
from tasks.scheduling.recall import RecallSettings
from tasks.store.content import counted_reviews, pages, products
from tasks.store.content.pages import NewPage, TargetEnd
from tasks.store.content.products import NewProduct
from tasks.store.content.reviews import PageOrigin, records_of
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue import attempts, hosts, leases, nodes, snapshot, tasks
from tasks.store.queue.leases import Grant, KeywordSets, Lease, Renewal, Work, WorkTarget
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore, StoredHits
from tasks.store.queue.tasks import NewTask, TaskQuery
from tasks.store.sql import tables
from tasks.store.sql.database import Store
from tasks.store.sql.tables import pair_stats, subtasks, targets
from tasks.store.sql.transaction import Transaction
from tasks.store.verify.verify import Verification, verify

AFTER_ATTEMPT = partial(after_attempt, rules=RecallSettings())
START = datetime(2026, 1, 1, tzinfo=UTC)
SILENT = timedelta(seconds=60)
SITE = "cca.org.cn"
CATALOG = builtin("paper-2014")
AS_LISTED = -1
LimitsOf = Callable[[str], Limits]


def review(key: str, body: str, author: str = "小明") -> Review:
    return Review(key, "标题", body, author, "2014-03-15", START, 1.0)


def hit(name: str, site: str = SITE) -> str:
    return f"http://{site}/{name}"


@contextmanager
def undone(store: Store, now: datetime | None = None) -> Iterator[Transaction]:
    """A transaction that is rolled back at its end."""
    with store.engine.connect() as conn:
        tx = Transaction(conn, now)
        try:
            yield tx
        finally:
            tx.roll_back()


@contextmanager
def statements(store: Store, *, by_round_trip: bool = False) -> Iterator[list[str]]:
    """The statements sent to the database, with their values; `by_round_trip`: what travels together is one text."""
    sent: list[str] = []

    class Noting(psycopg2.extensions.cursor):
        def execute(self, query: Any, vars: Any = None) -> None:
            text = self.mogrify(query, vars).decode()
            sent.extend([text] if by_round_trip else text.split(";\n"))
            super().execute(query, vars)

    def note(driver: Any, *_: object) -> None:
        if store.is_sqlite:
            driver.set_trace_callback(sent.append)
        else:
            driver.cursor_factory = Noting

    def forget(driver: Any, *_: object) -> None:
        if store.is_sqlite:
            driver.set_trace_callback(None)
        else:
            driver.cursor_factory = psycopg2.extensions.cursor

    event.listen(store.engine, "checkout", note)
    event.listen(store.engine, "checkin", forget)
    try:
        yield sent
    finally:
        event.remove(store.engine, "checkout", note)
        event.remove(store.engine, "checkin", forget)


def context_of(catalog: Catalog, settings: LoopSettings | None = None) -> Context:
    """Return the context of a scheduler that has just started."""
    loop = settings or LoopSettings()
    return Context(catalog, loop, HostCatalog(catalog), Random(0), SchedulerState(loop.strategy))


_SCENES: dict[tuple[Any, ...], tuple[Any, Snapshot]] = {}


def put_back(kind: Callable[..., Any], store: Store, *given: Any) -> Any:
    """Return the scene `kind(store, ...)` in this store: it is made once, then its rows are put back."""
    key = (kind, store.is_sqlite, *given)
    if key not in _SCENES:
        _SCENES[key] = kind(store, *given), Snapshot(store)
    made, rows = _SCENES[key]
    rows.restore(store)
    scene = copy(made)
    scene.world = World(store)
    scene.world.now = made.world.now
    return scene


class World:
    def __init__(self, store: Store, settings: LoopSettings | None = None) -> None:
        self.store = store
        self.now = START
        self.keyword_sets: dict[str, KeywordSets] = {}
        self.context = context_of(CATALOG, settings)

    def do(self, operation: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Run `operation(tx, ...)` in a transaction of its own."""
        with self.store.begin(now=self.now) as tx:
            return operation(tx, *args, **named)

    def change(self, statement: str) -> None:
        """Run a statement that changes reviews or their links behind the store's back, and count them again."""

        def run(tx: Transaction) -> None:
            numbers = [number for (number,) in tx.rows("SELECT id FROM reviews")]
            with counted_reviews.recount(tx, reviews=numbers):
                tx.run(statement)

        self.do(run)

    def sweep(self, sweep: Callable[..., Any]) -> Any:
        return self.do(sweep, self.context)

    admit = partialmethod(sweep, sweeps.admit)
    allocate = partialmethod(sweep, sweeps.allocate)
    wake = partialmethod(sweep, sweeps.wake)
    recall = partialmethod(sweep, recalling.recall)

    def look(self, operation: Callable[..., Any], *args: Any) -> Any:
        with self.store.read(now=self.now) as conn:
            return operation(conn, *args)

    def rows(self, table: Table, *where: Any) -> Sequence[Any]:
        def read(tx: Transaction) -> Sequence[Any]:
            order = list(table.primary_key.columns)
            return tx.engine_connection.execute(select(table).where(*where).order_by(*order)).all()

        return self.look(read)

    def pass_s(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def host_views(
        self, hosts_of: snapshot.HostsOf, limits_of: LimitsOf, request_s: float
    ) -> dict[str, HostFacts]:
        """Return the hosts of `SITE` as a strategy sees them, whose attempts have 4 lanes each."""
        crawled = self.look(sweeps.load_crawled, [SITE], {})
        return capacity.host_views(crawled, hosts_of, limits_of, {SITE: request_s}, 4, leases.HITS_UNREAD)

    def verification(self) -> Verification:
        """Without bounds for what is overdue: here no sweep runs by itself."""
        patient = Store(self.store.engine)
        patient.patient = True
        with patient.read(now=self.now) as tx:
            return verify(tx, None)

    # --- what is wanted -------------------------------------------------------------------------------------

    def add(
        self,
        name: str,
        *,
        sites: Sequence[str] = (SITE,),
        chunks: Sequence[bool] = (True,),
        priority: int = 0,
        words: tuple[str, ...] = ("蒙牛", "牛奶"),
    ) -> list[int]:
        """Add a product if it is not there, and plan it; returns its new subtasks.

        `chunks`: which chunks are the first of a partition.
        """
        planned = [
            NewTask(
                site,
                CATALOG.sites[site].engine,
                str(CATALOG.kind_of(site)),
                tuple(_partitions(chunks, words)),
            )
            for site in sites
        ]

        def urls(query: TaskQuery, pages: Sequence[int]) -> list[str]:
            return [f"http://search/{name}/{query.site}/{query.first_chunk + page - 1}" for page in pages]

        def make(tx: Transaction) -> int:
            products.add(tx, NewProduct(name=name, keywords=words, priority=priority))
            (wanted,) = [v for v in tasks.list_unplanned(tx, 100) if v.product == name]
            assert tasks.plan(tx, wanted, planned, urls) == len(sites)
            return wanted.product_id

        return [row.id for row in self.rows(subtasks, subtasks.c.product_id == self.do(make))]

    def waiting(self, name: str = "特仑苏", **named: Any) -> int:
        """A product's first subtask, admitted."""
        first, *_ = self.add(name, **named)
        self.admit()
        return first

    def node(self, name: str, slots: int = 4) -> None:
        self.do(nodes.register, nodes.Node(name, frozenset({Kind.META, Kind.MICROBLOG}), slots))

    def rest(self, node: str, rest: Rest) -> None:
        self.do(hosts.rest_hosts, [(node, rest)])

    # --- the life of an attempt -----------------------------------------------------------------------------

    def grant(self, subtask_id: int, node: str = "n1") -> Lease | None:
        wanted = Grant(subtask_id, node, 20, 30.0, {"why": "test"})
        given: list[Lease] = self.do(leases.grant, [wanted], SILENT)
        return given[0] if given else None

    def start(self, lease: Lease) -> Work | None:
        (work,) = self.do(leases.start_many, [Renewal(lease, SILENT)])
        return work

    def begin(self, subtask_id: int, node: str = "n1") -> tuple[Lease, Work]:
        """Grant and start."""
        lease = self.grant(subtask_id, node)
        assert lease is not None
        work = self.start(lease)
        assert work is not None
        self.keyword_sets[lease.token] = work.keyword_sets
        return lease, work

    def read_results(
        self,
        lease: Lease,
        target: WorkTarget,
        urls: Sequence[str],
        **named: Any,
    ) -> StoredHits:
        """Store a result page with these hits."""
        read = self.result_page(lease, target, urls, **named)
        (hits,) = self.do(pages.save_result_pages, [read])
        return hits

    @staticmethod
    def result_page(
        lease: Lease,
        target: WorkTarget,
        urls: Sequence[str],
        *,
        found: int | None = AS_LISTED,
        more: bool = False,
        **named: Any,
    ) -> ResultPageToStore:
        """A result page with these hits, as read; `found`: how many the engine reports."""
        reported = (len(urls) or None) if found == AS_LISTED else found
        page = ResultPage(reported, tuple(Hit(url, "标题") for url in urls), not urls, more)
        found = [FoundHit(canonical(url), page_key(url)) for url in urls]
        return ResultPageToStore(lease=lease, target=target, page=page, hits=found, more=more, **named)

    def found(
        self,
        product: str,
        urls: Sequence[str],
        words: tuple[str, ...] = ("蒙牛", "牛奶"),
        refresh: timedelta | None = None,
    ) -> tuple[Lease, StoredHits]:
        """A new product's lease, after its result page with these hits is stored."""
        lease, work = self.begin(self.waiting(product, words=words))
        return lease, self.read_results(lease, work.targets[0], urls, refresh=refresh)

    def page(
        self,
        lease: Lease,
        target: WorkTarget,
        reviews: Sequence[Review] | None = None,
        *,
        refused: Sequence[tuple[str, Review]] = (),
        judge: bool = False,
        title: str = "标题",
        **values: Any,
    ) -> NewPage:
        """The page of a hit as its node reads it. `judge`: pages of its site are judged."""
        read = [review("1", f"投诉 {target.url}")] if reviews is None else reviews
        verdict, missing = Verdict.REVIEW, tuple[str, ...]()
        if judge:
            text = matchable_text(title, [(one.title, one.body) for one in read])
            verdict, missing = judge_page(self.keyword_sets[lease.token], text, len(read))
        origin = PageOrigin(target.url, lease.site, lease.node, lease.attempt_id)
        return NewPage(
            lease=lease,
            target_id=target.id,
            url=target.url,
            key=page_key(target.url),
            title=title,
            encoding="utf-8",
            size=1000,
            records=records_of(origin, read, refused, verdict, copy_key),
            verdict=verdict,
            missing=" ".join(missing),
            **{"content_hash": "00" * 16, **values},
        )

    def save(
        self, lease: Lease, target: WorkTarget, reviews: Sequence[Review] | None = None, **page: Any
    ) -> bool:
        """Store the page of a hit (`page`); False if it was stored already."""
        (stored,) = self.do(pages.save_pages, [self.page(lease, target, reviews, **page)])
        return bool(stored)

    def judge_links(self, *, judge: bool = True) -> None:
        """Judge the links that have no verdict. `judge`: the sites of the catalog are judged."""
        sites = {name: site.model_copy(update={"judge": judge}) for name, site in CATALOG.sites.items()}
        voice = VoiceJudgement("other", 0.5, 0.5, 0.0, "test")
        of_page = judging.link_judge(
            CATALOG.model_copy(update={"sites": sites}),
            lambda found, *_: [one._replace(voice=voice) for one in found],
        )
        judging.judge_links(self.store, self.do, of_page, lambda: True)

    def end_target(
        self, lease: Lease, target: WorkTarget, state: str, reason: str, *, counts: bool = True
    ) -> None:
        """Store that a target gave no page; `reason` may be "unchanged"."""
        self.do(pages.end_targets, [target_end(lease, target, state, reason, counts=counts)])

    def progress(self, lease: Lease, counters: Counters | None = None) -> bool:
        (kept,) = self.do(leases.progress_many, [Renewal(lease, SILENT, counters or Counters())])
        return kept

    def close(self, lease: Lease, counters: Counters | None = None, **report: Any) -> bool:
        told = AttemptReport(counters=counters or Counters(), **report)
        (closed,) = self.do(attempts.close_many, [attempts.Close(lease, told, AFTER_ATTEMPT)])
        return closed

    def interrupt(self, lease: Lease, counters: Counters, why: str, **report: Any) -> bool:
        return self.close(lease, counters, given_back=because(Reason.OTHER, text=why), **report)

    def release(self, lease: Lease) -> bool:
        """Give a lease back that was not started; False if it was."""
        return bool(self.do(attempts.release, {lease: because(Reason.NODE_DRAINED)}))

    def silence(self, lease: Lease) -> bool:
        """Take a lease back whose node is silent; False if it is in force, or over."""
        return bool(self.do(attempts.silence, {lease: FailureReason.SILENT}))

    def cancel(self, subtask_id: int) -> None:
        self.do(attempts.cancel, subtask_id, because(Reason.PERSON_SAID, text="not wanted"))

    # --- in one line ----------------------------------------------------------------------------------------

    def granted(self, product: str = "特仑苏", node: str = "n1", **named: Any) -> Lease:
        """Return a lease of a new product's first subtask that is not started yet."""
        lease = self.grant(self.waiting(product, **named), node)
        assert lease is not None
        return lease

    def begun(self, product: str = "特仑苏", node: str = "n1", **named: Any) -> Lease:
        """Return a started lease of a new product's first subtask."""
        return self.begin(self.waiting(product, **named), node)[0]

    def failed(self, reason: FailureReason, product: str = "特仑苏", node: str = "n1") -> int:
        """Return a new product's first subtask, whose attempt failed."""
        lease = self.begun(product, node)
        assert self.close(lease, Counters(offered=1), reason=reason)
        return lease.subtask_id

    def stored_page(
        self,
        product: str,
        reviews: Sequence[Review] | None = None,
        url: str = hit("1"),
        words: tuple[str, ...] = ("蒙牛", "牛奶"),
        refresh: timedelta | None = None,
        **page: Any,
    ) -> tuple[Lease, WorkTarget]:
        """Find a page for a new product and store it; return the lease and the page's target."""
        lease, hits = self.found(product, [url], words, refresh)
        (target,) = hits.todo
        assert self.save(lease, target, reviews, **page)
        return lease, target

    def crawled(self, product: str = "特仑苏", names: str = "1", *, saved: int = 9, **named: Any) -> Lease:
        """Find hits with these names, store the first `saved` of them, and close the attempt."""
        lease, hits = self.found(product, [hit(name) for name in names], **named)
        stored = [self.save(lease, target) for target in hits.todo[:saved]]
        n = len(stored)
        assert self.close(lease, Counters(offered=n, tried=n, collected=n))
        return lease

    def add_product(self, name: str, **given: Any) -> bool:
        """Add a product that has no tasks yet; False if there is one of that name."""
        return bool(self.do(products.add, NewProduct(**{"name": name, "keywords": (name,), **given})))

    def run(self, statement: str, **values: Any) -> int:
        """Change rows by SQL; return how many."""
        return int(self.do(lambda tx: tx.run(statement, **values)))

    def exported(self, *names: str) -> list[tuple[str, str]]:
        """Product and text of each review that people see, of these products or of all."""
        wanted = ReviewFilter(products=names)
        return [(row.product, row.body) for row in self.look(lambda tx: list(list_reviews(tx, wanted)))]

    # --- what has become of it ------------------------------------------------------------------------------

    def subtask(self, subtask_id: int) -> Any:
        (row,) = self.rows(subtasks, subtasks.c.id == subtask_id)
        return row

    def state(self, subtask_id: int) -> State:
        return State(self.subtask(subtask_id).state)

    def attempts(self, subtask_id: int) -> Sequence[Any]:
        return self.rows(tables.attempts, tables.attempts.c.subtask_id == subtask_id)

    def find_targets(self, **values: Any) -> list[WorkTarget]:
        """Return the targets with these values, as work."""
        rows = self.rows(targets, *(targets.c[name] == value for name, value in values.items()))
        return [WorkTarget(id=r.id, kind=r.kind, url=r.url, key=r.url_key, tries=r.tries) for r in rows]

    def targets(self, subtask_id: int) -> dict[str, str]:
        """State by URL."""
        return {row.url: row.state for row in self.rows(targets, targets.c.subtask_id == subtask_id)}

    def pair(self, site: str = SITE, node: str = "n1") -> Any:
        rows = self.rows(pair_stats, pair_stats.c.site == site, pair_stats.c.node == node)
        return rows[0] if rows else None


def _partitions(chunks: Sequence[bool], words: tuple[str, ...]) -> list[NewPartition]:
    """Return partitions of one-page chunks, cut where `chunks` is True."""
    sizes: list[int] = []
    for first in chunks:
        if first:
            sizes.append(0)
        sizes[-1] += 1
    return [NewPartition(words, n, 1) for n in sizes]


def target_end(
    lease: Lease, target: WorkTarget, state: str, reason: str, *, counts: bool = True
) -> TargetEnd:
    unchanged = page_key(target.url) if reason == "unchanged" else None
    return TargetEnd(lease, target.id, state, reason, counts, unchanged)
