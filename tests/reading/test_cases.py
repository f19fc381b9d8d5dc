"""Pages and lines in ``cases``, each with what is read from it."""

from __future__ import annotations

from datetime import datetime, time
from pathlib import Path
from typing import Any

import pytest
import yaml
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.rules import PageRules
from splitter.spans import CHINA
from tasks.domain.pages import Review
from tasks.reading.extract import read_page
from tasks.reading.lists import is_feed
from tasks.reading.metadata import read_metadata
from tasks.reading.names import is_name, may_be_name, person
from tasks.reading.relevance import is_empty_answer, is_entries
from tasks.reading.site_text import strip_controls, strip_site_lines
from tasks.reading.stars import rating_in

NOW = datetime(2026, 11, 20, 12, tzinfo=CHINA)
FOLDER = Path(__file__).with_name("cases")
CASES = [
    pytest.param(case, id=case["name"])
    for path in sorted(FOLDER.glob("*.yaml"))
    if path.name not in ("lines.yaml", "dates.yaml")
    for case in yaml.safe_load(path.read_text("utf-8"))
]
LINES = [
    pytest.param(name, text, due, id=f"{name} {text!r}")
    for name, rows in yaml.safe_load((FOLDER / "lines.yaml").read_text("utf-8")).items()
    for text, due in rows
]


def title_of(html: str) -> str:
    return read_metadata(LexborHTMLParser(html)).title


def is_empty_answer_alone(text: str) -> bool:
    return is_empty_answer((), text)


READERS = {
    reader.__name__: reader
    for reader in (
        strip_controls,
        strip_site_lines,
        person,
        is_name,
        may_be_name,
        is_feed,
        title_of,
        rating_in,
        is_empty_answer_alone,
        is_entries,
    )
}


def page_of(case: dict[str, Any]) -> str:
    if "html" in case:
        return case["html"]
    title = case.get("title", "滤水壶漏水")
    rows = enumerate(case.get("rows", ()), 1)
    body = case.get("body", "") + "".join(case["each"].format(*row, n=n) for n, row in rows)
    head = f"<title>{title}</title>{case.get('head', '')}"
    return f"<html><head>{head}</head><body><h1>{title}</h1>{body}</body></html>"


def record_of(review: Review) -> tuple[str, str, str]:
    day = review.date.date().isoformat() if review.date else ""
    return review.author, day, review.body


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_read_into_these_records(case: dict[str, Any]) -> None:
    url = case.get("url", "http://bbs.example.cn/thread-7-1-1.html")
    now = datetime.combine(case["now"], time(), CHINA) if "now" in case else NOW
    found = read_page(page_of(case), url, PageRules(main_text=True), now=now)
    expected = [(author, str(day or ""), text) for author, day, text in case["reads"]]
    read = [record_of(review) for review in found.reviews]
    assert len(read) == len(expected)
    also_read = {
        "no_review": found.no_review,
        "titled": found.reviews[0].title if found.reviews else "",
        "keys": [review.key for review in found.reviews],
        "rated": [review.rating for review in found.reviews],
    }
    named = also_read.keys() & case.keys()
    assert {name: also_read[name] for name in named} == {name: case[name] for name in named}
    for (author, day, text), (due_author, due_day, due_text) in zip(read, expected, strict=True):
        beginning = text[: len(due_text) - 1] + "…" if due_text.endswith("…") else text
        assert (author, day, beginning) == (due_author, due_day, due_text)


@pytest.mark.parametrize(("reader", "text", "due"), LINES)
def test_a_line_is_read_as(reader: str, text: str, due: object) -> None:
    assert READERS[reader](text) == due
