"""Undoing an import removes what it added and nothing else, and says what stays."""

from __future__ import annotations

from datetime import timedelta

import pytest
from world import hit, review

from app.actions import import_actions, product_actions
from app.actions.products import new_products
from splitter.errors import InputError
from tasks.domain.pages import Review
from tasks.domain.recurrence import Recurrence
from tasks.jobs.repost_linking import link_reposts
from tasks.store.content import imported_products, imports, numbered_imports, products
from tasks.store.content.imported_products import Fate, Need
from tasks.store.content.imports import ImportedReview, page_of, review_key
from tasks.store.content.numbered_imports import ImportKind
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.queue import schedules
from tasks.store.queue.schedules import ScheduleKind
from tasks.store.sql import tables
from tasks.store.sql.database import Store

TEXT = "投诉：光明高钙牛奶喝了第一口就发现结块了，打电话给客服也没有人理会，要求退款并且赔偿损失，希望尽快处理这件事情"


class Clocked(Store):
    """The store of a world, at the time of the world."""

    def __init__(self, world):
        super().__init__(world.store.engine)
        self.world = world

    def begin(self, connection=None, *, now=None):
        return super().begin(connection, now=now or self.world.now)


@pytest.fixture(autouse=True)
def _is_clean(world):
    yield
    assert world.verification().violations == ()


def bring(world, *names, **options):
    """Import products; return the number."""

    def save(tx):
        number = numbered_imports.begin(tx, ImportKind.PRODUCTS, "f.csv", "w")
        imported_products.add(tx, number, new_products(names, **options))
        numbered_imports.end(tx, number)
        return number

    return world.do(save)


def names(world):
    return [row.name for row in world.rows(tables.products)]


def undo(world, number):
    return import_actions.undo(Clocked(world), number, "w")


def imported(body, product="特仑苏", url=""):
    own = Review(review_key("", "", "", body, None), "", body, "", "", None, None)
    return ImportedReview(product, product, "jd.com", url, own, page_of("jd.com", url, product))


def bring_reviews(world, *given):
    """Import reviews with their products, which are crawled nowhere; return the number."""

    def save(tx):
        number = numbered_imports.begin(tx, ImportKind.REVIEWS, "r.csv", "w", "shop")
        numbered_imports.hold(tx, number)
        new = [
            NewProduct(name=one, keywords=(one,), sites=()) for one in dict.fromkeys(r.product for r in given)
        ]
        imported_products.add(tx, number, new)
        imports.save(tx, "shop", given, products.ids(tx, {one.product for one in given}), number)
        numbered_imports.end(tx, number)
        return number

    return world.do(save)


def test_an_import_without_followers_goes_as_a_whole(world):
    bring(world, "特仑苏")
    number = bring(world, "特仑苏", "sites", "engines", recrawl=timedelta(days=7))
    done = undo(world, number)
    assert names(world) == ["特仑苏"]
    assert (done.products_removed, done.stays) == (2, [])
    assert world.rows(tables.schedules) == []
    assert [row.action for row in world.rows(tables.audit_log)] == ["undo import", "import undone"]


def test_work_that_was_planned_and_not_begun_goes_with_its_product(world):
    kept = world.waiting("特仑苏")
    number = bring(world, "光明高钙牛奶")
    world.waiting("光明高钙牛奶", chunks=(True, False, True))
    assert {row.product_id for row in world.rows(tables.subtasks)} == {1, 2}
    assert undo(world, number).products_removed == 1
    assert [row.id for row in world.rows(tables.subtasks)] == [kept]
    assert {row.product_id for row in world.rows(tables.tasks)} == {1}


@pytest.mark.parametrize(
    ("need", "is_crawled"),
    [(Need.IMPORT, True), (Need.CORRECTION, True), (Need.SCHEDULE, True), ("report", True), (Need.CRAWL, False),
     ("begun", False), ("reviews", False)],
)  # fmt: skip
def test_a_product_that_something_needs_stays(world, need, is_crawled):
    number = bring(world, "特仑苏", "光明")
    if need is Need.IMPORT:
        other = bring(world, "特仑苏")
    elif need is Need.CORRECTION:
        product_actions.edit(Clocked(world), "特仑苏", ProductEdit(priority=3), "w")
    elif need is Need.SCHEDULE:
        world.do(schedules.recrawl, 1, Recurrence("0 8 * * 1", "UTC"), world.now)
    elif need == "report":
        world.do(schedules.add, ScheduleKind.REPORT, Recurrence("0 8 * * 1", "UTC"), {"products": ["特仑苏"]})
    elif need is Need.CRAWL:
        world.stored_page("特仑苏", [review("a", "好喝")], hit("1"), words=("蒙牛", "特仑苏"))
    elif need == "begun":
        world.begin(world.waiting("特仑苏", words=("蒙牛", "特仑苏")))
    else:
        other = bring_reviews(world, imported("好喝"))
    foreseen = import_actions.preview(world.store, number)
    done = undo(world, number)
    assert (foreseen.products_removed, foreseen.stays) == (done.products_removed, done.stays)
    [stays] = done.stays
    assert stays.name == "特仑苏"
    assert stays.need == {"report": Need.SCHEDULE, "begun": Need.CRAWL, "reviews": Need.IMPORT}.get(
        need, need
    )
    assert names(world) == ["特仑苏"]
    [known] = world.look(products.list_names)
    assert (known.sites != ()) is is_crawled
    if stays.need is Need.IMPORT:
        assert stays.other == other
        assert undo(world, other).products_removed == 1
        assert names(world) == []


