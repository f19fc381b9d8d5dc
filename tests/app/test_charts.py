"""Charts are well-formed SVG that says what it was given, without script, style or outside address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
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


def test_bars_are_as_long_as_their_numbers():
    tree = parsed(bars([("光明", 200), ("特仑苏", 50), ("none", 0)], "reviews"))
    first, second, none = (float(box.get("width")) for box in tree.iter(f"{SVG}rect"))
    assert first == pytest.approx(4 * second, rel=0.01)
    assert none == 0
    assert {"光明", "200", "特仑苏", "50"} <= set(texts(tree))


def test_columns_name_as_many_days_as_fit():
    days = [((START + timedelta(days=n)).strftime("%Y-%m-%d"), n) for n in range(90)]
    tree = parsed(columns(days, "by day"))
    assert len(list(tree.iter(f"{SVG}rect"))) == 90
    labels = [text for text in texts(tree) if "-" in text]
    assert labels[0] == "2026-05-01"
    assert 3 <= len(labels) <= 9


def test_a_line_breaks_where_nothing_is_known_and_has_round_times():
    points = [(START + timedelta(minutes=n), None if n == 5 else 0.1 * n) for n in range(60)]
    tree = parsed(lines([Line("n1", points)], "rate"))
    assert len(list(tree.iter(f"{SVG}polyline"))) == 2
    assert {"00:00", "00:15", "00:30", "00:45"} <= set(texts(tree))


def test_a_legend_only_where_there_is_something_to_tell_apart():
    one, two = Line("n1", [(0, 1), (1, 2)]), Line("n2", [(0, 1), (1, 2)])
    assert "n1" not in texts(parsed(lines([one], "rate")))
    assert {"n1", "n2"} <= set(texts(parsed(lines([one, two], "rate"))))


def test_a_heat_map_is_stronger_where_more_is_and_blank_where_nothing_is():
    cells = {
        ("a", "x"): HeatCell(0.1, "10 %"),
        ("a", "y"): HeatCell(0.9, "90 %"),
        ("b", "x"): HeatCell(None, "-"),
    }
    tree = parsed(heat_map(["a", "b"], ["x", "y"], cells, "completion"))
    weak, strong, unknown = (float(box.get("fill-opacity")) for box in tree.iter(f"{SVG}rect"))
    assert 0 == unknown < weak < strong


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
