"""Rules against saved pages: small ones of our own, and real ones if they are there."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import yaml
from saved_pages import SAMPLES, check_saved, saved_pages
from tiny_world import ROOT

from splitter.catalog.load import load_catalog

NOW = datetime(2026, 5, 1, tzinfo=UTC)
TODAY = load_catalog(ROOT / "sites.yaml")
REAL = ROOT.parent / "shared" / "data" / "pages"


@pytest.fixture
def today():
    return ("--sites", ROOT / "sites.yaml")


def test_every_shipped_page_fits_and_every_engine_and_rule_set_has_one():
    checked = check_saved(TODAY, saved_pages(None), NOW)
    assert [(one.file, one.why) for one in checked if one.verdict == "does not fit"] == []
    without = {(one.kind, one.name) for one in checked if not one.file}
    assert without == {("rules", "weibo-comments")}  # a real page of it is saved
    answers = {(one.name, one.answer) for one in checked}
    for engine in ("baidu", "searxng", "weibo", "weibo-desktop"):
        assert {(engine, "records"), (engine, "empty"), (engine, "blocked")} <= answers


def test_every_file_of_the_folder_is_in_the_index():
    index = yaml.safe_load((SAMPLES / "index.yaml").read_text("utf-8"))
    listed = {entry["file"] for entry in index["shipped"]}
    assert listed == {path.name for path in SAMPLES.iterdir() if path.suffix in (".html", ".json", ".xml")}


def test_the_real_pages():
    if not REAL.is_dir():
        pytest.skip(f"{REAL} is not there")
    checked = [one for one in check_saved(TODAY, saved_pages(REAL), NOW) if one.source == "saved"]
    assert len(checked) == 43
    assert [(one.file, one.why) for one in checked if one.verdict != "fits"] == []
    hits = [one for one in checked if one.kind == "engine" and one.expected]
    assert sum(one.right or 0 for one in hits) >= 0.98 * sum(one.expected or 0 for one in hits)
    posts = next(one for one in checked if one.name == "weibo-post")
    assert (posts.expected, posts.took) == (20, 20)


def broken_catalog(tmp_path):
    data = yaml.safe_load((ROOT / "sites.yaml").read_text("utf-8"))
    data["engines"]["sogou"]["results"]["hit"] = "div.of-another-year"
    data["engines"]["bing"]["results"]["found"] = r"([\d,]+) of something"
    data["engines"]["weibo-desktop"]["results"]["empty"] = ["never said"]
    data["rules"]["tieba-thread"]["review"] = "div.l_post[data-field]"
    path = tmp_path / "broken.yaml"
    path.write_text(yaml.safe_dump(data, allow_unicode=True), "utf-8")
    return path


def test_rules_that_broke_do_not_fit(tmp_path):
    checked = check_saved(load_catalog(broken_catalog(tmp_path)), saved_pages(None), NOW)
    broken = {one.file: one.why for one in checked if one.verdict == "does not fit"}
    assert set(broken) == {"sogou.html", "bing.html", "weibo-desktop-none.html", "tieba-thread.html"}
    assert "read as broken, but it is records" in broken["sogou.html"]
    assert "reports 1,020 hits, read as none" in broken["bing.html"]
    assert "but it is empty" in broken["weibo-desktop-none.html"]
    assert broken["tieba-thread.html"] == "1 of 2 records"


def test_groups_choose_sites(reviewloop, today):
    told = json.loads(reviewloop("sites", "list", "--group", "shop", *today, "--json").stdout)
    assert {row["group"] for row in told["sites"]} == {"shop"}
    jd = next(row for row in told["sites"] if row["site"] == "jd.com")
    assert jd["robots_obeyed"]
    assert "obeyed" in jd["robots_decision"]
    lines = reviewloop("split", "特仑苏", "--group", "shop", *today, "--json").stdout.splitlines()
    assert {json.loads(line)["site"] for line in lines} == {row["site"] for row in told["sites"]}
    assert reviewloop("sites", "list", "--group", "shop").exit_code == 2  # the tiny catalog has no groups
