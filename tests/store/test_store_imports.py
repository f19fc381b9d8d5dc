"""Imported reviews among crawled ones."""

from world import hit, review

from tasks.domain.pages import Review
from tasks.reading.copies.copy_key import copy_key
from tasks.store.content import imports, products
from tasks.store.content.imports import ImportedReview, page_of, review_key
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue import tasks
from tasks.store.sql import tables


def imported(body, product="特仑苏", *, author="", url=""):
    own = Review(review_key(author, "", "", body, None), "", body, author, "", None, None)
    page = page_of("jd.com", url, product)
    return ImportedReview(product, product, "jd.com", url, own, page, copy_key("jd.com", author, body))


def save(world, *given):
    """Import reviews; return which ones were known."""
    names = [one.product for one in given]
    for name in set(names):
        world.add_product(name, sites=())
    return world.do(imports.save, "shop", given, world.look(products.ids, names))


def test_the_same_reviews_are_stored_once(world):
    first, same, other = imported("好喝"), imported("好喝"), imported("好喝", author="小王")
    assert save(world, first, same, other) == [False, True, False]
    assert world.look(imports.are_known, [first, imported("难喝"), imported("难喝")]) == [True, False, True]
    world.pass_s(5)
    known = save(world, first, other, imported("难喝"), imported("好喝", "光明牛奶"))
    assert known == [True, True, False, False]
    page, light = world.rows(tables.pages)
    assert (page.reviews, light.reviews, page.attempt_id, page.source) == (3, 1, None, "shop")


def test_an_import_that_began_earlier_and_ended_later_leaves_the_times_in_order(world):
    save(world, imported("好喝"))
    latest = world.now
    world.pass_s(-0.006)
    assert save(world, imported("难喝")) == [False]
    (page,) = world.rows(tables.pages)
    assert (page.checked_at, page.reviews) == (latest, 2)
    assert {row.collected_at for row in world.rows(tables.reviews)} == {latest}


def test_a_text_that_was_crawled_is_linked_and_an_import_is_told_from_it(world):
    name = "光明高钙牛奶"
    text = "第一口就发现牛奶里有结块，打电话给客服也没有人理会，要求退款"
    world.stored_page(name, [review("a", text)], hit("1"))
    save(world, imported(text, name), imported("不错", name))
    rows = world.look(lambda tx: list(list_reviews(tx, ReviewFilter(products=(name,)))))
    crawled, copy, own = rows
    assert [(r.provenance, r.source, r.attempt is None) for r in rows] == [
        ("crawled", None, False),
        ("imported", "shop", True),
        ("imported", "shop", True),
    ]
    assert (copy.same_as, own.same_as) == (crawled.review, None)


def test_an_imported_product_is_not_crawled_until_it_is_added(world):
    save(world, imported("好喝"))
    assert world.look(tasks.list_unplanned, 10) == []
    assert [one.sites for one in world.look(products.list_names)] == [()]
    world.pass_s(60)
    wanted = {"keywords": ("蒙牛", "特仑苏"), "priority": 3}
    assert world.add_product("特仑苏", **wanted)
    assert not world.add_product("特仑苏", **wanted)
    [task] = world.look(tasks.list_unplanned, 10)
    assert (task.keywords, task.priority, task.sites) == (("蒙牛", "特仑苏"), 3, None)
    assert [one.sites for one in world.look(products.list_names)] == [None]


def test_parts_of_a_key_are_told_apart():
    assert review_key("ab", "", "c", "", None) != review_key("a", "", "bc", "", None)
    assert page_of("a", "b", "") != page_of("a", "", "b")
