"""What a page is to each product it was found for: whose reviews are stored, and what is counted as refused."""

from world import World, hit, review

from tasks.store.content import links, pages
from tasks.store.content.links import RefusalCount
from tasks.store.queue import snapshot, upkeep
from tasks.store.sql.tables import page_products, reviews
from tasks.store.sql.tables import pages as page_table

MILK, YOGURT, PLAIN, CHEESE = "光明高钙牛奶", "蒙牛酸奶", "光明牛奶", "妙可蓝多奶酪"
WORDS = {
    MILK: ("光明", "高钙", "牛奶"),
    YOGURT: ("蒙牛", "酸奶"),
    PLAIN: ("光明", "牛奶"),
    CHEESE: ("妙可蓝多", "奶酪"),
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


def verdicts(world: World):
    """Verdicts in the order of the products."""
    return [row.verdict for row in sorted(world.rows(page_products), key=lambda row: row.product_id)]


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
    assert {product for product, _ in world.exported()} == {MILK}
    for lease in leases:
        world.close(lease)
    world.wake()
    assert not world.look(snapshot.all_settled), "the run goes on"
    world.judge_links()
    assert world.look(snapshot.all_settled)
    assert verdicts(world) == ["review", "wrong_product", "review"]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 2}
    assert {product for product, _ in world.exported()} == {MILK, PLAIN}


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
