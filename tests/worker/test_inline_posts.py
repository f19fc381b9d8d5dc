"""An attempt at an engine whose hits are whole posts: stored from the result page, without another request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from test_attempt import SEARCH, SITE, World

from splitter.catalog.names import Kind
from splitter.catalog.rules import PostRules, ResultRules
from tasks.domain.states import State
from tasks.store.sql.tables import page_products, pages, reviews
from tasks.store.verify.verify import verify

RULES = ResultRules(
    format="json",
    hit="cards[].mblog",
    link="https://m.example.com/detail/{id}",
    title="title",
    found="total",
    next="more",
    blocked=("ok=-100",),
    post=PostRules(id="id", body="text", author="user", date="at"),
)
SECOND = "http://www.baidu.com/s?wd=a&pn=10"


class Posts(World):
    """The subtask's site is reached through an engine of whole posts."""

    def __init__(self, url: str, **more: Any) -> None:
        super().__init__(url, **more)
        engine = self.catalog.engines["baidu"].model_copy(
            update={"kind": Kind.META, "inline": True, "results": RULES, "headers": {"X-Mark": "1"}}
        )
        self.catalog = self.catalog.model_copy(update={"engines": {**self.catalog.engines, "baidu": engine}})
        self.sent: list[tuple[str, dict[str, str]]] = []
        fetch = self.web.fetch

        async def noted(url: str, *, headers: Any, **how: Any) -> Any:
            self.sent.append((url, dict(headers or {})))
            return await fetch(url, headers=headers, **how)

        self.web.fetch = noted  # type: ignore[method-assign]

    @property
    def asked(self) -> list[str]:
        return [url for url in self.web.asked if "robots" not in url]


def listed(*numbers: int, **more: Any) -> str:
    posts = [
        {"id": n, "text": f"光明牛奶喝了第{n}次，<br/>又结块了", "user": f"用户{n}", "at": "2025-12-01 08:00"}
        for n in numbers
    ]
    return json.dumps({"cards": [{"mblog": post} for post in posts], **more})


@pytest.fixture
def world(sqlite_url) -> Iterator[Posts]:
    made = Posts(sqlite_url, urls=(SEARCH, SECOND))
    yield made
    made.store.close()


def post(n: int) -> str:
    return f"https://m.example.com/detail/{n}"


def test_posts_are_pages_with_one_review_and_no_request(world):
    world.web.answers |= {SEARCH: listed(1, 2, total=3, more=2), SECOND: listed(2, 3)}
    assert world.run()
    assert world.subtask.state == State.SLEEP
    assert world.asked == [SEARCH, SECOND], "and none of the posts"
    assert [page.url for page in world.rows(pages)] == [post(1), post(2), post(3)]
    stored = world.rows(reviews)
    assert [(r.body, r.author, r.site) for r in stored] == [
        (f"光明牛奶喝了第{n}次， 又结块了", f"用户{n}", SITE) for n in (1, 2, 3)
    ]
    assert {r.date_text for r in stored} == {"2025-12-01 08:00"}
    a = world.attempt
    assert (a.offered, a.tried, a.collected, a.known, a.requests) == (3, 3, 3, 0, 3)
    assert len(world.rows(page_products)) == 3
    with world.store.read() as tx:
        assert verify(tx).violations == ()


def test_headers_of_the_engine_go_with_its_result_pages_only(world):
    world.web.answers |= {SEARCH: listed(1)}
    assert world.run()
    marked = [url for url, headers in world.sent if headers.get("X-Mark")]
    assert marked == [SEARCH]
    assert len(world.sent) > 1, "robots.txt was asked, too"


def test_posts_count_for_the_quota_and_end_the_reading_of_result_pages(world):
    world.web.answers |= {SEARCH: listed(1, 2, 3, more=2), SECOND: listed(4)}
    assert world.run(quota=2)
    assert world.asked == [SEARCH]
    a = world.attempt
    assert (a.offered, a.tried, a.collected) == (3, 3, 3), "what has been read is not thrown away"
    assert world.subtask.state == State.SLEEP
    assert world.subtask.left > 0, "the second result page is left"


def test_a_post_that_is_known_is_not_stored_again(world):
    world.web.answers |= {SEARCH: listed(1, more=2), SECOND: listed(1, 1)}
    assert world.run()
    a = world.attempt
    assert (a.offered, a.tried, a.collected) == (1, 1, 1)
    assert len(world.rows(pages)) == len(world.rows(reviews)) == 1


def test_a_refusal_is_no_empty_answer(world):
    world.web.answers |= {SEARCH: json.dumps({"ok": -100})}
    assert world.run()
    assert world.attempt.outcome == "failed"
    assert world.rows(pages) == []
