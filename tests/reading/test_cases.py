"""Pages in ``cases``, each with the records that are read from it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from splitter.catalog.rules import PageRules
from splitter.spans import CHINA
from tasks.domain.pages import Review
from tasks.reading.extract import read_page

NOW = datetime(2026, 11, 20, 4, tzinfo=UTC)
CASES = [
    pytest.param(case, id=case["name"])
    for path in sorted(Path(__file__).with_name("cases").glob("*.yaml"))
    for case in yaml.safe_load(path.read_text("utf-8"))
]


def page_of(case: dict[str, Any]) -> str:
    title = case.get("title", "滤水壶漏水")
    rows = enumerate(case.get("rows", ()), 1)
    body = case.get("body", "") + "".join(case["each"].format(*row, n=n) for n, row in rows)
    head = f"<title>{title}</title>{case.get('head', '')}"
    return f"<html><head>{head}</head><body><h1>{title}</h1>{body}</body></html>"


def record_of(review: Review) -> tuple[str, str, str]:
    day = review.date.astimezone(CHINA).date().isoformat() if review.date else ""
    return review.author, day, review.body


@pytest.mark.parametrize("case", CASES)
def test_a_page_is_read_into_these_records(case: dict[str, Any]) -> None:
    url = case.get("url", "http://bbs.example.cn/thread-7-1-1.html")
    found = read_page(page_of(case), url, PageRules(main_text=True), now=NOW)
    expected = [(author, str(day or ""), text) for author, day, text in case["reads"]]
    read = [record_of(review) for review in found.reviews]
    assert len(read) == len(expected)
    assert found.reviews[0].title == case["titled"] if "titled" in case else True
    for (author, day, text), (due_author, due_day, due_text) in zip(read, expected, strict=True):
        beginning = text[: len(due_text) - 1] + "…" if due_text.endswith("…") else text
        assert (author, day, beginning) == (due_author, due_day, due_text)
