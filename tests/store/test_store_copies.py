"""Copies in the store: the same ones in whatever order and batches reviews come, and after an upgrade or a deletion."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_store_imports import imported
from world import SITE, START, hit, review, undone

from app.actions import product_actions
from tasks.jobs import repost_linking
from tasks.reading.copies.copy_key import copy_key
from tasks.store.content import counted_reviews, imports, products, reposts
from tasks.store.content.reviews import PageOrigin, insert, record_of, text_hash
from tasks.store.queries import queues
from tasks.store.sql import tables
from tasks.store.sql.tables import review_links, reviews
from tasks.store.verify.verify import verify
from tasks.worker.pseudonyms import Pseudonyms

LONG = "第一口就发现牛奶里有结块，打电话给客服也没有人理会，要求退款并且赔偿损失"
FORWARD = f"太过分了//@牛奶观察：{LONG}"
SHORT, NEAR = "老牌子值得信赖，孩子爱喝", "老牌子值得信赖，孩子爱喝！！"
SET = [
    (body, author)
    for body in (LONG, FORWARD, SHORT, NEAR, "好评")
    for author in ("小明", "李雷", "", "j***n", "用户123")
]


def keyed_record(url, key, body, author, attempt_id=1):
    """Return the row of a review as its node makes it."""
    origin = PageOrigin(url, SITE, "n1", attempt_id)
    return record_of(origin, review(key, body, author), copy_key=copy_key(SITE, author, body))


def store_in_batches(tx, given, batches):
    """Insert reviews (body, author), as many at once as the batches say, each on a page of its own."""
    records = [keyed_record(hit(str(n)), "0", body, author) for n, (body, author) in enumerate(given)]
    pages = [(n, [record]) for n, record in enumerate(records, 1)]
    for begin, end in pairwise([0, *batches, len(pages)]):
        insert(tx, pages[begin:end])


def link_all(tx, most=100):
    while (step := repost_linking.find(tx, most)) is not None:
        assert reposts.save(tx, step)


def groups(tx):
    """Return the sets of reviews that are copies or reposts of each other, each as a sorted list of (body, author)."""
    found: dict[int, list[tuple[str, str]]] = {}
    for body, author, original in tx.rows(_ORIGINALS):
        found.setdefault(original, []).append((body, author))
    return sorted(sorted(group) for group in found.values())


_ORIGINALS = """
    SELECT r.body, r.author, coalesce(l.original_id, r.same_as, r.id)
    FROM reviews r LEFT JOIN review_links l ON l.review_id = coalesce(r.same_as, r.id) ORDER BY r.id
