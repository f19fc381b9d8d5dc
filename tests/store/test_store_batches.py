"""A kind gives exactly what its items give one by one: the same results and the same database."""

from copy import copy
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
from contents import Snapshot, empty
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from world import AFTER_ATTEMPT, SILENT, World, hit, review, target_end

from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.page_key import page_key
from tasks.domain.pages import Hit, ResultPage
from tasks.domain.states import Transition
from tasks.domain.verdicts import Verdict
from tasks.store.content.pages import STORE_PAGES, STORE_RESULT_PAGES, STORE_TARGET_ENDS
from tasks.store.queue import attempts, transitions
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close
from tasks.store.queue.leases import BEGIN_LEASES, RENEW_LEASES, Renewal, Work
from tasks.store.queue.result_pages import FoundHit, ResultPageToStore, StoredHits
from tasks.store.sql.tables import metadata, reviews
from tasks.store.sql.writer import BatchOperation

OLD = hit("old")
Item = tuple[BatchOperation[Any, Any], Any]
Step = tuple[Any, ...]


class Scene:
    """A world that holds leases of every kind, the same one each time.

    Attributes:
        leases: `first` and `second` (chunks of one task whose result pages are unread), `reading` (its hits are to
            be fetched), `granted` (not begun), `lost` and its successor `next` (two leases of one subtask).
        targets: result pages (address ``""``) and hits, by lease and address.
    """

    def __init__(self, store):
        empty(store)
        self.world = World(store)
        self.leases = {}
        self.targets = {}
        self._store_the_old_page()
        self._lose_a_lease()
        self._begin("reading", self.world.waiting("乙"))
        self._read("reading", [hit("1"), hit("2"), hit("3"), OLD])
        for name, subtask_id in zip(
            ("first", "second"), self.world.add("甲", chunks=(True, True)), strict=True
        ):
            self.world.do(transitions.move, Transition.ADMIT, [transitions.Move(subtask_id)])
            self._begin(name, subtask_id)
        granted = self.world.grant(self.world.waiting("丁"))
        assert granted is not None
        self.leases["granted"] = granted
        self.world.pass_s(1)

    def _store_the_old_page(self):
        self._begin("old", self.world.waiting("老"))
        self._read("old", [OLD])
        lease = self.leases["old"]
        target = self.targets["old", OLD]
        assert self.world.save(lease, target, [review("a", "x"), review("#1", "y")])
        assert self.world.close(lease, Counters(offered=1, tried=1, collected=1))
        self.world.pass_s(3600)

    def _lose_a_lease(self):
        self._begin("lost", self.world.waiting("丙"))
        self._read("lost", [hit("1"), hit("4")])
        lost = self.leases["lost"]
        self.world.pass_s(61)
        assert self.world.do(attempts.silence, {lost: FailureReason.SILENT})
        recalled = transitions.Move(
            lost.subtask_id, {"recalls": 1}, node=lost.node, reason=FailureReason.SILENT
        )
        self.world.do(transitions.move, Transition.RECALL, [recalled])
        self._begin("next", lost.subtask_id)

    def _begin(self, name, subtask_id):
        lease, work = self.world.begin(subtask_id)
        self.leases[name] = lease
        for target in work.targets:
            self.targets[name, target.url if target.kind == "hit" else ""] = target

    def _read(self, name, urls):
        found = self.world.read_results(
            self.leases[name], self.targets[name, ""], urls, refresh=timedelta(hours=1)
        )
        self.targets |= {(name, target.url): target for target in found.todo}

    def item(self, step):
        """What a step asks to be written."""
        kind, name, *rest = step
        lease = self.leases[name]
        match kind:
            case "start":
                return BEGIN_LEASES, Renewal(lease, SILENT)
            case "results":
                urls, more, refresh_s = rest
                found = [FoundHit(url, page_key(url)) for url in urls]
                page = ResultPage(len(urls), tuple(Hit(url, "标题") for url in urls), not urls, more)
                refresh = None if refresh_s is None else timedelta(seconds=refresh_s)
                target = self.targets[name, ""]
                return STORE_RESULT_PAGES, ResultPageToStore(
                    lease=lease, target=target, page=page, hits=found, more=more, refresh=refresh
                )
            case "page":
                url, digest, read = rest
                return STORE_PAGES, self._page(lease, self.targets[name, url], digest, read)
            case "end":
                url, state = rest
                reason = "unchanged" if state == "stored" else "why"
                end = target_end(lease, self.targets[name, url], state, reason, counts=state != "stored")
                return STORE_TARGET_ENDS, end
            case "progress":
                return RENEW_LEASES, Renewal(
                    lease, SILENT, Counters(offered=rest[0], tried=rest[0], wait_s=0.25)
                )
            case _:
                tried, reason, given_back = rest
                rests = (Rest("h.cn", "captcha", lambda times: 60.0 * times),) if reason else ()
                gave = frozenset() if reason else frozenset({"h.cn"})
                counters = Counters(offered=tried + 1, tried=tried, active_s=0.5)
                return CLOSE_ATTEMPTS, Close(
                    lease,
                    AttemptReport(
                        counters=counters, reason=reason, given_back=given_back, rests=rests, page_hosts=gave
                    ),
                    AFTER_ATTEMPT,
                )

    def _page(self, lease, target, digest, read):
        made = []
        for place, (key, body) in enumerate(read):
            taken = key in {review.key for review in made}
            made.append(review(f"#{place}" if taken or not key else key, body))
        return self.world.page(lease, target, made, content_hash=digest * 32)


