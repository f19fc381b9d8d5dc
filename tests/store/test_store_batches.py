"""A kind gives exactly what its items give one by one: the same results and the same database."""

from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from contents import empty
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from world import AFTER_ATTEMPT, SILENT, World, hit, put_back, review, target_end

from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.breaker import Rest
from tasks.domain.failures import FailureReason
from tasks.domain.reasons import Reason, because
from tasks.domain.states import Transition
from tasks.domain.verdicts import Verdict
from tasks.store.content.pages import STORE_PAGES, STORE_RESULT_PAGES, STORE_TARGET_ENDS
from tasks.store.queue import transitions
from tasks.store.queue.attempts import CLOSE_ATTEMPTS, Close
from tasks.store.queue.leases import BEGIN_LEASES, RENEW_LEASES, Renewal, Work
from tasks.store.queue.result_pages import StoredHits
from tasks.store.sql.tables import metadata, reviews

OLD = hit("old")


class Scene:
    """A world that holds leases of every kind, the same one each time.

    Attributes:
        leases: `first` and `second` (chunks of one task whose result pages are unread), `reading` (its hits are to
            be fetched), `granted` (not begun), `lost` and its successor `next` (two leases of one subtask).
        targets: result pages (address ``""``) and hits, by lease and address.
    """

    def __init__(self, store):
        empty(store)
        self.world = world = World(store)
        self.leases, self.targets = {}, {}
        self._begin("old", world.waiting("老"))
        self._read("old", [OLD])
        assert world.save(self.leases["old"], self.targets["old", OLD], [review("a", "x"), review("#1", "y")])
        assert world.close(self.leases["old"], Counters(offered=1, tried=1, collected=1))
        world.pass_s(3600)
        self._lose_a_lease()
        self._begin("reading", world.waiting("乙"))
        self._read("reading", [hit("1"), hit("2"), hit("3"), OLD])
        for name, subtask_id in zip(("first", "second"), world.add("甲", chunks=(True, True)), strict=True):
            world.do(transitions.move, Transition.ADMIT, [transitions.Move(subtask_id)])
            self._begin(name, subtask_id)
        self.leases["granted"] = world.granted("丁")
        world.pass_s(1)

    def _lose_a_lease(self):
        self._begin("lost", self.world.waiting("丙"))
        self._read("lost", [hit("1"), hit("4")])
        lost = self.leases["lost"]
        self.world.pass_s(61)
        assert self.world.silence(lost)
        recalled = transitions.Move(
            lost.subtask_id, {"recalls": 1}, node=lost.node, reason=FailureReason.SILENT
        )
        self.world.do(transitions.move, Transition.RECALL, [recalled])
        self._begin("next", lost.subtask_id)

    def _begin(self, name, subtask_id):
        self.leases[name], work = self.world.begin(subtask_id)
        for target in work.targets:
            self.targets[name, target.url if target.kind == "hit" else ""] = target

    def _read(self, name, urls):
        found = self.world.read_results(
            self.leases[name], self.targets[name, ""], urls, refresh=timedelta(hours=1)
        )
        self.targets |= {(name, target.url): target for target in found.todo}

    def item(self, step):
        """Return the kind and the item that a step asks to be written."""
        kind, name, *rest = step
        lease = self.leases[name]
        match kind:
            case "start":
                return BEGIN_LEASES, Renewal(lease, SILENT)
            case "results":
                urls, more, refresh_s = rest
                refresh = None if refresh_s is None else timedelta(seconds=refresh_s)
                target = self.targets[name, ""]
                return STORE_RESULT_PAGES, World.result_page(lease, target, urls, more=more, refresh=refresh)
            case "page":
                url, digest, read = rest
                made = []
                for place, (key, body) in enumerate(read):
                    taken = key in {one.key for one in made}
                    made.append(review(f"#{place}" if taken or not key else key, body))
                target = self.targets[name, url]
                return STORE_PAGES, self.world.page(lease, target, made, content_hash=digest * 32)
            case "end":
                url, state = rest
                reason = "unchanged" if state == "stored" else "why"
                end = target_end(lease, self.targets[name, url], state, reason, counts=state != "stored")
                return STORE_TARGET_ENDS, end
            case "progress":
                counters = Counters(offered=rest[0], tried=rest[0], wait_s=0.25)
                return RENEW_LEASES, Renewal(lease, SILENT, counters)
            case _:
                tried, reason, given_back = rest
                report = AttemptReport(
                    counters=Counters(offered=tried + 1, tried=tried, active_s=0.5),
                    reason=reason,
                    given_back=None if given_back is None else because(Reason.OTHER, text=given_back),
                    rests=(Rest("h.cn", "captcha", lambda times: 60.0 * times),) if reason else (),
                    page_hosts=frozenset() if reason else frozenset({"h.cn"}),
                )
                return CLOSE_ATTEMPTS, Close(lease, report, AFTER_ATTEMPT)


# --- the two ways to write ----------------------------------------------------------------------------------


def in_one_batch(world, items):
    """Write all in one transaction, items of one kind in one call."""
    results = [None] * len(items)

    def write(tx):
        for kind in sorted({kind for kind, _ in items}, key=lambda kind: kind.rank):
            places = [place for place, (other, _) in enumerate(items) if other is kind]
            done = kind.run(tx, [items[place][1] for place in places])
            for place, result in zip(places, done, strict=True):
                results[place] = result

    world.do(write)
    return results


