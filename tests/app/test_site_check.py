"""Who answers, told from scripted answers; and against the lab."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping

import pytest

from app.sites.http_session import Answer, AskFailed
from app.sites.site_check import SiteCheck, offline
from splitter.catalog.load import parse_catalog
from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.responses import NameUnknown

CATALOG = parse_catalog(
    """\
version: 1
name: small
limits: {per_address_per_s: 0.5, total_per_s: 2}
rules:
  plain: {main_text: true, blocked: [请输入验证码]}
engines:
  search:
    kind: meta
    url: http://s.cn/s
    params: {q: "{query}"}
    headers: {Referer: "http://s.cn/"}
    results: {hit: li, link: a@href, title: a, empty: [nothing found], blocked: [captcha]}
sites:
  a.cn: {engine: search, rules: plain}
""",
    "small.yaml",
)
SEARCH = "http://s.cn/s?q=%E7%89%9B%E5%A5%B6"
HITS = '<li><a href="http://a.cn/1">一</a></li><li><a href="http://a.cn/2">二</a></li>'
ALLOW = "User-agent: *\nDisallow: /private\n"


def no_such_name() -> AskFailed:
    error = AskFailed("no address")
    error.__cause__ = NameUnknown(ErrorClass.CONNECT, "no address")
    return error


def in_no_time() -> AskFailed:
    error = AskFailed("too slow")
    error.__cause__ = FetchError(ErrorClass.TIMEOUT, "too slow")
    return error


class Web:
    """Answers by address: a text, a status, an exception, or (final address, text)."""

    def __init__(self, pages: Mapping[str, object]) -> None:
        self.pages = {"http://s.cn/robots.txt": ALLOW, "http://a.cn/robots.txt": ALLOW, SEARCH: HITS, **pages}
        self.asked: list[str] = []
        self.headers: dict[str, object] = {}
        self.waited: list[float] = []
        self.left_s = 100.0

    def ask(self, url: str, /, *, headers: Mapping[str, str] | None = None) -> Answer:
        self.asked.append(url)
        self.headers[url] = headers
        found = self.pages.get(url, AskFailed("refused"))
        if isinstance(found, AskFailed):
            raise found
        final, text, status = url, "", 200
        if isinstance(found, int):
            status = found
        elif isinstance(found, tuple):
            final, text = found
        else:
            text = str(found)
        return Answer(url=final, status=status, headers={}, body=text.encode(), redirects=(), elapsed_s=0.1)

    def seen(self, catalog=CATALOG, no_browser=""):
        check = SiteCheck(
            catalog,
            self.ask,
            ("牛奶",),
            agent="reviewloop",
            left_s=lambda: self.left_s,
            pause=self.waited.append,
            no_browser=no_browser,
        )
        return {one.name: one for one in check.run()}


@pytest.mark.parametrize(
    ("page", "verdict", "http"),
    [
        ("<p>首页", "answers", "200"),
        (("https://www.a.cn/index.html", "<p>首页"), "answers", "200"),
        (("https://new.b.cn/", "<p>首页"), "moved to new.b.cn", "200"),
        ("<p>请输入验证码", "refuses", "200"),
        (403, "refuses", "403"),
        (412, "refuses", "412"),
        (502, "no answer", "502"),
        (in_no_time(), "no answer", "no answer in time"),
        (AskFailed("connection refused"), "no answer", "no connection"),
        (no_such_name(), "gone", "no such name"),
    ],
)
def test_a_site(page, verdict, http):
    told = Web({"http://a.cn/": page}).seen()["a.cn"]
    assert (str(told.verdict), told.http) == (verdict, http)
    assert told.robots == "allows"


@pytest.mark.parametrize(
    ("page", "verdict", "rules"),
    [
        (HITS, "answers", "2 hits"),
        ("nothing found", "answers", "empty answer"),
        ("<div>another layout</div>", "rules find nothing", "nothing"),
        ("captcha", "refuses", "-"),
        (("https://wall.cn/captcha", "captcha"), "refuses", "-"),
        (("https://other.cn/s", HITS), "answers", "2 hits"),
        (("https://other.cn/", "<p>welcome"), "moved to other.cn", "nothing"),
        (432, "refuses", "-"),
    ],
)
def test_an_engine(page, verdict, rules):
    web = Web({SEARCH: page, "http://a.cn/": "首页"})
    told = web.seen()["search"]
    assert (str(told.verdict), str(told.rules)) == (verdict, rules)
    assert web.headers[SEARCH] == {"Referer": "http://s.cn/"}


def test_robots_first_and_nothing_behind_its_refusal():
    web = Web({"http://a.cn/robots.txt": "User-agent: *\nDisallow: /\n", "http://a.cn/": "首页"})
    told = web.seen()["a.cn"]
    assert (told.robots, told.verdict, told.reached) == ("refuses", "refuses", True)
    assert "http://a.cn/" not in web.asked
    assert web.asked.index("http://s.cn/robots.txt") < web.asked.index(SEARCH)


def test_a_site_that_may_be_crawled_all_the_same_is_asked():
    text = CATALOG.model_copy(deep=True)
    site = text.sites["a.cn"].model_copy(
        update={
            "robots": parse_robots("{obey: false, reason: its operator allows it}"),
        }
    )
    catalog = text.model_copy(update={"sites": {"a.cn": site}})
    web = Web({"http://a.cn/robots.txt": "User-agent: *\nDisallow: /\n", "http://a.cn/": "首页"})
    told = web.seen(catalog)["a.cn"]
    assert (told.robots, told.verdict) == ("not obeyed", "answers")
    assert "http://a.cn/robots.txt" not in web.asked


def parse_robots(text):
    import yaml

    from splitter.catalog.model import RobotsDecision

    return RobotsDecision(**yaml.safe_load(text))


def test_a_site_made_by_script_is_not_asked_without_a_browser():
    text = CATALOG.sites["a.cn"].model_copy(update={"render": "browser"})
    catalog = CATALOG.model_copy(update={"sites": {"a.cn": text}})
    web = Web({"http://a.cn/": "<p>首页"})
    told = web.seen(catalog, "there is no Chromium: install one")["a.cn"]
    assert (told.verdict, told.why) == ("not asked", "there is no Chromium: install one")
    assert "http://a.cn/" not in web.asked
    assert web.seen(catalog)["a.cn"].verdict == web.seen(no_browser="none")["a.cn"].verdict == "answers"


def test_www_is_tried_where_the_bare_name_has_no_address():
    web = Web(
        {
            "http://a.cn/robots.txt": no_such_name(),
            "http://www.a.cn/robots.txt": 404,
            "http://www.a.cn/": "首页",
        }
    )
    told = web.seen()["a.cn"]
    assert (told.verdict, told.url) == ("answers", "http://www.a.cn/")
    assert web.asked.count("http://a.cn/robots.txt") == 1


def test_each_is_asked_once_and_slowly():
    web = Web({"http://a.cn/": "首页"})
    web.seen()
    assert len(web.asked) == len(set(web.asked)) == 4
    assert web.waited == [2.0, 2.0]


def test_when_the_time_is_over_nobody_is_asked():
    web = Web({})
    web.left_s = 0.0
    told = web.seen()
    assert {one.verdict for one in told.values()} == {"not asked"}
    assert web.asked == []
    assert offline(list(told.values()))


def test_a_machine_without_a_way_out_is_not_told_that_all_are_gone():
    web = Web({})
    web.pages = {}
    assert offline(list(web.seen().values()))
    web = Web({"http://a.cn/": no_such_name()})
    assert not offline(list(web.seen().values()))


def test_against_the_lab(reviewloop, lab):
    result = reviewloop("sites", "check", "--lab", f"{lab.host}:{lab.port}", "--json")
    told = json.loads(result.stdout)
    assert (told["reached"], told["by_kind"]) == (True, {"meta": 4, "microblog": 1})
    seen = {one["name"]: one for one in told["seen"]}
    assert seen["baidu"]["verdict"] == "answers"
    assert seen["baidu"]["rules"].endswith("hits")
    assert (seen["cgcr.com.cn"]["verdict"], seen["cgcr.com.cn"]["robots"]) == ("refuses", "refuses")
    assert (seen["315chn.com"]["verdict"], seen["12315.com"]["verdict"]) == ("no answer", "answers")
    assert result.exit_code == 0
    shown = reviewloop("sites", "check", "--lab", f"{lab.host}:{lab.port}").stdout
    for said in ("Engines: ", "robots.txt refuses it", "no connection"):
        assert said in shown


def test_a_closed_port_is_told_as_this_machines_own_trouble(reviewloop):
    with socket.socket() as taken:  # bound, and nobody listens
        taken.bind(("127.0.0.1", 0))
        result = reviewloop("sites", "check", "--lab", f"127.0.0.1:{taken.getsockname()[1]}")
    assert result.exit_code == 1
    assert "Nobody could be reached" in result.stdout


def test_a_wrong_catalog_is_told_before_anybody_is_asked(reviewloop, tmp_path):
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text("version: 1\nname: x\nsites: {}\n", "utf-8")
    result = reviewloop("sites", "check", "--sites", wrong, "--json")
    assert result.exit_code == 2
    assert "wrong.yaml" in result.stderr
    assert not result.stdout


SITEMAP = "<urlset><url><loc>http://a.cn/1</loc></url><url><loc>http://a.cn/2</loc></url></urlset>"
INDEX = "<sitemapindex><sitemap><loc>http://s.cn/1.xml</loc></sitemap></sitemapindex>"


@pytest.mark.parametrize(
    ("text", "verdict", "rules"),
    [
        (SITEMAP, "answers", "2 listed"),
        (INDEX, "answers", "1 sitemaps"),
        ("<urlset></urlset>", "rules find nothing", "nothing"),
        (
            '<rss version="2.0"><channel><item><link>http://a.cn/1</link></item></channel></rss>',
            "answers",
            "1 listed",
        ),
    ],
)
def test_an_engine_that_lists_is_read_as_a_list(text, verdict, rules):
    engine = CATALOG.engines["search"]
    lists = engine.model_copy(update={"discover": "list", "url": "http://s.cn/map.xml", "params": {}})
    catalog = CATALOG.model_copy(update={"engines": {"search": lists}})
    told = Web({"http://s.cn/map.xml": text}).seen(catalog)["search"]
    assert (str(told.verdict), str(told.rules)) == (verdict, rules)
