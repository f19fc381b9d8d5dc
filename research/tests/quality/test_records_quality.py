"""Records of the marked pages are read as they are marked."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from selectolax.lexbor import LexborHTMLParser

from research.bench.quality import records
from research.bench.quality.records import Marked, gram_f1, marked_pages, part_of, score_of
from tasks.reading.records import Records

SAMPLE_PAGES = [page for page in marked_pages(Path("/nonexistent")) if page.part == "samples"]


@pytest.mark.parametrize("marked", SAMPLE_PAGES, ids=lambda one: one.file)
def test_samples_are_read_as_they_are_marked(marked: Marked):
    score = score_of(marked)
    assert score.found == score.marked
    assert score.signed == 1
    assert score.text is not None
    assert score.text >= 0.99


def test_the_samples_are_there():
    assert len(SAMPLE_PAGES) == 27


def test_4_gram_f1():
    assert gram_f1("甲乙丙丁戊", "甲乙 丙丁戊") == 1
    assert gram_f1("甲乙丙丁", "甲乙丙丁戊") == pytest.approx(2 / 3)
    assert gram_f1("", "甲乙丙丁") == 0


def test_pages_are_split_by_name():
    assert part_of("more-forum-6897d6ef37.html") == "tuning"
    assert part_of("more-forum-8cf0af42df.html") == "held_out"


def test_the_programs_rules_are_selectors():
    engines = yaml.safe_load(Path(records.__file__).with_name("engines.yaml").read_text("utf-8"))
    tree = LexborHTMLParser("<p>nothing</p>")
    for rules in engines.values():
        found = Records(tree, rules["review"])
        assert [found.values(rules[name]) for name in ("author", "date", "body")] == [[], [], []]


@pytest.mark.parametrize("half", ["programs", "programs_unseen"])
def test_pages_of_programs_are_marked_by_their_rules(tmp_path, half):
    authors, days = ("khixxx", "Mara Lund", "tidepool"), ("2024-05-01", "2024-05-02", "2024-05-03")
    posts = "".join(
        f'<article class="message message--post"><h4 class="message-name"><a class="username" href="/members/{n}/">'
        f'{author}</a></h4><time datetime="{day}T10:00:00+0000">{day}</time><div class="message-body">'
        f'<div class="bbWrapper">The lid of my kettle {n} came off after a month, and nobody answers.</div></div></article>'
        for n, (author, day) in enumerate(zip(authors, days, strict=True))
    )
    wanted = "held_out" if half == "programs_unseen" else "tuning"
    stem = next(name for n in range(99) if part_of(name := f"wcxb-dev-{n:04}") == wanted)
    folder = tmp_path / "threads"
    (folder / "expected").mkdir(parents=True)
    (folder / f"{stem}.html").write_text(f"<body>{posts}</body>", "utf-8")
    (folder / "expected" / f"{stem}.json").write_text('{"url": "https://forum.example.org/t/1"}', "utf-8")
    (page,) = (one for one in marked_pages(tmp_path) if one.part == half)
    assert page.records == tuple(zip(authors, days, strict=True))
    assert score_of(page).signed == 1
