"""The results the source published must come out exactly."""

import json

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from splitter.keywords import keywords_of

PRODUCT = "光明高钙牛奶"
WORDS = "%E5%85%89%E6%98%8E+%E9%AB%98%E9%92%99+%E7%89%9B%E5%A5%B6"


def json_lines(*arguments, stdin=None, status=0):
    result = CliRunner().invoke(cli, ["split", *arguments, "--sites", "paper-2014", "--json"], input=stdin)
    assert result.exit_code == status, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        (PRODUCT, "光明&高钙&牛奶"),
        ("特仑苏", "蒙牛&特仑苏"),
        ("蒙牛早餐奶", "蒙牛&早餐奶"),
        ("雀巢中老年奶粉", "雀巢&中老年&奶粉"),
    ],
)
def test_keywords(name, keywords):
    assert "&".join(keywords_of(name)) == keywords


def test_url_without_paging_and_site():
    lines, _ = json_lines(PRODUCT, "--no-paging", "--no-site")
    baidu = [line for line in lines if line["engine"] == "baidu"]
    assert [line["url"] for line in baidu] == [f"http://www.baidu.com/s?wd={WORDS}&ie=utf-8"]
    assert baidu[0]["site"] is None
    assert baidu[0]["page"] is None


@pytest.mark.parametrize(
    ("site", "arguments", "url"),
    [
        ("cca.org.cn", ["--no-paging"], f"http://www.baidu.com/s?wd={WORDS}+site%3Acca.org.cn&ie=utf-8"),
        (
            "315tousu.org",
            [],
            f"http://www.baidu.com/s?wd={WORDS}+site%3A315tousu.org&pn=0&cl=0&ie=utf-8&lm=1",
        ),
        (
            "weibo.com",
            [],
            "http://weibo.yunyun.com/Weibo.php?p=1&q=site%3Aweibo.com+%E5%85%89%E6%98%8E%26%E9%AB%98%E9%92%99"
            "%26%E7%89%9B%E5%A5%B6%26%E6%8A%95%E8%AF%89&wbts=1",
        ),
    ],
)
def test_url_of_a_site(site, arguments, url):
    lines, _ = json_lines(PRODUCT, *arguments)
    (line,) = [line for line in lines if line["site"] == site]
    assert line["url"] == url


def test_a_line_says_where_it_comes_from():
    lines, _ = json_lines(PRODUCT, "--site", "weibo.com", "--pages", "2")
    assert list(lines[0]) == ["product", "keywords", "kind", "site", "engine", "url", "page", "chunk"]
    assert [(line["page"], line["chunk"], line["kind"]) for line in lines] == [
        (1, 1, "microblog"),
        (2, 2, "microblog"),
    ]