def one_by_one(world, items):
    """Write each in a transaction of its own, in the order of their ranks."""
    results = [None] * len(items)
    for place in sorted(range(len(items)), key=lambda place: items[place][0].rank):
        kind, item = items[place]
        (results[place],) = world.do(kind.run, [item])
    return results


def without_numbers(result):
    """Return a result without the numbers of rows."""
    match result:
        case StoredHits(todo, known):
            return [(t.url, t.tries, t.etag) for t in todo], sorted(known)
        case Work(targets=targets):
            return [(t.kind, t.url, t.tries) for t in targets]
    return result


def content(world):
    """Return every row of every table; pages, reviews and targets without their numbers."""
    rows = {table.name: [row._asdict() for row in world.rows(table)] for table in metadata.sorted_tables}
    url_of = {row["id"]: row["url"] for row in rows["pages"]}
    for name, of_table in rows.items():
        for row in of_table:
            if name in ("pages", "reviews", "targets", "events"):
                del row["id"]
            if "page_id" in row:
                row["page_id"] = url_of[row["page_id"]]
            row.pop("same_as", None)  # see `are_linked`
            row.pop("review_id", None)
            if "serial" in row:  # as of ids, it matters only that it grows
                row["serial"] = row["verdict"] == Verdict.REVIEW and row["serial"] > 0
    events = sorted(rows.pop("events"), key=lambda event: event["subtask_id"])
    return list(map(repr, events)), {name: sorted(map(repr, of_table)) for name, of_table in rows.items()}


def are_linked(world):
    """Return True if of equal texts one is the original and all others are linked to it."""
    stored = world.rows(reviews)
    originals = {row.text_hash: row.id for row in stored if row.same_as is None}
    copies = [row for row in stored if row.same_as is not None]
    is_one_each = len(originals) == len(stored) - len(copies)
    return is_one_each and all(row.same_as == originals[row.text_hash] for row in copies)


def written(store, batches, write):
    numbers = count()
    with patch("tasks.store.queue.leases.uuid.uuid4", lambda: SimpleNamespace(hex=f"token {next(numbers)}")):
        scene = put_back(Scene, store)
    results = []
    for steps in batches:
        results += map(without_numbers, write(scene.world, [scene.item(step) for step in steps]))
        scene.world.pass_s(1)
    assert are_linked(scene.world)
    assert scene.world.verification().violations == ()
    return results, content(scene.world)


# --- what is written ----------------------------------------------------------------------------------------

_HITS = st.lists(st.sampled_from([hit(name) for name in "1245"] + [OLD]), unique=True, max_size=4)
_READ = st.lists(st.tuples(st.sampled_from(["a", "b", ""]), st.sampled_from("xyz")), min_size=1, max_size=4)
_PAGES = [
    *(("reading", url) for url in (hit("1"), hit("2"), OLD)),
    *((name, url) for name in ("lost", "next") for url in (hit("1"), hit("4"))),
]


def _steps(kind, names, *rest):
    return st.tuples(st.just(kind), st.sampled_from(names), *rest)


_STEPS = st.one_of(
    _steps("start", ["granted", "granted", "reading", "lost"]),
    _steps("results", ["first", "second", "lost"], _HITS, st.booleans(), st.sampled_from([None, 60.0, 1e6])),
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
    _steps("progress", ["reading", "next", "lost", "granted"], st.integers(0, 3)),
    _steps(
        "close",
        ["reading", "next", "lost", "first"],
        st.integers(0, 2),
        st.sampled_from([None, None, FailureReason.BLOCKED]),
        st.sampled_from([None, None, "drained"]),
    ),
)


def _once(step):
    """No attempt fetches a target twice, or reads a result page twice."""
    kind, name, *rest = step
    return (kind, name, rest[0]) if kind in ("page", "end") else (kind, name) if kind == "results" else step


_BATCH = st.lists(_STEPS, min_size=1, max_size=10, unique_by=lambda s: repr(_once(s)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(_BATCH, min_size=1, max_size=2))
@pytest.mark.slow
def test_a_batch_gives_what_its_items_give_one_by_one(store, batches):
    assert written(store, batches, in_one_batch) == written(store, batches, one_by_one)


MEETINGS = {
    "a notification that rings twice": ([], [("start", "granted"), ("start", "granted")]),
    "an attempt that closes twice": (
        [],
        [("close", "reading", 1, None, None), ("close", "reading", 2, FailureReason.BLOCKED, None)],
    ),
    "one page, three leases": (
        [],
        [
            ("page", "reading", hit("1"), "0", [("a", "x"), ("", "x")]),
            ("page", "next", hit("1"), "1", [("a", "x"), ("b", "z"), ("", "z")]),
            ("page", "lost", hit("1"), "1", [("b", "z")]),
        ],
    ),
    "in time, then late": ([], [("page", name, hit("4"), "0", [("a", "x")]) for name in ("next", "lost")]),
    "late, then in time": ([], [("page", name, hit("4"), "0", [("a", "x")]) for name in ("lost", "next")]),
    "two late pages of one target are two tries": (
        [("close", "next", 0, FailureReason.BLOCKED, None)],
        [("page", name, hit("1"), "0", [("a", "x")]) for name in ("lost", "next")],
    ),
    "two chunks of a task that list the same hits": (
        [],
        [("results", name, [hit("1"), OLD, hit("5")], False, 60.0) for name in ("first", "second")],
    ),
    "to the end": (
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
    ),
}


@pytest.mark.parametrize("meeting", MEETINGS)
def test_what_meets_in_one_batch(store, meeting):
    assert written(store, MEETINGS[meeting], in_one_batch) == written(store, MEETINGS[meeting], one_by_one)
