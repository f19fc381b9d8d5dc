"""What a person does, and what people ask about, over both databases."""

from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select, update

from splitter.catalog.names import Kind
from splitter.errors import InputError
from tasks.domain.attempt_end import AttemptReport, Counters
from tasks.domain.errors import IllegalTransition, UnknownNode, UnknownSubtask
from tasks.domain.failures import FailureReason
from tasks.domain.hit_count import NewPartition
from tasks.domain.reasons import Reason, as_document, because
from tasks.domain.states import Transition
from tasks.scheduling.after_attempt import after_attempt
from tasks.scheduling.recall import RecallSettings
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.queries import pairs as pair_queries
from tasks.store.queries import queues as queue_queries
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue import attempts, leases, manual, nodes, schedules, tasks, transitions
from tasks.store.queue.leases import Grant
from tasks.store.queue.nodes import Node
from tasks.store.queue.tasks import NewTask
from tasks.store.sql.tables import subtasks, targets
from tasks.store.verify.verify import verify

LEASE = timedelta(seconds=60)
URLS = tuple(f"http://www.baidu.com/s?wd=%E7%89%B9%E4%BB%91%E8%8B%8F&pn={n}" for n in (0, 10))


@pytest.fixture
def tx(store):
    """A store in which one subtask waits for a person after a failure on node1."""
    with store.begin() as tx:
        products.add(tx, NewProduct(name="特仑苏", keywords=("蒙牛", "特仑苏")))
        for name, kind in (("node1", Kind.META), ("node2", Kind.MICROBLOG)):
            nodes.register(tx, Node(name, frozenset({kind}), 2))
        [wanted] = tasks.list_unplanned(tx, 10)
        tasks.plan(
            tx,
            wanted,
            [NewTask("12315.com", "baidu", "meta", (NewPartition(("蒙牛", "特仑苏"), 2, 2),))],
            lambda *_: URLS,
        )
        number = tx.engine_connection.scalar(select(subtasks.c.id))
        transitions.move(tx, Transition.ADMIT, [transitions.Move(number)])
        [lease] = leases.grant(tx, [Grant(number, "node1", 10, 20.0, {})], LEASE)
        leases.start_many(tx, [leases.Renewal(lease, LEASE)])
        report = AttemptReport(counters=Counters(tried=1, offered=1), reason=FailureReason.BLOCKED)
        decide = partial(after_attempt, rules=RecallSettings())
        attempts.close_many(tx, [attempts.Close(lease, report, decide)])
        detail = {"because": as_document(because(Reason.OTHER, text="blocked"))}
        one = transitions.Move(number, node="node1", reason=FailureReason.BLOCKED, detail=detail)
        transitions.move(tx, Transition.GIVE_UP, [one])
        tx.engine_connection.execute(
            update(targets).where(targets.c.url == URLS[0]).values(state="given_up", tries=3)
        )
        yield tx


@pytest.fixture
def number(tx):
    return tx.engine_connection.scalar(select(subtasks.c.id))


def test_retry_begins_anew(tx, number):
    assert manual.retry(tx, number) == 2 * leases.HITS_UNREAD
    row = subtask_queries.get_subtask(tx, number)
    assert (row["state"], row["round"], row["recalls"], row["failed_on"]) == ("WAIT", 2, 0, [])
    assert (row["reason"], row["not_before"], row["assigned_node"]) == (None, None, None)
    assert [(t.state, t.tries) for t in subtask_queries.list_targets(tx, number)] == [("todo", 0)] * 2
    assert verify(tx).violations == ()
    with pytest.raises(IllegalTransition, match="is in WAIT"):
        manual.retry(tx, number)
    with pytest.raises(UnknownSubtask):
        manual.retry(tx, number + 1)


def test_only_the_first_result_pages_are_asked_for(tx, number):
    assert manual.retry(tx, number, pages=1) == leases.HITS_UNREAD
    told = [(one.url, one.state, one.reason) for one in subtask_queries.list_targets(tx, number)]
    assert told == [(URLS[0], "todo", None), (URLS[1], "refused", "left_out")]
    assert verify(tx).violations == ()


def test_a_node_must_exist_and_be_of_the_kind(tx, number):
    with pytest.raises(UnknownNode):
        manual.retry(tx, number, node="node3")
    with pytest.raises(InputError, match="node2 takes microblog"):
        manual.retry(tx, number, node="node2")
    assert subtask_queries.get_subtask(tx, number)["state"] == "MANUAL"
    manual.retry(tx, number, node="node1")
    assert subtask_queries.get_subtask(tx, number)["assigned_node"] == "node1"


def test_abandon(tx, number):
    attempts.cancel(tx, number, because(Reason.PERSON_SAID, text="gone"))
    assert subtask_queries.get_subtask(tx, number)["state"] == "CANCELLED"
    assert subtask_queries.list_events(tx, number)[-1].detail["why"] == "gone"
    with pytest.raises(IllegalTransition):
        attempts.cancel(tx, number, because(Reason.PERSON_SAID, text="again"))


def test_chosen(tx, number):
    assert manual.list_ids(tx) == manual.list_ids(tx, reason="blocked", site="12315.com") == [number]
    assert manual.list_ids(tx, reason="silent") == manual.list_ids(tx, site="cca.org.cn") == []


def test_what_people_ask(tx, number):
    [row] = pair_queries.list_product_pairs(tx, "12315.com", "node1")
    assert (row.product, row.attempts, row.failed, row.tried) == ("特仑苏", 1, 1, 1)
    assert pair_queries.list_product_pairs(tx, None, "node2") == []
    assert queue_queries.count_by_site(tx) == {
        "12315.com": queue_queries.SiteRow(site="12315.com", tasks=1, manual=1)
    }
    assert schedules.list_schedules(tx) == []
    assert queue_queries.get_waiting_summary(tx).oldest_at is None
    assert queue_queries.count_stored_since(tx, queue_queries.Stored()) == queue_queries.Stored(attempt_id=1)
    assert (
        list(list_reviews(tx, ReviewFilter(products=("特仑苏",), sites=("12315.com",), since=tx.now))) == []
    )
