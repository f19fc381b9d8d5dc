import json
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
import yaml
from patience import PATIENCE_S

from app.sites.http_session import AskFailed, ask
from app.sites.rule_preview import preview_rules
from splitter.catalog.load import load_catalog
from tasks.worker.settings import CrawlSettings

NOW = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def catalog(tiny_sites):
    return load_catalog(tiny_sites)


@pytest.fixture
def there(lab):
    return ("--lab", f"{lab.host}:{lab.port}")


@pytest.fixture
def search(reviewloop):
    line = reviewloop("split", "蒙牛早餐奶", "--site", "12315.com", "--json").stdout.splitlines()[0]
    return json.loads(line)["url"]


def test_try_a_result_page_then_a_page(reviewloop, there, search):
    result = reviewloop("sites", "try", "12315.com", search, *there, "--json")
    assert result.exit_code == 0, result.stderr
    told = json.loads(result.stdout)
    assert (told["read_as"], told["verdict"], told["status"]) == ("result", "records", 200)
    assert told["found"] >= told["count"] > 0
    page = told["records"][0]["url"]
    shown = reviewloop("sites", "try", "12315.com", page, *there)
    assert shown.exit_code == 0
    for said in ("read as a page of 12315.com", "body", "record 1", "author:"):
        assert said in shown.stdout
    told = json.loads(reviewloop("sites", "try", "12315.com", page, *there, "--json").stdout)
    rules = {rule["name"]: rule for rule in told["rules"]}
    assert rules["review"]["matches"] == told["count"] == rules["body"]["matches"]


def test_try_a_saved_page_that_does_not_fit(reviewloop, tmp_path):
    file = tmp_path / "saved.html"
    items = "".join(f'<li class="entry"><b class="who">甲</b>话{n}</li>' for n in range(4))
    file.write_bytes(f"<title>投诉</title><h1>列表</h1><ul>{items}</ul><script>x</script>".encode("gbk"))
    result = reviewloop("sites", "try", "12315.com", file, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["verdict"] == "broken"
    assert told["encoding"] == "gb18030"
    assert told["outline"][:2] == ["title: 投诉", "h1: 列表"]
    assert "li.entry × 4: 甲 话0" in told["outline"]
    shown = reviewloop("sites", "try", "12315.com", file)
    assert "What the page looks like" in shown.stdout


def test_try_a_site_without_record_rules(reviewloop, tmp_path, tiny_sites):
    data = yaml.safe_load(tiny_sites.read_text("utf-8"))
    data["rules"]["thread"] = {"main_text": True}
    sites = tmp_path / "sites.yaml"
    sites.write_text(yaml.safe_dump(data, allow_unicode=True), "utf-8")
    file = tmp_path / "saved.html"
    text = "上周在超市买了一箱牛奶，回家打开后发现有三盒已经胀包，味道发酸，根本不能喝。"
    file.write_text(f"<title>胀包 - 网</title><div><p>{text}</p></div>", "utf-8")
    told = json.loads(reviewloop("sites", "try", "12315.com", file, "--sites", sites, "--json").stdout)
    assert (told["verdict"], told["main_text"]) == ("records", "density")
    assert told["records"][0]["body"] == text
    shown = reviewloop("sites", "try", "12315.com", file, "--sites", sites).stdout
    assert "main text by density" in shown
    post = (
        "<div class=post><b class=author>{0}</b> <i class=day>2026-11-0{1}</i><div class=text>{2}</div></div>"
    )
    said = [("甲一方", 1, "打开后发现有三盒已经胀包。"), ("乙二山", 2, "我的也是，味道发酸。")]
    file.write_text(f"<title>胀包</title><h1>胀包</h1>{''.join(post.format(*one) for one in said)}", "utf-8")
    told = json.loads(reviewloop("sites", "try", "12315.com", file, "--sites", sites, "--json").stdout)
    rules = {rule["name"]: rule["rule"] for rule in told["rules"]}
    assert rules == {
        "review": "div.post", "body": "div.text", "author": "b.author", "date": "i.day", "page_title": "title",
    }  # fmt: skip
    file.write_text("<title>空</title><h1>没有</h1>", "utf-8")
    nothing = reviewloop("sites", "try", "12315.com", file, "--sites", sites, "--json")
    assert nothing.exit_code == 1
    assert "h1: 没有" in json.loads(nothing.stdout)["outline"]


def test_empty_and_blocked_are_told_apart(reviewloop, tmp_path):
    file = tmp_path / "saved.html"
    file.write_text("<p>很抱歉，没有找到与 光明 相关的网页", "utf-8")
    empty = reviewloop("sites", "try", "12315.com", file, "--as", "result")
    assert empty.exit_code == 0
    assert "empty: the engine says" in empty.stdout
    file.write_text("<p>请输入验证码", "utf-8")
    blocked = reviewloop("sites", "try", "12315.com", file, "--json")
    assert blocked.exit_code == 1
    told = json.loads(blocked.stdout)
    assert told["verdict"] == "blocked"
    assert told["why"].startswith("captcha")


@pytest.mark.parametrize(
    ("status", "verdict"), [(503, "broken"), (404, "broken"), (403, "blocked"), (429, "blocked")]
)
def test_an_error_status_is_no_page(catalog, status, verdict):
    body = '<div class="post" id="1"><div class="post-body">很好</div></div>'.encode()
    url = "http://12315.com/thread-1.html"
    good = preview_rules(catalog, "12315.com", body, {}, url, result=False, now=NOW).reading
    assert (good.verdict, len(good.records)) == ("records", 1)
    read = preview_rules(catalog, "12315.com", body, {}, url, result=False, now=NOW, status=status).reading
    assert (read.verdict, read.records) == (verdict, ())
    assert f"status {status}" in str(read.why)


def test_what_steers_a_terminal_is_not_printed(reviewloop, tmp_path):
    file = tmp_path / "saved.html"
    file.write_text(
        '<div class="post" id="1"><div class="post-body">\x1b[2J清屏 [red]x[/red]</div></div>', "utf-8"
    )
    shown = reviewloop("sites", "try", "12315.com", file).stdout
    assert "\x1b" not in shown
    assert "[red]x[/red]" in shown


@pytest.mark.parametrize(
    ("site", "source", "status", "said"),
    [
        ("none.com", "http://12315.com/", 2, "no site 'none.com'"),
        ("12315.com", "nowhere.html", 2, "No such file"),
        ("12315.com", "ftp://12315.com/", 2, "the scheme is none of"),
        ("12315.com", "http://127.0.0.1:1/", 1, "no public address"),
        ("12315.com", "http://localhost:1/", 1, "no public address"),
        ("12315.com", "http://[::1]/", 1, "no public address"),
        ("12315.com", "http://169.254.169.254/latest", 1, "no public address"),
    ],
)
def test_what_is_not_asked(reviewloop, site, source, status, said):
    result = reviewloop("sites", "try", site, source)
    assert result.exit_code == status
    assert said in result.stderr
    assert not result.stdout


def test_ask_follows_redirects_under_the_guard(lab, search):
    settings = CrawlSettings(lab=(lab.host, lab.port), request_timeout_s=PATIENCE_S)
    answer = ask(search, settings)
    assert (answer.status, answer.url, answer.redirects) == (200, search, ())
    assert lab.log  # the lab was asked
    with pytest.raises(AskFailed, match="user name"):
        ask(f"http://a:b@{urlsplit(search).netloc}/", settings)
