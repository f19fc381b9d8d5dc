"""The gate of `bench reading`: its figures on the shared data hold their floors, and it sees what gets worse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from selectolax.lexbor import LexborHTMLParser

from app.cli.main import cli
from research.bench.quality import reading
from research.bench.quality.reading import below, figures_of, is_author, move_floors, read_floors, score
from research.tools.pagetruth import NO_SHARED, all_pages, fragment_f1, gram_f1, token_f1, word_f1
from splitter.errors import InputError
from tasks.domain.pages import PageRead, Review
from tasks.reading.records import Records

SAMPLES = all_pages(NO_SHARED)
ADVERTISEMENT = Review("#0", "", "Buy it now", "", "", None, None)


def test_no_figure_of_the_shared_data_is_below_its_floor(data: Path):
    pages = all_pages(data)
    assert len(pages) >= 62 + 29 + 120
    assert below(figures_of(map(score, pages)), read_floors("shared")) == []


def test_a_reader_that_stores_nothing_is_below_the_floor_of_every_text():
    figures = figures_of(score(page, lambda _text, _page: PageRead("", ())) for page in SAMPLES)
    missed = {line.split()[0] for line in below(figures, read_floors("samples"))}
    assert {"article.zh.f1", "article.zh.first", "article.zh.day", "article.zh.right"} <= missed
    assert {"thread.zh.f1", "thread.zh.days", "thread.zh.signed", "microblog.f1", "feed.right"} <= missed
    assert not {"list.right", "home.right", "results.f1"} & missed
    assert figures["article.zh.wrong"] == 4


def test_a_reader_that_stores_a_text_of_every_page_is_below_the_floor_of_lists():
    figures = figures_of(score(page, lambda _text, _page: PageRead("", (ADVERTISEMENT,))) for page in SAMPLES)
    assert {"list.right", "home.right"} <= {
        line.split()[0] for line in below(figures, read_floors("samples"))
    }


def test_of_a_shop_only_rated_reviews_are_right():
    page = replace(SAMPLES[0], kind="shop")
    rated = ADVERTISEMENT._replace(rating=4.0)
    rights = [
        score(page, lambda _text, _page, stored=stored: PageRead("", stored)).marks["right"]
        for stored in ((), (rated,), (rated, ADVERTISEMENT))
    ]
    assert rights == [1, 1, 0]


def test_a_figure_that_is_missing_or_below_is_named():
    assert below({"a.f1": 0.9, "b.f1": 0.8}, {"a.f1": 0.9, "b.f1": 0.801, "c.f1": 0.0}) == [
        "b.f1 is 0.8; its floor is 0.801",
        "c.f1 is missing; its floor is 0.0",
    ]


def test_floors_rise_by_themselves_and_fall_only_by_name():
    floors = {"a.f1": 0.9, "b.f1": 0.8, "gone.f1": 1.0}
    figures = {"a.f1": 0.7, "b.f1": 0.85, "new.f1": 0.5, "a.wrong": 3, "b.f1.of": 7, "thread.more.f1": 0.9}
    assert move_floors(floors, figures, raised=False, lowered=()) == floors
    raised = {"a.f1": 0.9, "b.f1": 0.85, "gone.f1": 1.0, "new.f1": 0.5}
    assert move_floors(floors, figures, raised=True, lowered=()) == raised
    lowered = {"a.f1": 0.7, "b.f1": 0.8}
    assert move_floors(floors, figures, raised=False, lowered=("a.f1", "gone.f1")) == lowered
    with pytest.raises(InputError, match="af1"):
        move_floors(floors, figures, raised=True, lowered=("af1",))


def test_the_command_fails_below_a_floor_until_it_is_lowered(tmp_path, monkeypatch):
    def bench(*arguments):
        return CliRunner().invoke(cli, ["bench", "reading", "--smallest", *arguments])

    monkeypatch.setattr(reading, "FLOORS", tmp_path / "floors.yaml")
    reading.FLOORS.write_text("# A comment.\n\nsamples: {list.pages: 2}\nshared: {list.pages: 7}\n", "utf-8")
    failed = bench("--raise-floors")
    assert failed.exit_code == 1
    assert "list.pages is 1; its floor is 2" in failed.stderr
    assert read_floors("samples")["article.zh.f1"] == 1
    every = CliRunner().invoke(cli, ["bench", "all", "--only", "reading", "--smallest", "--json"])
    assert every.exit_code == 1
    assert json.loads(every.stdout)["fallen"] == ["list.pages is 1; its floor is 2"]
    assert bench("--lower-floor", "list.pages", "--pages").exit_code == 0
    assert read_floors("samples")["list.pages"] == 1
    assert read_floors("shared") == {"list.pages": 7}
    assert reading.FLOORS.read_text("utf-8").startswith("# A comment.\n\n")


def test_lines_fit_80_columns_and_pages_come_worst_first():
    pytest.importorskip("trafilatura", reason="the peers are not installed")
    result = reading.run(NO_SHARED, True, by_page=True, peers=True)
    printed = list(reading.figure_lines(result["figures"]))
    assert max(len(line.rpartition("  ")[0]) for line in printed) < 80
    assert all(any(line.endswith(f"  {page.id}") for line in printed) for page in SAMPLES)
    results = [reading.Result("x", "list", 1, 0, 0.1, 1.0, {"right": mark}) for mark in (1.0, 0.0)]
    assert [one.marks["right"] for one in sorted(results, key=reading._rank)] == [0, 1]


def test_the_programs_rules_are_selectors():
    engines = yaml.safe_load(Path(reading.__file__).with_name("engines.yaml").read_text("utf-8"))
    tree = LexborHTMLParser("<p>nothing</p>")
    for rules in engines.values():
        found = Records(tree, rules["review"])
        assert [found.values(rules[name]) for name in ("author", "date", "body")] == [[], [], []]


@pytest.mark.parametrize(
    ("found", "marked", "right"),
    [
        ("", (), True),
        ("小王", (), False),
        ("", ("小王",), False),
        ("记者小王", ("小王", "日报"), True),
        ("Jane Doe", ("jane doe", "Ann Lee"), True),
        ("Jane Roe", ("Jane Doe",), False),
    ],
)
def test_an_author_is_right_if_it_is_one_of_those_marked(found, marked, right):
    assert is_author(found, marked) is right


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


def test_f1_of_grams_words_and_fragments():
    assert gram_f1("甲乙丙丁戊", "甲乙 丙，丁戊。") == 1
    assert gram_f1("甲乙丙丁", "甲乙丙丁戊") == pytest.approx(2 / 3)
    assert gram_f1("", "甲乙丙丁") == 0
    assert word_f1("The cup, the lid", "the lid") == pytest.approx(2 * 2 / 6)
    assert fragment_f1("甲 乙", ("甲乙",), ("丙",)) == 1.0
    assert fragment_f1("甲乙丙", ("甲乙", "丁"), ("丙",)) == pytest.approx(2 / 4)