_SCENES = {}


def _scene(store):
    """The scene in a store: made once, then put back, which takes a tenth of the statements."""
    if store.is_sqlite not in _SCENES:
        with patch("tasks.store.queue.leases.uuid.uuid4", _tokens()):
            _SCENES[store.is_sqlite] = Scene(store), Snapshot(store)
    made, rows = _SCENES[store.is_sqlite]
    rows.restore(store)
    scene = copy(made)
    scene.world = World(store)
    scene.world.now = made.world.now
    return scene


# --- the two ways to write ----------------------------------------------------------------------------------


def _in_one_batch(world, items):
    """All in one transaction, items of one kind in one call."""
    results = [None] * len(items)

    def write(tx):
        for kind in sorted({kind for kind, _ in items}, key=lambda kind: kind.rank):
            places = [place for place, (other, _) in enumerate(items) if other is kind]
            done = kind.run(tx, [items[place][1] for place in places])
            for place, result in zip(places, done, strict=True):
                results[place] = result

    world.do(write)
    return results


def _one_by_one(world, items):
    """Each in a transaction of its own, in the order of their ranks."""
    results = [None] * len(items)
    for place in sorted(range(len(items)), key=lambda place: items[place][0].rank):
        kind, item = items[place]
        (results[place],) = world.do(kind.run, [item])
    return results


def _plain(result):
    """A result without the numbers of rows."""
    match result:
        case StoredHits(todo, known):
            return [(t.url, t.tries, t.etag) for t in todo], sorted(known)
        case Work(chunk=chunk, targets=targets):
            return chunk, [(t.kind, t.url, t.tries) for t in targets]
    return result


def _content(store):
    """Every row of every table; pages, reviews and targets by what they are, as their numbers tell nothing."""
    with store.read() as tx:
        rows = {
            table.name: tx.engine_connection.execute(select(table).order_by(*table.primary_key))
            .mappings()
            .all()
            for table in metadata.sorted_tables
        }
    url_of = {row["id"]: row["url"] for row in rows["pages"]}
    content = {}
    for name, of_table in rows.items():
        plain = []
        for row in of_table:
            values = dict(row)
            if name in ("pages", "reviews", "targets", "events"):
                del values["id"]
            if "page_id" in values:
                values["page_id"] = url_of[values["page_id"]]
            values.pop("same_as", None)  # see `_linked`
            if "serial" in values:  # as of ids, it matters only that it grows
                values["serial"] = values["verdict"] == Verdict.REVIEW and values["serial"] > 0
            plain.append(repr(values))
        content[name] = plain if name == "events" else sorted(plain)
    content["events"].sort(key=lambda event: event.partition("'subtask_id': ")[2].partition(",")[0])
    return content


def _linked(store):
    """Of equal texts, one is the original and all others are linked to it."""
    with store.read() as tx:
        stored = tx.engine_connection.execute(
            select(reviews.c.id, reviews.c.text_hash, reviews.c.same_as)
        ).all()
    originals = {bytes(row.text_hash): row.id for row in stored if row.same_as is None}
    assert len(originals) == sum(row.same_as is None for row in stored)
    for row in stored:
        assert row.same_as is None or row.same_as == originals[bytes(row.text_hash)]


# --- what is written ----------------------------------------------------------------------------------------

