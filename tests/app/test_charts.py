"""Charts are well-formed SVG that says what it was given, without script, style or outside address."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.reports.charts import HeatCell, Line, bars, columns, heat_map, lines

SVG = "{http://www.w3.org/2000/svg}"
NASTY = '<script>alert(1)</script>" onload="x" \x1b[2J\u202e'
START = datetime(2026, 5, 1, tzinfo=UTC)


def parsed(svg):
    tree = ET.fromstring(svg)
    for element in tree.iter():
        assert element.tag.removeprefix(SVG) not in ("script", "style", "image", "a", "foreignObject")
        assert not [name for name in element.attrib if name.startswith("on") or name in ("style", "href")]
    return tree


def texts(tree):
    return [element.text for element in tree.iter(f"{SVG}text")]


@pytest.mark.parametrize(
    "chart",
    [
        bars([(NASTY, 3)], NASTY),
        columns([(NASTY, 3)], NASTY),
        lines([Line(NASTY, [(1, 2), (2, 3)]), Line("other", [(1, 2)])], NASTY),
        heat_map([NASTY], [NASTY], {(NASTY, NASTY): HeatCell(0.5, NASTY, NASTY)}, NASTY),
    ],
)
def test_what_strangers_wrote_stays_text(chart):
    tree = parsed(chart)
    assert "<script>" not in chart
    assert any("alert" in (element.text or "") for element in tree.iter(f"{SVG}title"))


def test_a_chart_of_nothing_is_nothing():
    assert bars([], "x") == columns([], "x") == lines([Line("n", [(1, None)])], "x") == ""
    assert heat_map([], ["x"], {}, "x") == ""


@given(st.lists(st.tuples(st.text(max_size=40), st.floats(0, 1e12)), min_size=1, max_size=30))
def test_any_numbers_make_a_picture(values):
    for tree in (parsed(bars(values, "x")), parsed(columns(values, "x"))):
        width = float(tree.get("width"))
        for box in tree.iter(f"{SVG}rect"):
            assert 0 <= float(box.get("x")) <= width
            assert float(box.get("width")) >= 0


@given(st.lists(st.tuples(st.floats(-1e9, 1e9), st.none() | st.floats(-1e9, 1e9)), max_size=30))
def test_any_points_make_a_picture(points):
    svg = lines([Line("n", points)], "x")
    if any(y is not None for _, y in points):
        parsed(svg)
    else:
        assert svg == ""
