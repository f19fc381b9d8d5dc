"""What a page is to each product it was found for: whose reviews are stored, and what is counted as refused."""

from datetime import timedelta

from world import hit, review

from tasks.jobs import sweeps
from tasks.store.content import links, pages
from tasks.store.content.links import RefusalCount
from tasks.store.queries.reviews import list_reviews
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


def _found(world, product, *, judge=True):
    found = world.found(product, [URL], WORDS[product])
    world.judge_links(judge=judge)
    return found


def _save(world, lease, target, read, *, judge=True, **page):
    saved = world.save(lease, target, read, judge=judge, **page)
    world.judge_links(judge=judge)
    return saved


def _stored(world, product, read, **page):
    """Store the page as one that was found for a product."""
    lease, hits = _found(world, product)
    assert _save(world, lease, hits.todo[0], read, **page)
    return lease, hits.todo[0]


def _verdicts(world):
    """Verdicts in the order of the products."""
    return [row.verdict for row in sorted(world.rows(page_products), key=lambda row: row.product_id)]


def _refused(world):
    """Refused records: reason and key."""
    return [(row.refused, row.key) for row in world.rows(reviews, reviews.c.refused.is_not(None))]


def _exported(world):
    return [(row.product, row.body) for row in world.look(lambda tx: list(list_reviews(tx)))]


def test_a_page_about_another_product_is_stored_and_its_reviews_are_refused(world):
    _stored(world, MILK, OF_YOGURT)
    (page,) = world.rows(page_table)
    (link,) = world.rows(page_products)
    assert (page.reviews, _refused(world), _exported(world)) == (0, [("wrong_product", "a")], [])
    assert (link.verdict, link.missing) == ("wrong_product", "光明 高钙 牛奶")
    refused = world.look(links.refusal_counts)
    assert refused == [RefusalCount("cca.org.cn", MILK, "wrong_product", 1, 1)]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 1}
    assert not world.verification().violations


def test_it_is_the_other_products_without_a_second_fetch(world):
    _stored(world, MILK, OF_YOGURT)
    (refused,) = world.rows(reviews)
    assert _found(world, CHEESE)[1].todo == ()
    world.pass_s(10)
    assert _found(world, YOGURT)[1].todo == ()
    (page,) = world.rows(page_table)
    assert (page.reviews, _refused(world)) == (1, [])
    assert _exported(world) == [(YOGURT, "蒙牛酸奶不错")]
    (taken_in,) = world.rows(reviews)
    assert (taken_in.key, taken_in.collected_at) == (refused.key, world.now)
    assert _verdicts(world) == ["wrong_product", "wrong_product", "review"]
    assert not world.verification().violations


def test_once_its_texts_are_deleted_it_is_fetched_again_for_another_product(world):
    _stored(world, MILK, OF_YOGURT)
    world.pass_s(upkeep.KEEP_DETAIL.total_seconds() + 1)
    assert world.do(upkeep.drop_batch, upkeep.REFUSED, upkeep.KEEP_DETAIL) == 1
    (row,) = world.rows(reviews)
    assert (row.refused, row.title, row.body, row.author) == ("wrong_product", "", "", "")
    assert world.look(links.refusals_by_reason) == {"wrong_product": 1}
    third, found = _found(world, YOGURT)
    assert [(t.url, t.etag) for t in found.todo] == [(URL, None)], "wanted whole, not 'unchanged'"
    assert not _save(world, third, found.todo[0], OF_YOGURT)
    assert _exported(world) == [(YOGURT, "蒙牛酸奶不错")]
    assert not world.verification().violations


def test_a_refused_record_is_not_the_original_of_an_equal_text(world):
    _stored(world, MILK, OF_YOGURT)
    second, other = world.found("另一个", [hit("2")], WORDS[YOGURT])
    _save(world, second, other.todo[0], OF_YOGURT)
    assert [(row.refused, row.same_as) for row in world.rows(reviews)] == [
        ("wrong_product", None),
        (None, None),
    ]
    _found(world, YOGURT)
    first, copy = world.rows(reviews)
    assert (first.same_as, copy.same_as, copy.refused) == (None, first.id, None)
    assert _exported(world) == [("另一个", "蒙牛酸奶不错"), (YOGURT, "蒙牛酸奶不错")]


