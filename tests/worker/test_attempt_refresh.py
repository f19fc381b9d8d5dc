"""An attempt that asks known pages again: what it sends, what it counts, and that nothing is stored twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import text
from test_attempt import NOW, SEARCH, SITE, World, complaint, hit, result_page

from splitter.catalog.model import Catalog
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.hit_count import NewPartition
from tasks.domain.pages import Response
from tasks.domain.states import State, Transition
from tasks.store.queue import tasks, transitions
from tasks.store.sql.tables import (
    UtcDateTime,
    metadata,
    page_products,
    pages,
    reviews,
    subtasks,
    virtual_tasks,
)
from tasks.store.verify.verify import verify


class Tagged:
    """Gives each page its text's ETag, and 304 to whoever has it."""

    def __init__(self, web: Any) -> None:
        self._web = web
        self.conditions: dict[str, str | None] = {}

    async def fetch(
        self, url: str, *, timeout_s: float, headers: Any, before_request: Any, trusts: Any, **_how: Any
    ) -> Response:
        answer = await self._web.fetch(
            url, timeout_s=timeout_s, headers=headers, before_request=before_request, trusts=trusts
        )
        etag = f'"{len(answer.body)}"'
        asked = (headers or {}).get("If-None-Match")
        self.conditions[url] = asked
        if asked == etag:
            return Response(url=url, status=304, headers={"etag": etag}, body=b"", elapsed_s=0.1)
        return Response(
            url=url, status=200, headers={**answer.headers, "etag": etag}, body=answer.body, elapsed_s=0.1
        )


class Recrawled(World):
    """Three pages stored by a first round, and a second one that lists them again."""

    def __init__(self, url: str) -> None:
        super().__init__(url, lanes=1)
        site = self.catalog.sites[SITE].model_copy(update={"refresh_s": 60.0})
        self.catalog: Catalog = self.catalog.model_copy(update={"sites": {**self.catalog.sites, SITE: site}})
        self.answers = self.web.answers
        self.web: Any = Tagged(self.web)
        self.answers[SEARCH] = result_page(hit(1), hit(2), hit(3))
        self.answers |= {hit(n): complaint(f"{n}") for n in (1, 2, 3)}
        assert self.run()
        with self.store.begin(now=NOW) as tx:
            # Long enough ago: all of it.
            for table in metadata.sorted_tables:
                for name in (one.name for one in table.c if isinstance(one.type, UtcDateTime)):
                    earlier = f"strftime('%Y-%m-%d %H:%M:%f000', {name}, '-1 day')"
                    tx.engine_connection.execute(text(f"UPDATE {table.name} SET {name} = {earlier}"))
            (last,) = tx.engine_connection.execute(virtual_tasks.select()).all()
            again = {"keywords": last.keywords, "aliases": last.aliases, "round": 2, "created_at": NOW}
            tx.engine_connection.execute(virtual_tasks.insert().values(product_id=last.product_id, **again))
            (wanted,) = tasks.list_unplanned(tx, 1)
            partition = NewPartition(("牛奶",), 1, 1)
            planned = [tasks.NewTask(SITE, "baidu", "meta", (partition,))]
            tasks.plan(tx, wanted, planned, lambda *_: [SEARCH])
            self.subtask_id = max(
                tx.engine_connection.scalars(subtasks.select().with_only_columns(subtasks.c.id))
            )
            transitions.move(tx, Transition.ADMIT, [transitions.Move(self.subtask_id)])

    @property
    def counts(self) -> tuple[int, int, int, int]:
        a = self.attempt
        return a.offered, a.tried, a.collected, a.known


@pytest.fixture
def world(sqlite_url: str) -> Iterator[Recrawled]:
    made = Recrawled(sqlite_url)
    yield made
    with made.store.begin() as tx:
        # No sweep wakes here what slept a day ago.
        assert [one for one in verify(tx).violations if one.kind != "overdue"] == []
    made.store.close()


def test_unchanged_pages_cost_a_condition_each_and_count_as_known(world: Recrawled) -> None:
    assert world.run()
    assert all(world.web.conditions[hit(n)] for n in (1, 2, 3))
    assert world.counts == (0, 0, 0, 3)
    assert world.rows(subtasks)[-1].state == State.SLEEP
    assert (len(world.rows(pages)), len(world.rows(reviews))) == (3, 3)
    assert {row.checked_at is not None for row in world.rows(pages)} == {True}


def test_a_changed_page_gives_what_is_new_and_counts_as_known_once(world: Recrawled) -> None:
    world.answers[hit(2)] = complaint("2") + complaint("2追评")
    assert world.run()
    assert world.counts == (0, 0, 0, 3)
    assert [row.body for row in world.rows(reviews)] == [
        "牛奶变质 1",
        "牛奶变质 2",
        "牛奶变质 3",
        "牛奶变质 2追评",
    ]
    assert sorted(row.reviews for row in world.rows(pages)) == [1, 1, 2]
    assert len(world.rows(page_products)) == 3


def test_a_new_page_among_known_ones_is_what_the_attempt_answers_for(world: Recrawled) -> None:
    world.answers[SEARCH] = result_page(hit(1), hit(2), hit(4))
    world.answers[hit(4)] = complaint("4")
    assert world.run()
    assert world.counts == (1, 1, 1, 2)


def test_a_known_page_that_is_gone_now_keeps_its_reviews(world: Recrawled) -> None:
    world.answers[hit(3)] = FetchError(ErrorClass.NOT_FOUND, "404")
    assert world.run()
    assert world.counts == (1, 1, 0, 2)
    assert world.rows(subtasks)[-1].state == State.SLEEP
    assert len(world.rows(reviews)) == 3
