"""Samples of pages and threads are read as they are marked; `research/tests/quality` scores real ones."""

from __future__ import annotations

import csv
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from research.bench.quality.reading import below, figures_of, read_floors, score
from research.tools.pagetruth import NO_SHARED, all_pages
from splitter.catalog.rules import PageRules
from splitter.spans import CHINA
from tasks.reading.decode import decode
from tasks.reading.extract import read_page

RESEARCH = Path(__file__).parents[2] / "research"
PAGES, THREADS = RESEARCH / "samples" / "pages", RESEARCH / "samples" / "threads"
NOW = datetime(2024, 6, 1, 8, tzinfo=CHINA)
INDEX = csv.DictReader((PAGES / "index.csv").read_text("utf-8").splitlines())
ARTICLES = [row for row in INDEX if row["kind"] == "article"]
MARKS = yaml.safe_load((RESEARCH / "bench" / "quality" / "records.yaml").read_text("utf-8"))["samples"]


def letters(text):
    return Counter(char for char in text.lower() if char.isalnum())


@pytest.mark.parametrize("row", ARTICLES, ids=lambda row: row["file"])
def test_an_article_is_read_with_its_title_and_text(row):
    text = decode((PAGES / row["file"]).read_bytes(), {}).text
    (review,) = read_page(text, "http://example.com/page.html", PageRules(main_text=True), now=NOW).reviews
    assert letters(review.title) == letters(row["expected_title"])
    assert letters(review.body) == letters((PAGES / row["expected_body_file"]).read_text("utf-8"))


@pytest.mark.parametrize("file", MARKS)
def test_a_thread_is_read_with_who_wrote_when(file):
    mark = MARKS[file]
    text = decode((THREADS / file).read_bytes(), {}).text
    reviews = read_page(text, mark["url"], PageRules(main_text=True), now=NOW).reviews
    days = [one.date.astimezone(CHINA).date().isoformat() if one.date else "" for one in reviews]
    found = list(zip((one.author for one in reviews), days, strict=True))
    assert found == [(str(author), str(day)) for author, day, *_ in mark["records"]]


def test_no_figure_of_the_samples_is_below_its_floor():
    assert below(figures_of(map(score, all_pages(NO_SHARED))), read_floors("samples")) == []
