"""Rules against saved pages: the shipped ones, the real ones where they are there, and one's own."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
import yaml
from tiny_world import ROOT

from app.sites.saved_pages import SAMPLES, check_saved, saved_pages
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


def test_rules_that_broke_are_told_and_the_exit_status_is_1(reviewloop, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    sites = broken_catalog(tmp_path)
    result = reviewloop("sites", "check", "--offline", "--pages", empty, "--sites", sites, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    broken = {one["file"]: one["why"] for one in told["pages"] if one["verdict"] == "does not fit"}
    assert set(broken) == {"sogou.html", "bing.html", "weibo-desktop-none.html", "tieba-thread.html"}
    assert "read as broken, but it is records" in broken["sogou.html"]
    assert "reports 1,020 hits, read as none" in broken["bing.html"]
    assert "but it is empty" in broken["weibo-desktop-none.html"]
    assert broken["tieba-thread.html"] == "1 of 2 records"
    shown = reviewloop("sites", "check", "--offline", "--pages", empty, "--sites", sites)
    assert shown.exit_code == 1
    assert "bing.html: reports 1,020 hits" in shown.stdout


def test_todays_catalog_is_right(reviewloop, today, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    result = reviewloop("sites", "check", "--offline", "--pages", empty, *today)
    assert result.exit_code == 0, result.stdout
    assert "today is right" in result.stdout
    assert "no saved page: rules weibo-comments" in result.stdout
    told = json.loads(reviewloop("sites", "check", "--offline", "--pages", empty, *today, "--json").stdout)
    assert set(told["by_group"]) == {"regulator", "complaints", "forum", "microblog", "shop", "news"}


@pytest.mark.slow
def test_a_page_of_ones_own(reviewloop, today, tmp_path):
    page = tmp_path / "mine.html"
    page.write_bytes((SAMPLES / "tieba-thread.html").read_bytes())
    own = ("--page", f"tieba.baidu.com={page}")
    told = json.loads(reviewloop("sites", "check", "--offline", *own, *today, "--json").stdout)
    (mine,) = [one for one in told["pages"] if one["source"] == "yours"]
    assert (mine["name"], mine["site"], mine["took"], mine["verdict"]) == (
        "tieba-thread",
        "tieba.baidu.com",
        2,
        "fits",
    )
    page.write_text("<p>something else", "utf-8")
    assert reviewloop("sites", "check", "--offline", *own, *today).exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--offline", "--page", "tieba"), "write ENGINE=FILE or SITE=FILE"),
        (
            ("--offline", "--page", f"nobody.cn={SAMPLES / 'tieba.html'}"),
            "no engine, site or rules 'nobody.cn'",
        ),
        (("--offline", "--pages", "nowhere"), "no such folder"),
        (("--pages", "nowhere"), "need --offline"),
    ],
)
def test_wrong_input(reviewloop, arguments, said):
    result = reviewloop("sites", "check", *arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not result.stdout


def test_groups_choose_sites(reviewloop, today):
    told = json.loads(reviewloop("sites", "list", "--group", "shop", *today, "--json").stdout)
    assert {row["group"] for row in told["sites"]} == {"shop"}
    jd = next(row for row in told["sites"] if row["site"] == "jd.com")
    assert jd["robots_obeyed"]
    assert "obeyed" in jd["robots_decision"]
    lines = reviewloop("split", "特仑苏", "--group", "shop", *today, "--json").stdout.splitlines()
    assert {json.loads(line)["site"] for line in lines} == {row["site"] for row in told["sites"]}
    assert reviewloop("sites", "list", "--group", "shop").exit_code == 2  # the tiny catalog has no groups
