"""A later export gives exactly the rows that an earlier one did not: none twice, none lost, late ones too."""

import json
from datetime import timedelta
from random import Random

import pytest
from sqlalchemy import insert
from world import START, World, hit, review

from splitter.errors import InputError
from tasks.domain.verdicts import Verdict
from tasks.store.content import links, products
from tasks.store.content.links import Link
from tasks.store.content.products import ProductEdit
from tasks.store.queries.exports import get_next_cursor, list_new_rows, read_cursor
from tasks.store.queries.reviews import ALL, ReviewFilter, list_reviews
from tasks.store.sql.tables import page_products, pages, reviews


@pytest.fixture
def story(world):
    return Story(world)


class Story:
    """Pages with two reviews each, and a second product that pages may be linked to."""

    def __init__(self, world):
        self.world = world
        self.lease, work = world.begin(world.waiting("甲"))
        self._results = work.targets[0]
        world.add_product("乙")
        self.other = world.do(products.find, "乙").id
        self._pages = 0

    def page(self):
        self._pages += 1
        (target,) = self.world.read_results(self.lease, self._results, [hit(f"page{self._pages}")]).todo
        self.world.save(self.lease, target, [review(str(n), f"{self._pages}-{n}") for n in (1, 2)])

    def linked(self):
        rows = self.world.rows(page_products, page_products.c.product_id == self.other)
        return {row.page_id for row in rows}

    def unlinked(self):
        return sorted({row.id for row in self.world.rows(pages)} - self.linked())

    def link(self, page, verdict=Verdict.REVIEW):
        found = [Link(page, self.other, Verdict.UNJUDGED)]
        self.world.do(lambda tx: links.add(tx, found, {page: max(tx.now, START)}))
        self.judge(page, verdict)

    def judge(self, page, verdict=Verdict.REVIEW):
        self.world.do(links.set_verdicts, [Link(page, self.other, verdict)])

    def every(self, wanted=ALL):
        return self.world.look(lambda tx: ids(list_reviews(tx, wanted)))

    def export(self, cursor, wanted=ALL, *, later_s=61):
        """Return the rows of an export at a later time, and its cursor, that was in a file."""
        with self.world.store.read(now=self.world.now + timedelta(seconds=later_s)) as tx:
            after = get_next_cursor(tx, wanted, cursor, "file")
            return ids(list_new_rows(tx, wanted, cursor, after)), read_cursor(after.text(), "file")

    def add_review(self, **values):
        """Return a statement that adds a review like the first one."""
        model = self.world.rows(reviews)[0]._asdict()
        del model["id"]
        return insert(reviews).values({**model, "collected_at": self.world.now, **values})


def ids(rows):
    """Product and review of each row."""
    return [(row.product, row.review) for row in rows]


@pytest.mark.parametrize("seed", range(3))
def test_exports_together_hold_every_row_once(story, seed):
    chance = Random(seed)
    exported, cursor, wrong = [], None, []
    for _ in range(6):
        for _ in range(chance.randrange(4)):
            story.page()
        for page in story.unlinked():
            if chance.random() < 0.4:
                story.link(page, verdict := chance.choice([Verdict.REVIEW, Verdict.WRONG_PRODUCT]))
                wrong += [page] * (verdict is Verdict.WRONG_PRODUCT)
        while wrong and chance.random() < 0.5:
            story.judge(wrong.pop())
        for page in story.linked() - set(wrong):
            story.judge(page)  # it stays a review, and is not given again
        some, cursor = story.export(cursor)
        exported += some
        assert sorted(exported) == sorted(story.every())
    assert {product for product, _ in exported} == {"甲", "乙"}


def test_a_filter_goes_on_too(story):
    wanted = ReviewFilter(products=("乙",))
    story.page()
    first, cursor = story.export(None, wanted)
    story.link(story.unlinked()[0])
    story.page()
    second, _ = story.export(cursor, wanted)
    assert (first, second) == ([], story.every(wanted))
    with pytest.raises(InputError, match="another filter"):
        story.export(cursor)


