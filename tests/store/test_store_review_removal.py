"""What was collected of a product, deleted: what other products have stays whole, and `verify` finds nothing."""

from test_store_imports import imported
from test_store_reposts import EDITED, FIRST, FORWARD, OTHER, linked, step
from world import hit, review

from app.actions import product_actions
from tasks.domain.verdicts import Verdict
from tasks.store.content import imports, products, reposts, review_removal
from tasks.store.content.links import Link, set_verdicts
from tasks.store.queries import products as product_queries
from tasks.store.queue.result_pages import find_pages
from tasks.store.sql import tables

OURS, THEIRS = "光明高钙牛奶", "特仑苏"


def crawl(world, product, **texts):
    """Find pages with these names for a new product, and store a review on each new one; return what was to fetch."""
    lease, hits = world.found(product, [hit(name) for name in texts])
    for target in hits.todo:
        world.save(lease, target, [review("0", texts[target.url.rsplit("/", 1)[1]])])
    world.close(lease)
    world.judge_links(judge=False)
    return [target.url for target in hits.todo]


def link_reposts(world):
    world.pass_s(reposts.SETTLED.total_seconds())
    return step(world, 100)


def remove(world, *names):
    return product_actions.remove(world.store, names, "ich", delete_reviews=True)


def bodies(world, product):
    return [body for _, body in world.exported(product)]


def test_reviews_go_and_what_others_have_stays(world):
    crawl(world, OURS, own=FIRST, shared=OTHER)
    world.pass_s(5)
    crawl(world, THEIRS, shared=OTHER, copy=FIRST, like=FORWARD, also=EDITED)
    ids = world.look(products.ids, [OURS])
    world.do(imports.save, "shop", [imported("我们自己的评价", OURS)], ids)
    link_reposts(world)
    assert linked(world).keys() == {FORWARD, EDITED}
    ((was, removed),) = remove(world, OURS)
    assert (was.reviews, removed.reviews, removed.kept, len(removed.alone)) == (3, 2, 1, 0)
    assert bodies(world, OURS) == []
    covered = world.look(product_queries.get_coverages, lambda _engine: 100)
    assert covered[ids[OURS]].share == 0.0  # of what was found
    assert bodies(world, THEIRS) == [OTHER, FIRST, FORWARD, EDITED]
    assert linked(world).keys() == {FORWARD, EDITED}  # the copy took the place of its original
    assert [row.same_as for row in world.rows(tables.reviews)] == [None] * 4
    assert {row.title for row in world.rows(tables.pages, tables.pages.c.url == hit("own"))} == {""}
    assert world.rows(tables.audit_log)[0].detail == {"cancelled": 1, "deleted": 2, "kept": 1}
    ((again, nothing),) = remove(world, OURS)
    assert (again.reviews, nothing.reviews, again.is_crawled) == (0, 0, False)


def test_what_was_refused_or_left_out_goes_too(world):
    crawl(world, OURS, own=FIRST)
    world.stored_page("别的", [review("0", FORWARD)], hit("refused"), ("别的",), judge=True)
    world.do(set_verdicts, [Link(1, 1, Verdict.WRONG_PRODUCT, "光明")])
    assert [row.refused for row in world.rows(tables.reviews)] == [None, "wrong_product"]
    assert [(done.reviews, done.kept) for _, done in remove(world, OURS, "别的")] == [(1, 0), (0, 0)]
    assert world.rows(tables.reviews) == []


def test_a_product_that_is_added_again_gets_its_pages_back(world):
    crawl(world, OURS, own=FIRST, shared=OTHER)
    crawl(world, THEIRS, shared=OTHER)
    remove(world, OURS)
    assert world.add_product(OURS, keywords=("光明", "牛奶"))
    assert bodies(world, OURS) == [OTHER]
    (own,) = world.rows(tables.pages, tables.pages.c.url == hit("own"))
    (page,) = world.look(find_pages, [own.url_key]).values()
    assert not page.content_hash
    assert crawl(world, "光明牛奶", own=FIRST) == [hit("own")]
    assert bodies(world, "光明牛奶") == [FIRST]


def test_reposts_whose_original_is_gone_are_compared_with_each_other(world):
    crawl(world, OURS, own=FIRST)
    crawl(world, THEIRS, like=FORWARD, also=EDITED)
    link_reposts(world)
    ((_, removed),) = remove(world, OURS)
    assert len(removed.alone) == 2
    assert {body: original for body, (original, _) in linked(world).items()} == {EDITED: FORWARD}


def test_the_sweep_looks_at_numbers_that_are_given_again(world):
    crawl(world, THEIRS, like=FORWARD)
    crawl(world, OURS, own=FIRST)
    link_reposts(world)
    (number,) = world.look(products.ids, [OURS]).values()
    world.do(review_removal.remove_reviews, number)
    (last,) = world.rows(tables.reviews)
    assert world.look(reposts.mark) == last.id
    crawl(world, "光明牛奶", other=OTHER)
    assert link_reposts(world) == 1
