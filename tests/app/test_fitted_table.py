"""Every table fits its terminal: what matters least is left out and named, long texts end in an ellipsis."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from app.cli.output import Cell, table


def lines(
    columns: Sequence[str], rows: Sequence[Sequence[Cell]], width: int = 80, **given: object
) -> list[str]:
    console = Console(
        file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    console.print(table(columns, rows, **given))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


NODE = ("node", "state", "seen", "kinds", "address", "slots", "running", "idle", "held", "attempts/s", "wait")
ROW = (
    "node1",
    "silent (drained)",
    "120 s ago",
    "meta, microblog",
    "127.0.0.12",
    4,
    123,
    5,
    12,
    0.52,
    "1.2 min",
)


def test_a_table_that_fits_is_whole() -> None:
    told = lines(("node", "state"), [("node1", "alive")])
    assert [line.split() for line in told if line.strip("─ ")] == [["node", "state"], ["node1", "alive"]]


def test_what_matters_least_goes_first_and_is_named() -> None:
    told = lines(NODE, [ROW], least=("attempts/s", "kinds", "idle"))
    assert all(cell_len(line) <= 80 for line in told)
    whole = "\n".join(told)
    assert "node1" in whole
    assert "silent (drained)" in whole
    assert "attempts/s" not in told[1]
    assert "no room for: kinds" in whole
    assert "address" in told[1], "no more is left out than has to be"
    assert whole.index("attempts/s") > whole.index("no room for")


def test_a_chinese_name_is_as_wide_as_it_is() -> None:
    name = "特仑苏有机纯牛奶梦幻盖二百五十毫升十二盒礼盒装" * 2
    told = lines(("product", "reviews", "address"), [(name, 12, "http://12315.com/a")], 40)
    assert all(cell_len(line) <= 40 for line in told)
    assert "…" in "".join(told)
    assert any("12" in line for line in told)


def test_folded_texts_are_whole() -> None:
    text = "为什么不能用 " * 20
    told = lines(("n", "why>"), [(1, text)], 40)
    assert all(cell_len(line) <= 40 for line in told)
    assert "".join("".join(told).split()).count("为什么不能用") == 20


@given(
    st.lists(
        st.lists(st.text(max_size=60) | st.integers(0, 10**9) | st.none(), min_size=4, max_size=4), max_size=5
    ),
    st.integers(20, 120),
)
def test_any_table_fits(rows: list[list[Cell]], width: int) -> None:
    told = lines(("first", "second", "third>", "fourth"), rows, width)
    assert all(cell_len(line) <= width for line in told if "no room for" not in line)


@pytest.mark.parametrize(
    "command", [("status",), ("product", "list"), ("nodes", "list"), ("control", "pairs")]
)
def test_commands_fit_eighty_columns(crawled, reviewloop, monkeypatch, command) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    told = reviewloop(*command, "--db", crawled.url)
    assert told.exit_code == 0
    assert all(cell_len(line) <= 80 for line in told.stdout.splitlines() if "reviewloop " not in line)