_HITS = st.lists(st.sampled_from([hit(name) for name in "1245"] + [OLD]), unique=True, max_size=4)
_READ = st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from("xyz")), min_size=1, max_size=4)
_PAGES = [
    ("reading", hit("1")),
    ("reading", hit("2")),
    ("reading", OLD),
    ("lost", hit("1")),
    ("lost", hit("4")),
    ("next", hit("1")),
    ("next", hit("4")),
]
_STEPS = st.one_of(
    st.tuples(st.just("start"), st.sampled_from(["granted", "granted", "reading", "lost"])),
    st.tuples(
        st.just("results"),
        st.sampled_from(["first", "second", "lost"]),
        _HITS,
        st.booleans(),
        st.sampled_from([None, 60.0, 1e6]),
    ),
    st.sampled_from(_PAGES).flatmap(
        lambda of: st.tuples(st.just("page"), *map(st.just, of), st.sampled_from("01"), _READ)
    ),
    st.sampled_from(
        [
            ("end", "reading", hit("3"), "todo"),
            ("end", "reading", hit("2"), "refused"),
            ("end", "reading", OLD, "stored"),
            ("end", "next", hit("4"), "given_up"),
            ("end", "lost", hit("1"), "given_up"),
        ]
    ),
    st.tuples(
        st.just("progress"), st.sampled_from(["reading", "next", "lost", "granted"]), st.integers(0, 3)
    ),
    st.tuples(
        st.just("close"),
        st.sampled_from(["reading", "next", "lost", "first"]),
        st.integers(0, 2),
        st.sampled_from([None, None, FailureReason.BLOCKED]),
        st.sampled_from([None, None, "drained"]),
    ),
)


def _once(step):
    """No attempt fetches a target twice, or reads a result page twice."""
    kind, name, *rest = step
    return (kind, name, rest[0]) if kind in ("page", "end") else (kind, name) if kind == "results" else step


_GRAINS = st.lists(
    st.lists(_STEPS, min_size=1, max_size=10, unique_by=lambda s: repr(_once(s))), min_size=1, max_size=2
)


def _tokens():
    numbers = count()
    return lambda: SimpleNamespace(hex=f"token {next(numbers)}")


def _written(store, batches, write):
    scene = _scene(store)
    results = []
    for steps in batches:
        results += map(_plain, write(scene.world, [scene.item(step) for step in steps]))
        scene.world.pass_s(1)
    _linked(store)
    assert scene.world.verification().violations == ()
    return results, _content(store)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=_GRAINS)
@pytest.mark.slow
def test_a_batch_gives_what_its_items_give_one_by_one(store, batches):
    in_batches = _written(store, batches, _in_one_batch)
    alone = _written(store, batches, _one_by_one)
    assert in_batches == alone


@pytest.mark.parametrize(
    ("before", "steps"),
    [
        pytest.param([], [("start", "granted"), ("start", "granted")], id="a notification that rings twice"),
        pytest.param(
            [],
            [("close", "reading", 1, None, None), ("close", "reading", 2, FailureReason.BLOCKED, None)],
            id="an attempt that closes twice",
        ),
        pytest.param(
            [],
            [
                ("page", "reading", hit("1"), "0", [("a", "x"), ("", "x")]),
                ("page", "next", hit("1"), "1", [("a", "x"), ("b", "z"), ("", "z")]),
                ("page", "lost", hit("1"), "1", [("b", "z")]),
            ],
            id="one page, three leases",
        ),
        pytest.param(
            [],
            [("page", name, hit("4"), "0", [("a", "x")]) for name in ("next", "lost")],
            id="in time, then late",
        ),
        pytest.param(
            [],
            [("page", name, hit("4"), "0", [("a", "x")]) for name in ("lost", "next")],
            id="late, then in time",
        ),
        pytest.param(
            [("close", "next", 0, FailureReason.BLOCKED, None)],
            [("page", name, hit("1"), "0", [("a", "x")]) for name in ("lost", "next")],
            id="two late pages of one target are two tries",
        ),
        pytest.param(
            [],
            [("results", name, [hit("1"), OLD, hit("5")], False, 60.0) for name in ("first", "second")],
            id="two chunks of a task that list the same hits",
        ),
        pytest.param(
            [],
            [
                ("page", "reading", hit("2"), "0", [("a", "x")]),
                ("end", "reading", OLD, "stored"),
                ("progress", "reading", 2),
                ("progress", "reading", 3),
                ("close", "reading", 2, None, None),
                ("close", "next", 1, FailureReason.BLOCKED, None),
                ("close", "first", 0, None, "drained"),
            ],
            id="to the end",
        ),
    ],
)
def test_what_meets_in_one_batch(store, before, steps):
    in_batches = _written(store, [before, steps], _in_one_batch)
    alone = _written(store, [before, steps], _one_by_one)
    assert in_batches == alone
