"""`review correct` and `product edit --exclude-words`: what is asked, told and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

LONG = "包装全漏了，箱子一打开全是奶，客服不理人，以后再也不会买这个牌子的东西了大家小心"
LINES = (
    {"product": "光明牛奶", "body": LONG, "date": "2026-11-01", "url": "http://jd.com/1"},
    {"product": "光明牛奶", "body": "这罐奶粉结块了，冲不开", "date": "2026-11-03", "url": "http://jd.com/1"},
    {"product": "光明牛奶", "body": LONG, "date": "2026-11-02", "url": "http://tmall.com/1"},
)


@pytest.fixture
def ask(reviewloop, tmp_path, monkeypatch):
    """A store with an import, and what asks it: the answer as JSON, or the message of exit status 2."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "r.jsonl"
    file.write_text("\n".join(json.dumps(one, ensure_ascii=False) for one in LINES), "utf-8")

    def run(*args, status=0):
        done = reviewloop(
            *args, *(["--json"] if status == 0 else []), REVIEWLOOP_DATABASE_URL="sqlite:///r.db"
        )
        assert done.exit_code == status, done.stderr
        return json.loads(done.stdout) if status == 0 else done.stderr

    run("review", "import", "r.jsonl")
    return run


def exported(ask):
    ask("export", "reviews", "-o", "out.json")
    return {row["review"]: row for row in json.loads(Path("out.json").read_text("utf-8"))}


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["1", "--voice", "prais"], "did you mean 'praise'?"),
        (["1", "--theme", "packagng_damage"], "did you mean 'packaging_damage'"),
        (["1", "--theme", "zzz"], "docs/themes.md"),
        (["1", "--not-product", "光明奶"], "did you mean '光明牛奶'?"),
        (["99", "--hide"], "there is no review 99"),
        (["1"], "say what is wrong"),
        (["1", "--hide", "--undo"], "say what is wrong"),
        (["2", "--undo"], "is so already"),
        (["1", "--hide"], "1 linked copy"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_changes(ask, args, told):
    assert told in ask("review", "correct", *args, status=2)
    assert {row["corrected"] for row in exported(ask).values()} == {""}


def test_a_correction_holds_for_copies_and_adds_up_until_it_is_taken_back(ask):
    ask("review", "correct", "1", "--theme", "price，service", "--because", "so", "--yes")
    assert ask("review", "correct", "3", "--voice", "other", "--yes", "--dry-run")["dry_run"]
    told = ask("review", "correct", "3", "--voice", "news", "--not-product", "光明牛奶", "--yes")
    assert told["copies"] == 1
    assert told["correction"] == {
        "voice": "news", "themes": ["price", "service"], "hidden": False, "not_products": [1],
    }  # fmt: skip
    rows = exported(ask)
    assert [(rows[n]["voice"], rows[n]["corrected"], rows[n]["left_out"]) for n in (1, 3)] == [
        ("news", "voice themes not_product", "not_product")
    ] * 2
    assert rows[2]["corrected_by"] is None
    ask("judge", "--all")
    assert exported(ask)[1]["voice"] == "news"
    ask("review", "correct", "1", "--undo", "--yes")
    assert exported(ask)[3]["corrected"] == ""
    assert ask("verify")["violations"] == []


def test_words_of_a_product_are_replaced_and_taken_back(ask):
    done = ask("product", "edit", "光明牛奶", "--exclude-words", "奶粉，罐")
    assert done["excluded_words"] == ["奶粉", "罐"]
    assert [row["left_out"] for row in exported(ask).values()] == ["", "excluded_word", ""]
    assert ask("product", "edit", "光明牛奶", "--exclude-words", "")["excluded_words"] == []
    assert {row["left_out"] for row in exported(ask).values()} == {""}


def test_a_product_is_counted_as_another_until_its_name_is_blank(ask):
    ask("product", "add", "光明鲜奶")
    for given, counted_as in ((" 光明牛奶 ", "光明牛奶"), ("  ", None), ("光明牛奶", "光明牛奶"), ("", None)):
        assert ask("product", "edit", "光明鲜奶", "--counted-as", given)["counted_as"] == counted_as