def test_a_product_that_was_added_again_is_as_before(world):
    first = bring_reviews(world, imported("好喝"))
    number = bring(world, "特仑苏", priority=5, keywords=("蒙牛", "特仑苏"))
    assert undo(world, number).products_restored == 1
    [row] = world.rows(tables.products)
    assert (row.sites, row.priority, row.keywords) == ([], 0, [])
    assert world.look(products.list_names)[0].keywords == ("特仑苏",)
    assert undo(world, first).products_removed == 1


def test_the_order_of_undoing_does_not_matter(world):
    first, number = bring_reviews(world, imported("好喝")), bring(world, "特仑苏")
    assert [one.fate for one in undo(world, first).stays] == [Fate.KEPT]
    assert undo(world, number).products_removed == 1
    assert [len(world.rows(table)) for table in (tables.products, tables.pages, tables.reviews)] == [0, 0, 0]


def test_reviews_that_another_import_has_stay_until_it_is_undone(world):
    first = bring_reviews(world, imported("好喝"), imported("难喝"), imported("一般", "光明"))
    second = bring_reviews(world, imported("难喝"), imported("很好"))
    done = undo(world, first)
    assert (done.reviews_removed, done.reviews_stay) == (2, 1)
    assert sorted(row.body for row in world.rows(tables.reviews)) == ["很好", "难喝"]
    assert [row.reviews for row in world.rows(tables.pages)] == [2]
    assert names(world) == ["特仑苏"]
    assert undo(world, second).reviews_removed == 2
    assert [len(world.rows(table)) for table in (tables.products, tables.pages, tables.reviews)] == [0, 0, 0]


def test_reviews_of_no_numbered_import_stay(world):
    world.add_product("特仑苏", sites=())
    world.do(imports.save, "old", [imported("好喝")], world.look(products.ids, ["特仑苏"]))
    number = bring_reviews(world, imported("好喝"), imported("难喝"))
    assert undo(world, number).reviews_removed == 1
    assert [row.body for row in world.rows(tables.reviews)] == ["好喝"]


def test_copies_and_reposts_of_removed_reviews_stand_for_themselves(world):
    number = bring_reviews(world, imported(TEXT), imported("好喝"))
    world.stored_page("光明", [review("a", TEXT), review("b", TEXT + "。谢谢")], hit("1"))
    world.pass_s(120)
    link_reposts(world.store, world.do, lambda: 0.0, 1.0)
    assert len(world.rows(tables.review_links)) == 1
    assert [row.same_as for row in world.rows(tables.reviews) if row.body == TEXT] == [None, 1]
    assert undo(world, number).reviews_removed == 2
    rows = {row.body: row for row in world.rows(tables.reviews)}
    assert rows[TEXT].same_as is None
    assert [(link.review_id, link.original_id) for link in world.rows(tables.review_links)] == [
        (rows[TEXT + "。谢谢"].id, rows[TEXT].id)
    ]


def test_a_review_that_was_judged_again_belongs_to_its_import(world):
    number = bring_reviews(world, imported("好喝"), imported("难喝"))
    world.change("UPDATE reviews SET refused = 'wrong_product'")
    world.do(lambda tx: tx.run("UPDATE pages SET reviews = 0"))
    world.change("UPDATE page_products SET verdict = 'unjudged'")
    world.judge_links()
    assert {row.refused for row in world.rows(tables.reviews)} == {None}
    assert undo(world, number).reviews_removed == 2
    assert world.rows(tables.pages) == []


def test_what_was_ended_half_way_goes_on(world, monkeypatch):
    number = bring_reviews(world, *(imported(f"好喝{n}") for n in range(10)))
    monkeypatch.setattr(import_actions, "_REVIEWS", 3)
    stopped = []

    def stop(tx, number, most):
        stopped.append(number)
        if len(stopped) == 3:
            raise KeyboardInterrupt
        return remove_some(tx, number, most)

    remove_some = imports.remove_some
    monkeypatch.setattr(imports, "remove_some", stop)
    with pytest.raises(KeyboardInterrupt):
        undo(world, number)
    assert len(world.rows(tables.reviews)) == 4
    assert world.verification().violations == ()
    assert undo(world, number).reviews_removed == 4
    with pytest.raises(InputError, match="undone already"):
        undo(world, number)


def test_an_import_under_way_ends(world):
    def given():
        yield from new_products([f"牛奶{n}号" for n in range(product_actions._BATCH)])
        undo(world, 1)
        yield from new_products(["特仑苏"])

    with pytest.raises(InputError, match="import 1 was undone"):
        product_actions.add(world.store, given(), "w", "f.csv")
    assert names(world) == []


@pytest.mark.parametrize(("number", "kind", "said"), [
    (7, None, "no import 7; there is 1"), (1, ImportKind.REVIEWS, "product import --undo 1"),
])  # fmt: skip
def test_a_wrong_number_is_refused(world, number, kind, said):
    bring(world, "特仑苏")
    for act in (import_actions.preview, lambda *given: import_actions.undo(*given[:2], "w", *given[2:])):
        with pytest.raises(InputError, match=said):
            act(world.store, number, kind)
    assert names(world) == ["特仑苏"]
