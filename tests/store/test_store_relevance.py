"""What a page is to each product it was found for: whose reviews are stored, and what is counted as refused.

Of near products of one brand the one that the page names best has it, whoever came first.
"""

from itertools import permutations

import pytest
from test_store_judging import change_words, judged
from world import World, hit, review

from app.actions import product_actions
from tasks.store.content import links, pages
from tasks.store.content.links import RefusalCount
from tasks.store.queries.queues import count_stored
from tasks.store.queue import snapshot, upkeep
from tasks.store.sql.tables import page_products, reviews
from tasks.store.sql.tables import pages as page_table
from tasks.store.sql.tables import products as product_table

MILK, YOGURT, PLAIN, CHEESE = "光明高钙牛奶", "蒙牛酸奶", "光明牛奶", "妙可蓝多奶酪"
THREE, X1, ANY = "宝马3系", "宝马X1", "宝马"
WORDS = {
    MILK: ("光明", "高钙", "牛奶"),
    YOGURT: ("蒙牛", "酸奶"),
    PLAIN: ("光明", "牛奶"),
    CHEESE: ("妙可蓝多", "奶酪"),
    THREE: ("宝马", "3系"),
    X1: ("宝马", "X1"),
    ANY: ("宝马",),
}
OF_MILK, OF_YOGURT = [review("a", "光明高钙牛奶有点酸"), review("b", "同感")], [review("a", "蒙牛酸奶不错")]
URL = hit("1")


def find(world: World, product, *, judge=True):
    """Find the page for a new product."""
    lease, hits = world.found(product, [URL], WORDS[product])
    world.judge_links(judge=judge)
    return lease, hits


def save(world: World, lease, target, read, *, judge=True, **page):
    is_new = world.save(lease, target, read, judge=judge, **page)
    world.judge_links(judge=judge)
    return is_new


def store(world: World, product, read, **page):
    """Store the page as one that was found for a product."""
    lease, hits = find(world, product, judge=page.get("judge", True))
    assert save(world, lease, hits.todo[0], read, **page)
    return lease, hits.todo[0]


def verdicts(world):
    """Verdicts in the order of the products."""
    return [row.verdict for row in sorted(world.rows(page_products), key=lambda row: row.product_id)]


def owners(world):
    return {product for product, _ in world.exported()}


def refused(world: World):
    """Refused records: reason and key."""
    return [(row.refused, row.key) for row in world.rows(reviews, reviews.c.refused.is_not(None))]


def test_a_page_about_another_product_is_stored_and_its_reviews_are_refused(world):
    store(world, MILK, OF_YOGURT)
    (page,) = world.rows(page_table)
    (link,) = world.rows(page_products)
    assert (page.reviews, refused(world), world.exported()) == (0, [("wrong_product", "a")], [])
    assert (link.verdict, link.missing) == ("wrong_product", "光明 高钙 牛奶")
    assert world.look(links.refusal_counts) == [RefusalCount("cca.org.cn", MILK, "wrong_product", 1, 1)]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 1}
    assert world.look(count_stored) == (1, 0)


def test_it_is_the_other_products_without_a_second_fetch(world):
    store(world, MILK, OF_YOGURT)
    (before,) = world.rows(reviews)
    assert find(world, CHEESE)[1].todo == ()
    world.pass_s(10)
    assert find(world, YOGURT)[1].todo == ()
    (page,) = world.rows(page_table)
    assert (page.reviews, refused(world)) == (1, [])
    assert world.exported() == [(YOGURT, "蒙牛酸奶不错")]
    (taken_in,) = world.rows(reviews)
    assert (taken_in.key, taken_in.collected_at) == (before.key, world.now)
    assert verdicts(world) == ["wrong_product", "wrong_product", "review"]


def test_once_its_texts_are_deleted_it_is_fetched_again_for_another_product(world):
    store(world, MILK, OF_YOGURT)
    world.pass_s(upkeep.KEEP_DETAIL.total_seconds() + 1)
    assert world.do(upkeep.drop_batch, upkeep.REFUSED, upkeep.KEEP_DETAIL) == 1
    assert world.look(links.refusals_by_reason) == {"wrong_product": 1}
    third, found = find(world, YOGURT)
    assert [(t.url, t.etag) for t in found.todo] == [(URL, None)], "wanted whole, not 'unchanged'"
    assert not save(world, third, found.todo[0], OF_YOGURT)
    assert world.exported() == [(YOGURT, "蒙牛酸奶不错")]


def test_a_refused_record_is_not_the_original_of_an_equal_text(world):
    store(world, MILK, OF_YOGURT)
    world.stored_page("另一个", OF_YOGURT, hit("2"), WORDS[YOGURT])
    rows = world.rows(reviews)
    assert [(row.refused, row.same_as) for row in rows] == [("wrong_product", None), (None, None)]
    find(world, YOGURT)
    first, copy = world.rows(reviews)
    assert (first.same_as, copy.same_as, copy.refused) == (None, first.id, None)
    assert world.exported() == [("另一个", "蒙牛酸奶不错"), (YOGURT, "蒙牛酸奶不错")]