"""


@pytest.fixture
def scratch(sqlite_store):
    """A transaction of reviews without pages; it is rolled back."""
    with undone(sqlite_store, START) as tx:
        tx.run("PRAGMA defer_foreign_keys = ON")
        yield tx


LINKED = [
    # a review (body, author), a later one, are they linked
    ((LONG, "小明"), (LONG, "李雷"), True),
    ((LONG, ""), (LONG, "j***n"), True),
    ((LONG, "小明"), (FORWARD, "李雷"), True),
    ((LONG, ""), (FORWARD, ""), True),
    ((SHORT, "小明"), (SHORT, "小明"), True),
    ((SHORT, "小明"), (NEAR, "小明"), True),
    (("好评", "小明"), ("好评", "小明"), True),
    ((SHORT, "小明"), (SHORT, "李雷"), False),
    ((SHORT, "小明"), (NEAR, "李雷"), False),
    ((SHORT, ""), (SHORT, ""), False),
    ((SHORT, ""), (NEAR, ""), False),
    ((SHORT, "j***n"), (SHORT, "j***n"), False),
    ((SHORT, "j***n"), (NEAR, "j***n"), False),
    ((SHORT, "匿名"), (SHORT, "匿名"), False),
    ((SHORT, "用户123"), (NEAR, "用户123"), False),
    (("好评" * 20, "小明"), ("好评" * 20, "李雷"), False),
    ((f"支持//@甲:{SHORT}", "小明"), (f"转发//@乙:{SHORT}", "李雷"), False),
]


@pytest.mark.parametrize("batches", [[], [1]], ids=["one batch", "two"])
@pytest.mark.parametrize("most", [1, 100])
@pytest.mark.parametrize(("one", "other", "are_linked"), LINKED)
def test_two_reviews_are_linked_by_the_rule_whichever_comes_first(
    scratch, one, other, are_linked, batches, most
):
    for ordered in ([one, other], [other, one]):
        scratch.run("DELETE FROM reviews")
        for table in ("review_links", "review_bands", "stored_values"):
            scratch.run(f"DELETE FROM {table}")
        store_in_batches(scratch, ordered, batches)
        link_all(scratch, most)
        assert (len(groups(scratch)) == 1) is are_linked


@given(given=st.lists(st.sampled_from(SET), min_size=2, max_size=14), data=st.data(), most=st.integers(1, 5))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_neither_order_nor_batches_nor_steps_change_what_is_linked(sqlite_store, given, data, most):
    found = []
    for ordered in (given, data.draw(st.permutations(given))):
        batches = sorted(data.draw(st.sets(st.integers(1, len(given) - 1), max_size=3)))
        with undone(sqlite_store, START) as tx:
            tx.run("PRAGMA defer_foreign_keys = ON")
            store_in_batches(tx, ordered, batches)
            link_all(tx, most)
            found.append(groups(tx))
    assert found[0] == found[1]


def test_the_import_of_a_crawled_text_follows_the_same_rule(world):
    name = "特仑苏"
    world.stored_page(name, [review("a", LONG), review("b", SHORT), review("c", "好评", "")])
    ids = world.look(products.ids, [name])
    came = [imported(body, author=by) for body, by in [(LONG, "李雷"), (SHORT, "李雷"), ("好评", "")]]
    world.do(imports.save, "shop", came, ids)
    assert [row.same_as for row in world.rows(reviews)] == [None, None, None, 1, None, None]


def test_pseudonyms_change_nothing(scratch):
    hide = Pseudonyms("k" * 16)
    store_in_batches(scratch, SET * 2, [])
    link_all(scratch)
    named = groups(scratch)
    scratch.run("DELETE FROM reviews")
    for table in ("review_links", "review_bands", "stored_values"):
        scratch.run(f"DELETE FROM {table}")
    hidden = [
        keyed_record(hit("1"), str(n), body, hide.pseudonym(SITE, author))
        for n, (body, author) in enumerate(SET * 2)
    ]
    insert(scratch, [(1, hidden)])
    link_all(scratch)
    names = {hide.pseudonym(SITE, author): author for _, author in SET}
    assert sorted(sorted((body, names[by]) for body, by in group) for group in groups(scratch)) == named


# --- a store of an older version -------------------------------------------------------------------------------


def make_old(world):
    """Leave the store as an older version and the upgrade do: every equal text is linked, and nothing is compared."""
    for statement in (
        "DELETE FROM review_bands",
        "DELETE FROM stored_values WHERE name = 'reposts'",
        "UPDATE reviews SET copy_key = NULL, same_as = (SELECT nullif(min(o.id), reviews.id) FROM reviews o "
        "WHERE o.text_hash = reviews.text_hash)",
    ):
        world.do(lambda tx, statement=statement: tx.run(statement))


def link_step(world, most):
    step = world.look(repost_linking.find, most)
    return step is not None and world.do(reposts.save, step)


@pytest.mark.parametrize("most", [1, 3, 100])
def test_links_of_an_older_version_are_judged_again_while_reviews_come_in(world, most):
    lease, hits = world.found("甲", [hit(str(n)) for n in range(len(SET))])
    early, later = hits.todo[: len(SET) // 2], hits.todo[len(SET) // 2 :]
    for target, (body, author) in zip(early, SET, strict=False):
        world.save(lease, target, [review("0", body, author), review("1", body, author)])
    make_old(world)
    assert world.look(queues.get_totals).compared == 0
    assert len([row for row in world.rows(reviews) if row.same_as is not None]) > 15
    world.pass_s(reposts.SETTLED.total_seconds())
    assert link_step(world, most)
    assert world.verification().violations == ()
    for target, (body, author) in zip(later, SET[len(early) :], strict=True):
        world.save(lease, target, [review("0", body, author), review("1", SET[0][0], author)])
    world.pass_s(reposts.SETTLED.total_seconds())
    shares = [0.0]
    while link_step(world, most):
        assert world.verification().violations == ()
        shares.append(world.look(queues.get_totals).compared)
    assert shares == sorted(set(shares))
    assert shares[-1] == 1
    judged = world.look(groups)
    stored = [(row.body, row.author) for row in world.rows(reviews)]
    with undone(world.store, START + 2 * reposts.SETTLED) as tx:
        for table in ("review_links", "review_bands", "stored_values"):
            tx.run(f"DELETE FROM {table}")
        tx.run("UPDATE reviews SET refused = 'list', same_as = NULL")
        first = tx.value("SELECT max(id) FROM reviews")
        page = tx.value("SELECT min(id) FROM pages")
        records = [
            keyed_record(hit("0"), f"new {n}", body, author, lease.attempt_id)
            for n, (body, author) in enumerate(stored)
        ]
        insert(tx, [(page, records)], at=START)
        link_all(tx)
        tx.run("DELETE FROM reviews WHERE id <= :first", first=first)
        assert judged == groups(tx)


def test_copies_that_two_nodes_stored_at_once_are_linked_by_the_sweep(world):
    lease, hits = world.found("甲", [hit(str(n)) for n in range(4)])
    for target, body in zip(hits.todo, [SHORT, SHORT, SHORT, FORWARD], strict=True):
        world.save(lease, target, [review("0", body)])
    # The second one was not seen by the first, and the third was linked to it.
    world.do(lambda tx: tx.run("UPDATE reviews SET same_as = NULL WHERE id = 2"))
    world.do(lambda tx: tx.run("UPDATE reviews SET same_as = 2 WHERE id = 3"))
    world.pass_s(reposts.SETTLED.total_seconds())
    assert link_step(world, 2)
    assert [row.same_as for row in world.rows(reviews)] == [None, 1, 1, None]
    assert link_step(world, 100)
    assert world.verification().violations == ()


def test_a_link_that_the_rule_forbids_is_a_violation_once_it_was_compared(world):
    world.stored_page(
        "甲", [review(str(n), SHORT, author) for n, author in enumerate(["小明", "李雷", "", "小明"])]
    )
    with undone(world.store, world.now) as tx:
        with counted_reviews.recount(tx, reviews=[2, 3, 4]):
            tx.run("UPDATE reviews SET same_as = 1 WHERE id IN (2, 3)")
            tx.run("UPDATE reviews SET same_as = NULL WHERE id = 4")
        assert verify(tx).violations == ()
        reposts.set_mark(tx, "reposts", 4)
        assert [one.kind for one in verify(tx).violations] == ["links"] * 3


# --- after a deletion ------------------------------------------------------------------------------------------


def test_copies_stay_copies_when_their_original_is_deleted(world):
    texts = {
        "甲": [(LONG, "小明"), (SHORT, "小明")],
        "乙": [(LONG, "李雷"), (SHORT, "小明"), (SHORT, "李雷"), (FORWARD, "")],
    }
    for product, its in texts.items():
        lease, hits = world.found(product, [hit(f"{product}{n}") for n in range(len(its))])
        for target, (body, author) in zip(hits.todo, its, strict=True):
            world.save(lease, target, [review("0", body, author)])
        world.close(lease)
    world.judge_links(judge=False)
    world.pass_s(reposts.SETTLED.total_seconds())
    assert link_step(world, 100)
    assert [row.same_as for row in world.rows(reviews)] == [None, None, 1, 2, None, None]
    assert [(row.review_id, row.original_id) for row in world.rows(review_links)] == [(6, 1)]
    product_actions.remove(world.store, ["甲"], "ich", delete_reviews=True)
    assert [row.same_as for row in world.rows(reviews)] == [None] * 4
    assert [(row.review_id, row.original_id) for row in world.rows(review_links)] == [(6, 3)]
    world.stored_page("丙", [review("0", SHORT), review("1", LONG, "")], hit("丙"))
    assert [row.same_as for row in world.rows(reviews)] == [None] * 4 + [4, 3]
    assert {row.copy_key for row in world.rows(tables.reviews)} == {
        copy_key(row.site, row.author, row.body) for row in world.rows(reviews)
    }
    assert text_hash(SHORT) == bytes(world.rows(reviews)[1].text_hash)
    world.pass_s(reposts.SETTLED.total_seconds())
    link_step(world, 100)
    assert world.verification().violations == ()
