"""robots.txt: verdicts from real and hostile ones."""

from __future__ import annotations

import csv

import pytest
from protego import Protego

from tasks.domain.address import MAX_URL_CHARS
from tasks.fetching.robots import LONGEST_CHECK_S, ROBOTS_TOKEN, RobotsRules, RobotsState

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


LONG = "http://a.cn/" + "a" * 7900


def starred(count: int, rule: str) -> str:
    """A file with so many rules, whose `{n}` are numbers."""
    return "User-agent: *\n" + "".join(f"Disallow: {rule.format(n=n)}\n" for n in range(count))


@pytest.mark.parametrize(
    ("text", "url", "allowed"),
    [
        # Few pieces, or a short address: rules hold as they are written.
        (starred(1, "/*" + "a*" * 19 + "b"), LONG, True),
        (starred(1, "/*" + "a*" * 1000), "http://a.cn/" + "a" * 30, True),
        (starred(1, "/*" + "a*" * 20), "http://a.cn/" + "a" * 20, False),
        (starred(500, "/*?*sort{n}="), "http://a.cn/product/1.html?a=1&b=2", True),
        (starred(500, "/*?*sort{n}="), "http://a.cn/product/1.html?a=1&sort499=2", False),
        # More than may be tried in time: what begins like such a rule is refused.
        (starred(9000, "/" + "*a" * 19 + "*b{n}"), LONG, False),
        (starred(9000, "/" + "*a" * 19 + "*b{n}"), "http://a.cn/a", False),
        (starred(9000, "/x" + "*a" * 19 + "*b{n}"), LONG, True),
        (starred(9000, "*b{n}"), LONG, False),
        (starred(200, "/*" + "a" * 90 + "{n}a*"), LONG, False),
        (starred(200, "/" + "*aaaab" * 19 + "{n}*"), "http://a.cn/" + "aaaab" * 1500, False),
        (starred(9000, "/x*{n}") + "Allow: /x*\n", "http://a.cn/x1", False),
        (starred(9000, "/x*{n}") + "Allow: /x1\n", "http://a.cn/x1", True),
    ],
)
def test_rules_with_stars_take_a_bounded_time_or_refuse(text, url, allowed):
    rules = RobotsRules.parse(text, 200)
    assert rules.allows(url, ROBOTS_TOKEN) is allowed


def test_real_files_are_read_as_the_library_reads_them(data):
    for file in sorted((data / "robots").glob("*.txt")):
        text = file.read_bytes().decode("utf-8", "replace")
        rules = RobotsRules.parse(text, 200)
        if rules.state is not RobotsState.RULES:
            continue
        assert rules.check_s(MAX_URL_CHARS) < LONGEST_CHECK_S
        whole = Protego.parse(text)
        assert rules.crawl_delay_s(ROBOTS_TOKEN) == whole.crawl_delay(ROBOTS_TOKEN)
        values = [line.partition(":")[2].strip() for line in text.splitlines()]
        for path in [value.replace("*", "x").removesuffix("$") for value in values if value.startswith("/")]:
            url = f"http://{file.stem}{path}"
            assert rules.allows(url, ROBOTS_TOKEN) == whole.can_fetch(url, ROBOTS_TOKEN), url


@pytest.mark.parametrize(
    "name",
    [
        *("reviewloop", "ReviewLoop", "reviewloop/1.0", "reviewloop/1.0 (+http://a.cn/bot)", "reviewloop*"),
        *(
            "googlebot, reviewloop",
            "Googlebot,bingbot,ReviewLoop/2",
            "googlebot reviewloop",
            "a; reviewloop; b",
        ),
        *("Mozilla/5.0 (compatible; reviewloop/1.0)", "*, googlebot", "review"),
    ],
)
def test_groups_that_name_us_are_heard(name):
    text = f"User-agent: {name}\nUser-agent: other\nDisallow: /x\nCrawl-delay: 3\n"
    for rules in (RobotsRules.parse(text, 200), RobotsRules.parse(f"User-agent: other\n{text}", 200)):
        assert not rules.allows("http://a.cn/x", ROBOTS_TOKEN)
        assert rules.crawl_delay_s(ROBOTS_TOKEN) == 3.0


@pytest.mark.parametrize(
    "name",
    [
        *(
            "googlebot",
            "googlebot/2.1",
            "Googlebot*",
            "Googlebot/*",
            "reviewloopbot",
            "notreviewloop",
            "loop",
        ),
        *("googlebot, bingbot", "review bot", "my-reviewloop", "", "//"),
    ],
)
def test_groups_of_others_are_not_heard(name):
    text = f"User-agent: *\nDisallow: /all\nUser-agent: {name}\nSitemap: http://a.cn/\nDisallow: /x\n"
    rules = RobotsRules.parse(text, 200)
    assert rules.allows("http://a.cn/x", ROBOTS_TOKEN)
    assert not rules.allows("http://a.cn/all", ROBOTS_TOKEN)


@pytest.mark.parametrize("line", ["User-agent *", "useragent: *", "User Agent: *", "user-agent:*"])
def test_names_of_groups_are_read_however_they_are_written(line):
    rules = RobotsRules.parse(f"{line}\nDisallow: /x\n", 200)
    assert not rules.allows("http://a.cn/x", ROBOTS_TOKEN)
