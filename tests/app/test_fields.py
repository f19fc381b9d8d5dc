"""Names and texts of fields (app/views/fields.py)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import app
from app.views import words
from app.views.fields import format_moment, format_value, label, list_columns
from app.views.words import switch_language, translate
from splitter.errors import Message
from tasks.domain.states import State

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def list_fields() -> Iterator[str]:
    """Yield the fields of every table: constants that end in _FIELDS, and literals that `table` gets."""
    for path in Path(app.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            given: ast.expr | None = None
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "").endswith("_FIELDS"):
                given = node.value
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "table":
                given = node.args[1] if len(node.args) > 1 else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str):
                yield from given.value.split()


def test_every_column_has_a_chinese_name():
    fields = {name.rstrip(">") for name in list_fields()}
    assert len(fields) > 30
    with switch_language("zh"):
        assert [name for name in sorted(fields) if translate(f"field.{name}") == f"field.{name}"] == []


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("active_s", 90, "90 s"),
        ("active_s", 0.25, "250 ms"),
        ("rtt_ms", 165.2, "165 ms"),
        ("attempts_per_s", 2.471, "2.47"),
        ("completion", 0.944, "94%"),
        ("late_share", 0.5, "50%"),
        ("requests", 12345, "12,345"),
        ("score", 1.5, "1.50"),
        ("requests", 0, "0"),
        ("seen_at", NOW - timedelta(seconds=12.4), "12 s ago"),
        ("until", NOW + timedelta(minutes=5), "in 5 min"),
        ("seen_at", NOW - timedelta(days=3), "2026-04-28 20:00:00"),
        ("errors", {"timeout": 2, "bad_rule": 1}, "2 timeout, 1 bad rule"),
        ("kinds", frozenset({"meta", "microblog"}), "meta, microblog"),
        ("drained", True, "yes"),
        ("name", "DONE", "DONE"),
        *(("drained", empty, None) for empty in (False, None, "", [], {})),
    ],
)
def test_a_field_is_written_by_its_unit(field, value, text):
    assert format_value(field, value, NOW) == text


def test_stored_names_are_translated_and_names_of_people_are_not():
    with switch_language("zh"):
        assert format_value("state", "DONE") == format_value("any", State.DONE) == translate("DONE") != "DONE"
        assert format_value("name", "DONE") == "DONE"


@pytest.mark.parametrize(
    ("moved_s", "english", "chinese"),
    [
        (0, "1 s ago", "1 秒前"),
        (0.2, "in 1 s", "1 秒后"),
        (-0.4, "1 s ago", "1 秒前"),
        (90, "in 90 s", "90 秒后"),
        (-7200, "2 h ago", "2 小时前"),
        (-3 * 86_400, "2026-04-28 20:00:00", "2026-04-28 20:00:00"),
    ],
)
def test_a_moment_is_told_in_whole_seconds_from_now(moved_s, english, chinese):
    moment = NOW + timedelta(seconds=moved_s)
    assert format_moment(moment, NOW) == english
    with switch_language("zh"):
        assert format_moment(moment, NOW) == chinese


@pytest.mark.parametrize(
    ("value", "english", "chinese"),
    [
        ({"products": 2, "pages": 1000}, "2 products, 1,000 pages", "产品 2、网页 1,000"),
        ({"connect": 1}, "1 connect", "连接失败 1"),
        (["光明", "牛奶"], "光明, 牛奶", "光明、牛奶"),
        (Message("not used: {columns}; x", columns=("a", "b")), "not used: a, b; x", "not used: a、b; x"),
        (
            Message("{n:,} {name}", n=3, name=Message("reviews")),
            "3 reviews",
            "reviews 3",
        ),
    ],
)
def test_lists_and_counts_are_told_as_their_language_does(value, english, chinese):
    assert format_value("counts", value) == english
    with switch_language("zh"):
        assert format_value("counts", value) == chinese


def test_all_threads_speak_the_language_of_the_process(monkeypatch):
    monkeypatch.setattr(words._Process, "language", "en")
    words.use_language("zh")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(words.language).result() == "zh"
        with switch_language("en"):
            assert (words.language(), pool.submit(words.language).result()) == ("en", "zh")


def test_a_label_leaves_out_the_unit():
    assert [label(name) for name in ("shown_at", "lost_s", "page_count")] == ["shown", "lost", "page count"]
    assert label("seen_per_s") == "seen per s"


@dataclass
class Row:
    name: str
    drained: bool = False
    load_s: float | None = None


def test_a_column_that_no_row_has_a_value_in_is_left_out():
    columns = list_columns([Row("a"), Row("b", load_s=2.0)], "name drained load_s")
    assert [(one.name, one.is_number) for one in columns] == [("name", False), ("load_s", True)]
    assert [one.name for one in list_columns([Row("")], "name drained")] == ["name"]
    assert [one.name for one in list_columns([], "name drained")] == ["name"]