def test_a_known_page_is_not_fetched_and_shows_nothing_until_it_is_judged(world):
    leases = [store(world, MILK, OF_MILK)[0]]
    for product in (YOGURT, PLAIN):
        lease, hits = world.found(product, [URL], WORDS[product])
        leases.append(lease)
        assert (hits.todo, len(hits.known)) == ((), 1)
    assert verdicts(world) == ["review", "unjudged", "unjudged"]
    assert owners(world) == {MILK}
    for lease in leases:
        world.close(lease)
    world.wake()
    assert not world.look(snapshot.all_settled), "the run goes on"
    world.judge_links()
    assert world.look(snapshot.all_settled)
    assert verdicts(world) == ["review", "wrong_product", "review"]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 2}
    assert owners(world) == {MILK, PLAIN}


def test_whoever_comes_first_the_same_is_stored(world):
    found = [find(world, product) for product in (MILK, YOGURT)]
    saved = [world.page(lease, hits.todo[0], OF_YOGURT, judge=True) for lease, hits in found]
    assert world.do(pages.save_pages, saved) == [True, False]
    world.judge_links()
    assert world.exported() == [(YOGURT, "蒙牛酸奶不错")]
    (page,) = world.rows(page_table)
    assert (page.reviews, refused(world)) == (1, [])


def test_what_is_no_review_is_counted_with_the_page_once(world):
    records = [
        ("empty", review("x", "！")),
        ("empty", review("#3", "？")),
        ("boilerplate", review("y", "好评")),
    ]
    lease, target = store(world, MILK, OF_MILK, refused=records)
    assert refused(world) == [("empty", "x"), ("empty", "#3"), ("boilerplate", "y")]
    assert not save(world, lease, target, OF_MILK, refused=records)
    assert world.look(links.refusals_by_reason) == {"boilerplate": 1, "empty": 2}
    assert not save(world, lease, target, OF_MILK, refused=records[:1], content_hash="1")
    assert world.look(links.refusals_by_reason) == {"empty": 1}


def test_a_site_that_is_not_judged_gives_what_it_has(world):
    store(world, MILK, OF_YOGURT, judge=False)
    find(world, PLAIN, judge=False)
    assert verdicts(world) == ["review", "review"]
    assert len(world.exported()) == 2


def test_a_changed_page_is_judged_again_for_every_product_that_found_it(world):
    lease, target = store(world, MILK, OF_YOGURT)
    find(world, CHEESE)
    assert verdicts(world) == ["wrong_product", "wrong_product"]
    world.pass_s(86_400)
    named = [*OF_YOGURT, review("b", "光明高钙牛奶更好喝"), review("c", "妙可蓝多奶酪更好吃")]
    assert not save(world, lease, target, named, content_hash="1")
    assert verdicts(world) == ["review", "review"]
    assert len(world.exported()) == 6


# --- near products --------------------------------------------------------------------------------------------

TITLE, TEXT = "宝马3系异响", ["刚提的车就异响", "宝马X1没有这个毛病"]


def read_car(bodies=TEXT):
    return [review(str(n), body) for n, body in enumerate(bodies)]


def find_car(world, product, title=TITLE, bodies=TEXT):
    """Find the page for a product, and fetch it if it has to be."""
    lease, hits = find(world, product)
    for target in hits.todo:
        save(world, lease, target, read_car(bodies), title=title)


def verdict_of(world):
    names = [row.name for row in world.rows(product_table)]
    return dict(zip(names, verdicts(world), strict=True))


@pytest.mark.parametrize("order", list(permutations([THREE, X1, ANY])))
def test_whoever_comes_first_the_one_named_best_has_it(world, order):
    for product in order:
        find_car(world, product)
    expected = {THREE: "review", X1: "near_product", ANY: "review"}
    assert verdict_of(world) == expected
    assert owners(world) == {THREE, ANY}
    assert len(world.rows(reviews)) == 2, "nothing is thrown away"
    assert world.look(links.refusals_by_reason) == {"near_product": 2}
    done = judged(world, again=True)
    assert (done.changes, verdict_of(world)) == ([], expected), "judging says the same"


def test_a_page_that_names_both_alike_is_of_both(world):
    for product in (THREE, X1):
        find_car(world, product, "宝马3系和宝马X1怎么选", ["都不错"])
    assert owners(world) == {THREE, X1}


def test_a_page_that_comes_to_speak_of_the_other_one_changes_hands(world):
    lease, hits = world.found(THREE, [URL], WORDS[THREE])
    save(world, lease, hits.todo[0], read_car(), title=TITLE)
    find_car(world, X1)
    read = read_car([*TEXT, "3系也有"])
    save(world, lease, hits.todo[0], read, title="宝马X1异响", content_hash="1")
    assert (owners(world), verdict_of(world)[THREE]) == ({X1}, "near_product")


def test_when_the_winner_means_something_else_the_other_has_it(world):
    for product in (THREE, X1):
        find_car(world, product)
    change_words(world, THREE, ("宝马", "7系"))
    done = judged(world)
    assert sorted((one.product, one.before, one.after) for one in done.changes) == [
        (THREE, "review", "wrong_product"),
        (X1, "near_product", "review"),
    ]
    assert owners(world) == {X1}


def test_what_was_collected_of_the_winner_goes_and_the_other_has_its_page(world):
    for product in (THREE, X1):
        find_car(world, product)
    product_actions.remove(world.store, [THREE], "ich", delete_reviews=True)
    world.judge_links()
    assert (owners(world), verdict_of(world)[X1]) == ({X1}, "review")
    product_actions.remove(world.store, [X1], "ich", delete_reviews=True)
    assert world.rows(reviews) == []
