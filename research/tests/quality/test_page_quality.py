"""How right pages are read, as numbers that may not drop.

Two sets of pages: the samples in ``research/samples/pages``, which are always there and must be read without an error;
and the real pages of the shared data, where it is beside the project, each floor a little under what is reached.
"""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

from research.bench.quality.pagequality import Score, scores
from research.tools.pagetruth import SAMPLES, fragment_f1, token_f1

REAL = Path(__file__).parents[4] / "shared" / "data" / "pages"

# By kind of page: what is scored, the floor of its mean, and how many pages have a truth.
FLOORS = [
    ("article", "title", 0.94, 17),
    ("article", "body", 0.975, 17),
    ("article", "date", 0.84, 13),
    ("article", "page_title", 0.99, 13),
    ("portal", "refused", 1.0, 4),
    ("list", "refused", 1.0, 2),
    ("forum-list", "refused", 1.0, 1),
    ("snippet", "refused", 1.0, 1),
    ("weibo-comments", "page_title", 1.0, 1),
    ("feed", "title", 1.0, 12),
    ("serp", "title", 0.99, 10),
    ("serp", "body", 0.99, 9),
    ("serp", "urls", 0.985, 10),
    ("weibo-search", "body", 0.96, 1),
]


MEASURES = ("title", "body", "urls", "date", "refused")


@pytest.fixture(scope="module")
def read() -> list[Score]:
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is not there: only the samples are read")
    return scores(REAL)


def test_the_samples_are_read_without_an_error():
    by_file = {score.file: score for score in scores(SAMPLES / "pages")}
    assert len(by_file) == 10
    assert [file for file, score in by_file.items() if not score.encoding] == []
    known = {(file, name): getattr(score, name) for file, score in by_file.items() for name in MEASURES}
    scored = {key: value for key, value in known.items() if value is not None}
    assert len(scored) == 22
    assert {key: value for key, value in scored.items() if value < 1} == {}


def test_every_encoding_is_found(read):
    assert [score.file for score in read if not score.encoding] == []
    assert len(read) == 62


@pytest.mark.parametrize(("kind", "name", "floor", "pages"), FLOORS)
def test_floor_by_kind_of_page(read, kind, name, floor, pages):
    scored = {s.file: value for s in read if s.kind == kind and (value := getattr(s, name)) is not None}
    worst = sorted(scored.items(), key=lambda item: item[1])[:5]
    assert len(scored) == pages
    assert fmean(scored.values()) >= floor, worst


@pytest.mark.parametrize(("name", "floor"), [("title", 0.97), ("body", 0.98)])
def test_floor_over_all_pages(read, name, floor):
    assert fmean(value for score in read if (value := getattr(score, name)) is not None) >= floor


@pytest.mark.parametrize(
    ("text", "truth", "expected"),
    [
        ("光明牛奶", "光明牛奶", 1.0),
        ("光明 Milk，2盒", "光明milk 2 盒", 1.0),
        ("光明牛奶", "光明", 2 * 2 / 6),
        ("奶奶奶", "奶", 2 * 1 / 4),
        ("", "光明", 0.0),
        ("", "", 1.0),
        ("milk", "mil k", 0.0),
    ],
)
def test_token_f1(text, truth, expected):
    assert token_f1(text, truth) == pytest.approx(expected)
    assert token_f1(truth, text) == pytest.approx(expected)


def test_fragment_f1():
    assert fragment_f1("甲 乙", ("甲乙",), ("丙",)) == 1.0
    assert fragment_f1("甲乙丙", ("甲乙", "丁"), ("丙",)) == pytest.approx(2 / 4)
