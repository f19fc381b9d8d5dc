"""robots.txt: verdicts from real and hostile ones."""

from __future__ import annotations

import csv

import pytest

from tasks.fetching.robots import ROBOTS_TOKEN, RobotsRules, RobotsState

AGENT = "reviewloop"


def test_rules_hold_for_our_agent_or_for_all():
    rules = RobotsRules.parse(
        "User-agent: *\nDisallow: /private\nCrawl-delay: 2.5\n\nUser-agent: reviewloop\nDisallow: /s?\nAllow: /s?ok",
        200,
    )
    assert rules.state is RobotsState.RULES
    assert not rules.allows("http://a.cn/s?wd=1", AGENT)
    assert rules.allows("http://a.cn/s?ok=1", AGENT)
    assert rules.allows("http://a.cn/private", AGENT)
    assert not rules.allows("http://a.cn/private/x", "other")
    assert (rules.crawl_delay_s(AGENT), rules.crawl_delay_s("other")) == (None, 2.5)


@pytest.mark.parametrize(
    ("status", "state", "allowed"),
    [
        (404, RobotsState.ALLOW_ALL, True),
        (403, RobotsState.ALLOW_ALL, True),
        (301, RobotsState.ALLOW_ALL, True),
        (429, RobotsState.DISALLOW_FOR_NOW, False),
        (503, RobotsState.DISALLOW_FOR_NOW, False),
        (None, RobotsState.UNKNOWN, False),
    ],
)
def test_without_a_robots_txt(status, state, allowed):
    rules = RobotsRules.parse("User-agent: *\nDisallow: /", status)
    assert rules.state is state
    assert rules.allows("http://a.cn/x", AGENT) is allowed
    assert rules.crawl_delay_s(AGENT) is None


@pytest.mark.parametrize(
    "text", ["", "<!DOCTYPE html><p>User-agent: *\nDisallow: /", "\ufeff <html>", "\0\0\0", "Disallow /"]
)
def test_nothing_said_allows_all(text):
    assert RobotsRules.parse(text, 200).allows("http://a.cn/x", AGENT)


def test_byte_order_mark_and_what_lies_beyond_the_limit():
    filler = "# padding\n" * 60_000
    rules = RobotsRules.parse(f"\ufeffUser-agent: *\nDisallow: /first\n{filler}Disallow: /last", 200)
    assert not rules.allows("http://a.cn/first", AGENT)
    assert rules.allows("http://a.cn/last", AGENT)


def test_real_ones(data):
    with (data / "robots" / "index.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    seen = {}
    for row in rows:
        text = (data / "robots" / row["file"]).read_bytes().decode("utf-8", "replace")
        rules = RobotsRules.parse(text, 200)
        assert rules.state is (RobotsState.RULES if row["content"] == "robots" else RobotsState.ALLOW_ALL), (
            row["host"]
        )
        seen[row["host"]] = rules
    assert not seen["www.google.com"].allows("https://www.google.com/search?q=x", AGENT)
    assert not seen["www.bing.com"].allows("https://www.bing.com/search?q=x", AGENT)
    assert seen["www.fmprc.gov.cn"].allows("https://www.fmprc.gov.cn/x", AGENT)
    assert len(rows) == 16


def test_a_file_of_many_groups_keeps_the_rules_that_are_ours():
    others = "".join(f"User-agent: bot{n}\n" for n in range(1000))
    ours = "User-agent: bot\nUser-agent: Reviewloop\nDisallow: /ours\n"
    text = f"{others}Disallow: /theirs\n{ours}User-agent: *\nDisallow: /\n"
    rules = RobotsRules.parse(text, 200)
    assert rules.allows("http://a.cn/theirs", ROBOTS_TOKEN)
    assert not rules.allows("http://a.cn/ours/1", ROBOTS_TOKEN)


def test_a_rule_with_very_many_stars_refuses_rather_more():
    rules = RobotsRules.parse("User-agent: *\nDisallow: /" + "*a" * 1000, 200)
    assert not rules.allows("http://a.cn/" + "a" * 30, ROBOTS_TOKEN)
    assert rules.allows("http://a.cn/" + "b" * 30, ROBOTS_TOKEN)


@pytest.mark.parametrize("line", ["User-agent *", "useragent: *", "User Agent: *", "user-agent:*"])
def test_names_of_groups_are_read_however_they_are_written(line):
    rules = RobotsRules.parse(f"{line}\nDisallow: /x\n", 200)
    assert not rules.allows("http://a.cn/x", ROBOTS_TOKEN)
