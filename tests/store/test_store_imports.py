"""Imported reviews beside crawled ones, on both databases."""

import pytest
from world import World, review

from tasks.domain.pages import Review
from tasks.store.content import imports, products
from tasks.store.content.imports import ImportedReview, page_of, review_key
from tasks.store.content.products import NewProduct
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue import tasks
from tasks.store.sql import tables


@pytest.fixture
def world(store):
    return World(store)


def imported(body, product="特仑苏", *, author="", url=""):
    own = Review(review_key(author, "", "", body, None), "", body, author, "", None, None)
    return ImportedReview(product, product, "jd.com", url, own, page_of("jd.com", url, product))


def saved(world, *came):
    for name in {one.product for one in came}:
        world.do(products.add, NewProduct(name=name, keywords=(name,), sites=()))
    ids = world.look(products.ids, [one.product for one in came])
    return stored(world, came, ids)


def stored(world, came, ids):
    return world.do(lambda tx: imports.save(tx, "shop", came, ids))


def test_the_same_reviews_are_stored_once(world):
    first, same, other = imported("好喝"), imported("好喝"), imported("好喝", author="小王")
    assert saved(world, first, same, other) == [False, True, False]
    assert world.look(imports.are_known, [first, imported("难喝"), imported("难喝")]) == [True, False, True]
    world.pass_s(5)
    assert saved(world, first, other, imported("难喝"), imported("好喝", "光明牛奶")) == [
        True,
        True,
        False,
        False,
    ]
    (page, light) = world.rows(tables.pages)
    assert (page.reviews, light.reviews, page.attempt_id, page.source) == (3, 1, None, "shop")
    assert world.verification().violations == ()


def test_an_import_that_began_earlier_and_ended_later_leaves_the_times_in_order(world):
    saved(world, imported("好喝"))
    latest = world.now
    world.pass_s(-0.006)
    assert stored(world, [imported("难喝")], world.look(products.ids, ["特仑苏"])) == [False]
    (page,) = world.rows(tables.pages)
    assert (page.checked_at, page.reviews) == (latest, 2)
    assert {row.collected_at for row in world.rows(tables.reviews)} == {latest}
    assert world.verification().violations == ()


def test_a_text_that_was_crawled_is_linked_and_an_import_is_told_from_it(world):
    lease, work = world.begin(world.waiting("光明高钙牛奶"))
    from test_store_perturbed import Story  # the reader of its result pages

    (only,) = Story.read(_Of(world), lease, work.targets[0], ["1"], found=None)
    world.save(lease, only, [review("a", "结块了")])
    saved(world, imported("结块了", "光明高钙牛奶"), imported("不错", "光明高钙牛奶"))
    rows = world.look(lambda tx: list(list_reviews(tx, ReviewFilter(products=("光明高钙牛奶",)))))
    crawled, copy, own = rows
    assert [(r.provenance, r.source, r.attempt is None) for r in rows] == [
        ("crawled", None, False),
        ("imported", "shop", True),
        ("imported", "shop", True),
    ]
    assert (copy.same_as, own.same_as) == (crawled.review, None)
    assert world.verification().violations == ()


class _Of:
    def __init__(self, world):
        self.world = world


def test_an_imported_product_is_not_crawled_until_it_is_added(world):
    saved(world, imported("好喝"))
    assert world.look(tasks.list_unplanned, 10) == []
    assert not world.look(products.name_keys_to_crawl)
    wanted = NewProduct(name="特仑苏", keywords=("蒙牛", "特仑苏"), priority=3)
    world.pass_s(60)
    assert world.do(products.add, wanted)
    assert not world.do(products.add, wanted)
    [task] = world.look(tasks.list_unplanned, 10)
    assert (task.keywords, task.priority, task.sites) == (("蒙牛", "特仑苏"), 3, None)
    assert world.look(products.name_keys_to_crawl)
    assert world.verification().violations == ()


def test_parts_of_a_key_are_told_apart():
    assert review_key("ab", "", "c", "", None) != review_key("a", "", "bc", "", None)
    assert page_of("a", "b", "") != page_of("a", "", "b")
