"""Rules learned from the first threads of a site: they read as the full reader does, and are dropped if they don't."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from random import Random

import pytest

from splitter.catalog.rules import PageRules
from tasks.domain.failures import FetchError
from tasks.domain.pages import PageRead
from tasks.reading import learned_rules
from tasks.reading.extract import read_page
from tasks.reading.learned_rules import LearnedRules, learn
from tasks.reading.page import Page
from tasks.reading.thread_pages import read_thread_page

NOW = datetime(2026, 11, 20, tzinfo=UTC)
WITHOUT_RULES = PageRules(main_text=True, blocked=("验证码",))
NAMES = ["jonas", "petra", "hollis", "amelie", "rasmus"]
SENTENCE = (
    "the kettle lid came off after a month and shop sent another one which leaked at its hinge until Monday"
)
QUOTE = '<blockquote class="quote">jonas wrote: The lid came off.</blockquote>'
LAYOUTS = {
    "old": '<div class="post" id="p{id}"><a class="author" href="/u/{n}">{name}</a> <i class="day">{day} 10:00</i>'
    '<div class="text">{text}</div></div>',
    "new": '<li class="comment" id="p{id}"><b class="user">{name}</b><time datetime="{day}T10:00:00Z">{day}</time>'
    '<div class="words">{text}</div></li>',
    "rated": '<li class="review"><h3>{day} {name}</h3><a class="author" href="/u/{n}">{name}</a>'
    '<i class="day">{day}</i> <span class="star star{stars}"></span><div class="text">{text}</div></li>',
    "anonymous": '<div class="post"><i class="day">{day} 10:00</i><div class="text">{text}</div></div>',
}


def said(number: int, n: int) -> str:
    return " ".join(Random(f"{number} {n}").sample(SENTENCE.split(), 9)) + "."


def thread(number: int, posts: int = 4, layout: str = "old", extra: str = "") -> str:
    """Return a page of a thread; each has other authors, days and texts."""
    rows = [
        LAYOUTS[layout].format(
            id=1000 * number + n,
            n=n,
            name=NAMES[(number + n) % len(NAMES)],
            day=f"2026-0{1 + number % 9}-{10 + n}",
            stars=1 + (number + n) % 5,
            text=f"{QUOTE if n == 2 else ''}{said(number, n)}<br>{said(n, number)}",
        )
        for n in range(posts)
    ]
    title = f"Kettle number {number}"
    following = f'<a href="/t/{number}?page=2">Next</a>'
    return (
        f"<html><title>{title}</title><body><h1>{title}</h1>{extra}{''.join(rows)}{following}</body></html>"
    )


def read_all(learned: LearnedRules, pages: Sequence[str]) -> list[bool]:
    """Read pages of a site, check each against the full reader, and return which were read by rules."""
    by_rules = []
    for number, page in enumerate(pages):
        served = learned.served
        assert read(page, number, learned) == read(page, number)
        by_rules.append(learned.served > served)
    return by_rules


def read(page: str, number: int = 0, learned: LearnedRules | None = None) -> PageRead:
    reader = learned.read_thread_page if learned is not None else read_thread_page
    url = f"https://forum.example.org/t/{number}"
    return read_page(page, url, WITHOUT_RULES, now=NOW, read_thread=reader)


@pytest.mark.parametrize(
    ("page", "is_by_rules"),
    [
        pytest.param(thread(4), True, id="a page like the others"),
        pytest.param(thread(4, posts=9), True, id="more posts"),
        pytest.param(thread(4, posts=2), False, id="half of the usual posts and no quote"),
        pytest.param(thread(4, posts=1), False, id="one post"),
        pytest.param(
            thread(4, extra='<p class="notice">Read the rules.</p>'), False, id="an unknown element"
        ),
        pytest.param(thread(4, layout="anonymous"), False, id="no authors"),
        pytest.param(
            "<title>Kettles</title>" + "<a href='/t/5'>Kettle number 5</a><br>" * 9, False, id="a list"
        ),
    ],
)
def test_rules_are_used_after_three_pages_for_pages_like_them(page: str, is_by_rules: bool):
    before = [thread(number, posts=posts) for number, posts in enumerate((5, 4, 6))]
    assert read_all(LearnedRules(), [*before, page]) == [False, False, False, is_by_rules]


def test_every_twentieth_page_is_read_in_full():
    by_rules = read_all(LearnedRules(), [thread(number) for number in range(1, 41)])
    assert [place for place, one in enumerate(by_rules, 1) if not one] == [1, 2, 3, 20, 40]


def test_a_changed_layout_drops_the_rules_after_two_pages():
    pages = [thread(number) for number in range(4)] + [
        thread(number, layout="new") for number in range(4, 10)
    ]
    assert read_all(LearnedRules(), pages) == [False, False, False, True] + [False] * 5 + [True]


def test_nothing_is_stored_from_a_list_or_a_refusal():
    learned = LearnedRules()
    read_all(learned, [thread(number) for number in range(4)])
    found = read("<title>Kettles</title>" + "<a href='/t/5'>Kettle number 5</a><br>" * 9, 5, learned)
    assert found.no_review == "list"
    refusal = "<title>请输入验证码</title><body><div class='post'>访问过于频繁，请输入验证码</div></body>"
    with pytest.raises(FetchError, match="captcha"):
        read(refusal, 6, learned)


def test_what_the_rules_read_has_the_keys_of_the_posts():
    learned = LearnedRules()
    read_all(learned, [thread(number) for number in range(4)])
    found = read(thread(7), 7, learned)
    assert learned.served == 2
    assert [one.key for one in found.reviews] == ["#0", "p7001", "p7002", "p7003"]
    assert found.reviews[2].body == f"{said(7, 2)}\n{said(2, 7)}"
    assert found.next_url == "https://forum.example.org/t/7?page=2"


def test_rules_are_learned_from_the_places_of_the_fields():
    page = Page(thread(1), "https://forum.example.org/t/1")
    rules = learn(page, read_thread_page(page, NOW), NOW)
    assert rules == PageRules(review="div.post", body="div.text", author="a.author", date="i.day")


def test_sites_and_their_names_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(learned_rules, "MOST_SITES", 3)
    learned = LearnedRules()
    for number in range(9):
        url = f"https://forum{number}.example.org/t/1"
        read_page(thread(number), url, WITHOUT_RULES, now=NOW, read_thread=learned.read_thread_page)
    assert len(learned.sites) == 3


def test_rules_read_ratings_and_titles():
    pages = [thread(number, layout="rated") for number in range(4)]
    assert read_all(LearnedRules(), pages) == [False, False, False, True]
    assert {review.rating for review in read(pages[3]).reviews} == {1.0, 4.0, 5.0, 2.0}