def test_a_product_that_is_counted_as_a_wanted_one_later_brings_its_earlier_reviews_once(story):
    wanted = ReviewFilter(products=("乙",))
    for _ in range(3):
        story.page()
    story.link(1)
    first, cursor = story.export(None, wanted)
    story.link(2)
    story.world.do(products.edit, "甲", ProductEdit(counted_as="乙"))
    story.page()
    second, cursor = story.export(cursor, wanted)
    third, cursor = story.export(cursor, wanted)
    assert first == [("乙", 1), ("乙", 2)]
    assert sorted(first + second) == sorted(story.every(wanted))
    assert len(first + second) == 12
    assert third == []
    story.link(3)
    assert story.export(cursor, wanted)[0] == [("乙", 5), ("乙", 6)]


def test_a_cursor_of_an_earlier_version_goes_on_without_earlier_reviews(story):
    wanted = ReviewFilter(products=("乙",))
    story.page()
    _, cursor = story.export(None, wanted)
    old = {name: value for name, value in json.loads(cursor.text()).items() if name != "products"}
    story.world.do(products.edit, "甲", ProductEdit(counted_as="乙"))
    some, cursor = story.export(read_cursor(json.dumps(old), "file"), wanted)
    assert (some, cursor.products) == ([], (1, 2))


def test_transactions_that_commit_in_another_order(postgres_store):
    """Rows younger than a minute come with the next export: a lower number may be committed later."""
    story = Story(World(postgres_store))
    story.page()
    first, cursor = story.export(None)
    story.world.pass_s(120)
    with postgres_store.engine.connect() as slow, postgres_store.engine.connect() as quick:
        slow.execute(story.add_review(key="slow"))
        quick.execute(story.add_review(key="quick"))
        quick.commit()
        second, cursor = story.export(cursor, later_s=59)
        slow.commit()
    story.link(story.unlinked()[0])
    third, cursor = story.export(cursor, later_s=59)
    fourth, cursor = story.export(cursor)
    assert (second, third) == ([], [])
    assert sorted(first + fourth) == sorted(story.every())
    assert story.export(cursor)[0] == []


def test_a_refused_record_that_was_deleted_leaves_the_cursor_valid(story):
    """Refused records are deleted whenever their page is read again."""
    story.page()
    refused = story.add_review(key="refused", refused="boilerplate")
    story.world.do(lambda tx: tx.engine_connection.execute(refused))
    first, cursor = story.export(None)
    story.world.run("DELETE FROM reviews WHERE refused IS NOT NULL")
    story.page()
    second, _ = story.export(cursor)
    assert sorted(first + second) == sorted(story.every())


def test_a_clock_that_was_set_back_loses_no_link(story):
    story.page()
    story.page()
    one, other = story.unlinked()
    story.link(one)
    _, cursor = story.export(None)
    story.world.now -= timedelta(days=1)
    story.link(other)
    story.world.now += timedelta(days=1)
    assert {product for product, _ in story.export(cursor)[0]} == {"乙"}


def test_a_cursor_of_another_store_is_refused(story):
    empty = story.export(None)[1]
    story.page()
    _, cursor = story.export(empty)
    last = story.world.rows(reviews)[-1]
    story.world.run("UPDATE reviews SET text_hash = :hash WHERE id = :id", hash=b"x" * 16, id=last.id)
    with pytest.raises(InputError, match="another store"):
        story.export(cursor)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        *((text, "is no cursor") for text in ("", "{}", "[]", "x\x00")),
        ('{"reviewloop_cursor": 2, "wanted": "{}", "review": "x"}', "is no cursor"),
        ('{"reviewloop_cursor": 1, "wanted": "{}", "upto": 7}', "another version of reviewloop; begin a new"),
    ],
)
def test_what_is_no_cursor_of_this_version_is_refused(text, why):
    with pytest.raises(InputError, match=f"^file: .*{why}"):
        read_cursor(text, "file")