def test_until_it_is_judged_a_link_shows_nothing_and_the_run_goes_on(world):
    lease, _ = _stored(world, MILK, OF_MILK)
    second, _ = world.found(PLAIN, [URL], WORDS[PLAIN])
    assert _verdicts(world) == ["review", "unjudged"]
    assert {product for product, _ in _exported(world)} == {MILK}
    for one in (lease, second):
        world.close(one)
    world.sweep(sweeps.wake)
    assert not world.look(snapshot.all_settled)
    world.judge_links()
    assert world.look(snapshot.all_settled)
    assert {product for product, _ in _exported(world)} == {MILK, PLAIN}


def test_a_known_page_is_judged_by_what_is_stored_and_not_fetched(world):
    _stored(world, MILK, OF_MILK)
    for product in (YOGURT, PLAIN):
        _, found = _found(world, product)
        assert (found.todo, len(found.known)) == ((), 1)
    assert _verdicts(world) == ["review", "wrong_product", "review"]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 2}
    assert {product for product, _ in _exported(world)} == {MILK, PLAIN}


def test_whoever_comes_first_the_same_is_stored(world):
    found = [_found(world, product) for product in (MILK, YOGURT)]
    saved = [world.page(lease, hits.todo[0], OF_YOGURT, judge=True) for lease, hits in found]
    assert world.do(pages.save_pages, saved) == [True, False]
    world.judge_links()
    assert _exported(world) == [(YOGURT, "蒙牛酸奶不错")]
    (page,) = world.rows(page_table)
    assert (page.reviews, _refused(world)) == (1, [])
    assert not world.verification().violations


def test_what_is_no_review_is_counted_with_the_page_once(world):
    records = [
        ("empty", review("x", "！")),
        ("empty", review("#3", "？")),
        ("boilerplate", review("y", "好评")),
    ]
    lease, target = _stored(world, MILK, OF_MILK, refused=records)
    assert _refused(world) == [("empty", "x"), ("empty", "#3"), ("boilerplate", "y")]
    assert not _save(world, lease, target, OF_MILK, refused=records)
    assert world.look(links.refusals_by_reason) == {"boilerplate": 1, "empty": 2}
    assert not _save(world, lease, target, OF_MILK, refused=records[:1], content_hash="1")
    assert world.look(links.refusals_by_reason) == {"empty": 1}


def test_a_site_that_is_not_judged_gives_what_it_has(world):
    lease, hits = _found(world, MILK, judge=False)
    _save(world, lease, hits.todo[0], OF_YOGURT, judge=False)
    _found(world, PLAIN, judge=False)
    assert _verdicts(world) == ["review", "review"]
    assert len(_exported(world)) == 2


def test_a_page_that_comes_to_name_the_product_is_its_review_from_then_on(world):
    lease, target = _stored(world, MILK, OF_YOGURT)
    world.pass_s(timedelta(days=1).total_seconds())
    both = [*OF_YOGURT, review("b", "光明高钙牛奶更好喝")]
    assert not _save(world, lease, target, both, content_hash="1")
    assert _verdicts(world) == ["review"]
    assert len(_exported(world)) == 2


def test_a_changed_page_is_judged_again_for_the_other_products_that_found_it(world):
    lease, target = _stored(world, MILK, OF_MILK)
    _found(world, CHEESE)
    assert _verdicts(world) == ["review", "wrong_product"]
    world.pass_s(timedelta(days=1).total_seconds())
    assert not _save(world, lease, target, [*OF_MILK, review("c", "妙可蓝多奶酪更好吃")], content_hash="1")
    assert _verdicts(world) == ["review", "review"]
