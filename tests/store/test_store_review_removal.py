"""What was collected of a product, deleted: what other products have stays whole, and `verify` finds nothing."""

from test_store_imports import imported
from test_store_reposts import EDITED, FIRST, FORWARD, OTHER, linked, step
from world import hit, review

from app.actions import product_actions
from tasks.domain.verdicts import Verdict
from tasks.store.content import imports, products, reposts, review_removal
from tasks.store.content.links import Link, set_verdicts
from tasks.store.content.products import NewProduct
from tasks.store.queries import products as product_queries
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue.result_pages import find_pages
from tasks.store.sql import tables

OURS, THEIRS = "光明高钙牛奶", "特仑苏"


def crawl(world, product, texts):
    """Look for a new product and store what is not known of these pages, a review each; what was to fetch."""
    lease, work = world.begin(world.waiting(product))
    todo = world.read_results(lease, work.targets[0], [hit(name) for name in texts]).todo
    for target in todo:
        world.save(lease, target, [review("0", texts[target.url.rsplit("/", 1)[1]])])
    world.close(lease)
    world.judge_links(judge=False)
    return todo


def rows_of(world, product):
    def read(tx):
        return [row.body for row in list_reviews(tx, ReviewFilter(products=(product,)))]

    return world.look(read)


def test_reviews_go_and_what_others_have_stays(world):
    crawl(world, OURS, {"own": FIRST, "shared": OTHER})
    world.pass_s(5)
    crawl(world, THEIRS, {"shared": OTHER, "copy": FIRST, "like": FORWARD, "also": EDITED})
    ids = world.look(products.ids, [OURS])
    world.do(lambda tx: imports.save(tx, "shop", [imported("我们自己的评价", OURS)], ids))
    world.pass_s(reposts.SETTLED.total_seconds())
    step(world, 100)
    assert linked(world).keys() == {FORWARD, EDITED}
    ((was, removed),) = product_actions.remove(world.store, [OURS], "ich", delete_reviews=True)
    assert (was.reviews, removed.reviews, removed.kept, len(removed.alone)) == (3, 2, 1, 0)
    assert rows_of(world, OURS) == []
    assert (
        world.look(product_queries.get_coverages, lambda _engine: 100)[ids[OURS]].share == 0.0
    )  # of what was found
    assert rows_of(world, THEIRS) == [OTHER, FIRST, FORWARD, EDITED]
    assert linked(world).keys() == {FORWARD, EDITED}  # the copy took the place of its original
    assert [row.same_as for row in world.rows(tables.reviews)] == [None] * 4
    assert {row.title for row in world.rows(tables.pages, tables.pages.c.url == hit("own"))} == {""}
    assert world.rows(tables.audit_log)[0].detail == {"cancelled": 1, "deleted": 2, "kept": 1}
    assert world.verification().violations == ()
    ((again, nothing),) = product_actions.remove(world.store, [OURS], "ich", delete_reviews=True)
    assert (again.reviews, nothing.reviews, again.is_crawled) == (0, 0, False)


def test_what_was_refused_or_left_out_goes_too(world):
    crawl(world, OURS, {"own": FIRST})
    lease, work = world.begin(world.waiting("别的", words=("别的",)))
    (target,) = world.read_results(lease, work.targets[0], [hit("refused")]).todo
    world.save(lease, target, [review("0", FORWARD)], judge=True)
    world.do(lambda tx: set_verdicts(tx, [Link(1, 1, Verdict.WRONG_PRODUCT, "光明")]))
    assert [row.refused for row in world.rows(tables.reviews)] == [None, "wrong_product"]
    done = product_actions.remove(world.store, [OURS, "别的"], "ich", delete_reviews=True)
    assert [(removed.reviews, removed.kept) for _, removed in done] == [(1, 0), (0, 0)]
    assert world.rows(tables.reviews) == []
    assert world.verification().violations == ()


def test_one_that_is_looked_for_again_gets_its_pages_back(world):
    crawl(world, OURS, {"own": FIRST, "shared": OTHER})
    crawl(world, THEIRS, {"shared": OTHER})
    product_actions.remove(world.store, [OURS], "ich", delete_reviews=True)
    assert world.do(products.add, NewProduct(name=OURS, keywords=("光明", "牛奶")))
    assert rows_of(world, OURS) == [OTHER]
    (key,) = [bytes(row.url_key) for row in world.rows(tables.pages, tables.pages.c.url == hit("own"))]
    (number,) = world.look(products.ids, [OURS]).values()
    (page,) = world.look(find_pages, [key], [number]).values()
    assert page.is_unread(number)
    assert crawl(world, "光明牛奶", {"own": FIRST})[0].url == hit("own")
    assert rows_of(world, "光明牛奶") == [FIRST]
    assert world.verification().violations == ()


def test_reposts_whose_original_is_gone_are_compared_with_each_other(world):
    crawl(world, OURS, {"own": FIRST})
    crawl(world, THEIRS, {"like": FORWARD, "also": EDITED})
    world.pass_s(reposts.SETTLED.total_seconds())
    step(world, 100)
    ((_, removed),) = product_actions.remove(world.store, [OURS], "ich", delete_reviews=True)
    assert len(removed.alone) == 2
    assert {body: original for body, (original, _) in linked(world).items()} == {EDITED: FORWARD}
    assert world.verification().violations == ()


def test_the_sweep_looks_at_numbers_that_are_given_again(world):
    crawl(world, THEIRS, {"like": FORWARD})
    crawl(world, OURS, {"own": FIRST})
    world.pass_s(reposts.SETTLED.total_seconds())
    step(world, 100)
    (number,) = world.look(products.ids, [OURS]).values()
    world.do(lambda tx: review_removal.remove_reviews(tx, number))
    (last,) = world.rows(tables.reviews)
    assert world.look(reposts.mark) == last.id
    crawl(world, "光明牛奶", {"other": OTHER})
    world.pass_s(reposts.SETTLED.total_seconds())
    assert step(world, 100) == 1
