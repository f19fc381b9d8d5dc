"""Near products of one brand that found the same page: the one that it names best has it, whoever came first."""

from itertools import permutations

import pytest
from test_store_judging import change_words, judged
from world import hit, review

from app.actions import product_actions
from tasks.store.content import links
from tasks.store.sql.tables import page_products, reviews
from tasks.store.sql.tables import products as product_table

URL = hit("1")
CARS = {"宝马3系": ("宝马", "3系"), "宝马X1": ("宝马", "X1"), "宝马": ("宝马",)}
THREE, X1, ANY = CARS
TITLE, TEXT = "宝马3系异响", ["刚提的车就异响", "宝马X1没有这个毛病"]


def find(world, product, title=TITLE, bodies=TEXT):
    """Find the page for a product, and fetch it if it has to be."""
    lease, hits = world.found(product, [URL], CARS[product])
    world.judge_links()
    for target in hits.todo:
        save(world, lease, target, title, bodies)


def save(world, lease, target, title=TITLE, bodies=TEXT, **page):
    read = [review(str(n), body) for n, body in enumerate(bodies)]
    world.save(lease, target, read, judge=True, title=title, **page)
    world.judge_links()


def verdicts(world):
    names = {row.id: row.name for row in world.rows(product_table)}
    return {names[row.product_id]: row.verdict for row in world.rows(page_products)}


def owners(world):
    return {product for product, _ in world.exported()}


@pytest.mark.parametrize("order", list(permutations(CARS)))
def test_whoever_comes_first_the_one_named_best_has_it(world, order):
    for product in order:
        find(world, product)
    expected = {THREE: "review", X1: "near_product", ANY: "review"}
    assert verdicts(world) == expected
    assert owners(world) == {THREE, ANY}
    assert len(world.rows(reviews)) == 2, "nothing is thrown away"
    assert world.look(links.refusals_by_reason) == {"near_product": 2}
    done = judged(world, again=True)
    assert (done.changes, verdicts(world)) == ([], expected), "judging says the same"


def test_a_page_that_names_both_alike_is_of_both(world):
    for product in (THREE, X1):
        find(world, product, "宝马3系和宝马X1怎么选", ["都不错"])
    assert owners(world) == {THREE, X1}


def test_a_page_that_comes_to_speak_of_the_other_one_changes_hands(world):
    lease, hits = world.found(THREE, [URL], CARS[THREE])
    save(world, lease, hits.todo[0])
    find(world, X1)
    save(world, lease, hits.todo[0], "宝马X1异响", [*TEXT, "3系也有"], content_hash="1")
    assert (owners(world), verdicts(world)[THREE]) == ({X1}, "near_product")


def test_a_page_that_is_unchanged_is_competed_for(world):
    (one, three), (other, x1) = (world.found(car, [URL], CARS[car]) for car in (THREE, X1))
    save(world, one, three.todo[0])
    world.end_target(other, x1.todo[0], "stored", "unchanged", counts=False)
    world.judge_links()
    assert owners(world) == {THREE}


def test_when_the_winner_means_something_else_the_other_has_it(world):
    for product in (THREE, X1):
        find(world, product)
    change_words(world, THREE, ("宝马", "7系"))
    done = judged(world)
    assert sorted((one.product, one.before, one.after) for one in done.changes) == [
        (THREE, "review", "wrong_product"),
        (X1, "near_product", "review"),
    ]
    assert owners(world) == {X1}


def test_what_was_collected_of_the_winner_goes_and_the_other_has_its_page(world):
    for product in (THREE, X1):
        find(world, product)
    product_actions.remove(world.store, [THREE], "ich", delete_reviews=True)
    world.judge_links()
    assert (owners(world), verdicts(world)[X1]) == ({X1}, "review")
    product_actions.remove(world.store, [X1], "ich", delete_reviews=True)
    assert world.rows(reviews) == []
