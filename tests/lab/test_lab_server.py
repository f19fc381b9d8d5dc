"""The lab over real connections, from several loopback addresses."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest
from click.testing import CliRunner
from patience import PATIENCE_S, until

from app.cli.crawl.lab import lab as lab_command
from app.lab.profile import Profile
from app.lab.running import running_lab
from splitter.errors import InputError

MILK = ("光明", "高钙", "牛奶")
SEARCH = "/s?wd=%E5%85%89%E6%98%8E+%E9%AB%98%E9%92%99+%E7%89%9B%E5%A5%B6+site%3A12315.com&pn=0&ie=utf-8"


def profile(*pairs, **more):
    return Profile.model_validate({"name": "test", "pairs": list(pairs), **more})


def path_of(url):
    return "/" + url.split("/", 3)[3]


@pytest.fixture
def start(catalog, no_reviews):
    def start_lab(with_profile, **more):
        return running_lab(catalog, with_profile, reviews=no_reviews, **more)

    return start_lab


def until_page(get, lab, host, target, client):
    for _ in range(3):
        try:
            got = get(lab, host, target, client)
        except (http.client.HTTPException, OSError):
            continue
        if got.status == 200:
            return got
    raise AssertionError(f"{host}{target} gave no page in three requests")


def test_calm_gives_every_client_the_same_bytes_within_three_requests(start, get):
    with start("calm") as one, start("calm") as other:
        targets = [("www.baidu.com", SEARCH)]
        targets += [("12315.com", path_of(url)) for url in one.web.truth("12315.com", MILK)][:12]
        targets += [("weibo.com", path_of(url)) for url in one.web.truth("weibo.com", MILK)][:12]
        for host, target in targets:
            first = until_page(get, one, host, target, "127.0.0.2")
            again = until_page(get, one, host, target, "127.0.0.3")
            elsewhere = until_page(get, other, host, target, "127.0.0.4")
            assert first.body == again.body == elsewhere.body
            assert first.headers["content-type"] == elsewhere.headers["content-type"]


def test_every_request_is_in_the_log_with_its_client_before_it_is_answered(start, get, tmp_path):
    path = tmp_path / "log.jsonl"
    with start(profile(), log_path=path) as lab:
        for i, client in enumerate(["127.0.0.2", "127.0.0.3", "127.0.0.3", "127.0.0.2"]):
            got = get(lab, "WWW.baidu.com:80", f"{SEARCH}&n={i}", client)
            entry = lab.log.entries()[-1]
            assert len(lab.log.entries()) == i + 1
            assert (entry.client, entry.host, entry.path) == (client, "www.baidu.com", f"{SEARCH}&n={i}")
            assert (entry.status, entry.outcome, entry.bytes) == (200, "page", len(got.body))
        get(lab, "12315.com", "/robots.txt")
        get(lab, "12315.com", "/favicon.ico")
        get(lab, "example.com", "/")
        get(lab, "12315.com", "/", method="POST")
        get(lab, "lab.local", "/__log")
        served = get(lab, "lab.local", "/__log").body.decode().splitlines()
        written = path.read_text("utf-8").splitlines()
    assert written == served
    lines = [json.loads(line) for line in written]
    assert [line["outcome"] for line in lines[4:]] == ["robots", "favicon", "unknown_host", "bad_method"]
    assert [line["status"] for line in lines[4:]] == [200, 404, 404, 405]
    assert [line["t"] for line in lines] == sorted(line["t"] for line in lines)
    assert {line["tried"] for line in lines[:4]} == {1}


def test_a_rate_limit_and_a_block_meet_one_client_only(start, get):
    limit = {"role": "site", "rate_limit": {"requests": 2, "window_s": 60, "retry_after_s": 9}}
    block = {"role": "engine", "block": {"requests": 1, "window_s": 60, "for_s": 60, "answer": "captcha"}}
    with start(profile(limit, block)) as lab:
        seen = [get(lab, "12315.com", "/", "127.0.0.2") for _ in range(3)]
        assert [got.status for got in seen] == [200, 200, 429]
        assert seen[-1].headers["retry-after"] == "9"
        assert get(lab, "12315.com", "/", "127.0.0.3").status == 200
        get(lab, "www.baidu.com", SEARCH, "127.0.0.2")
        assert "百度安全验证" in get(lab, "www.baidu.com", SEARCH, "127.0.0.2").body.decode()
        assert "百度安全验证" not in get(lab, "www.baidu.com", SEARCH, "127.0.0.3").body.decode()


@pytest.mark.parametrize(
    ("fault", "status", "says"),
    [
        ("server_error", 500, ""),
        ("unavailable", 503, ""),
        ("forbidden", 403, ""),
        ("rate_limited", 429, ""),
        ("too_frequent", 200, "访问过于频繁"),
        ("captcha", 200, "请输入验证码"),
        ("login_page", 200, "请先登录"),
    ],
)
def test_faults_that_are_answers(start, get, fault, status, says):
    with start(profile({"faults": {fault: 1}})) as lab:
        got = get(lab, "12315.com", "/")
        assert got.status == status
        assert says in got.body.decode()
        assert lab.log.entries()[-1].outcome == fault


def test_a_lab_stops_although_requests_hang(start):
    with start(profile({"faults": {"hang": 1}})) as lab:
        connection = http.client.HTTPConnection(lab.host, lab.port, timeout=PATIENCE_S)
        connection.request("GET", "/", headers={"Host": "12315.com"})
        until(lab.log.entries, "the request is under way")
    with pytest.raises(ConnectionError):
        connection.getresponse()
    connection.close()


def test_a_cut_off_body_is_shorter_than_announced(start, get):
    with start(profile({"faults": {"cut_off": 1}})) as lab:
        with pytest.raises(http.client.IncompleteRead) as caught:
            get(lab, "12315.com", "/")
        assert 0 < len(caught.value.partial) == lab.log.entries()[-1].bytes
        assert caught.value.expected > 0


def test_the_lab_has_pages_of_its_own(start, get):
    with start(profile()) as lab:
        for host in (f"127.0.0.1:{lab.port}", "localhost", "lab.local"):
            assert "315tousu.org" in get(lab, host, "/").body.decode()
        asked = "%E5%85%89%E6%98%8E,%E9%AB%98%E9%92%99,%E7%89%9B%E5%A5%B6"
        truth = json.loads(get(lab, "lab.local", f"/__truth?keywords={asked}&site=12315.com").body)
        assert tuple(truth) == lab.web.truth("12315.com", MILK) != ()
        assert get(lab, "lab.local", "/__truth?site=12315.com").status == 400
        assert get(lab, "lab.local", f"/__truth?keywords={asked}&site=example.com").status == 400
        assert get(lab, "lab.local", "/other").status == 404
        unknown = get(lab, "example.com", "/")
        assert unknown.status == 404
        assert b"example.com" in unknown.body


@pytest.mark.parametrize(
    "arguments", [["--host", "0.0.0.0"], ["--profile", "clam"], ["--sites", "no-such-file"]]
)
def test_the_command_refuses_wrong_input(arguments):
    result = CliRunner().invoke(lab_command, ["--port", "0", "--sites", "paper-2014", *arguments])
    assert isinstance(result.exception, InputError)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal_and_ends_cleanly(number, get, tmp_path):
    code = "from app.cli.crawl.lab import lab; lab()"
    log = tmp_path / "log.jsonl"
    arguments = [
        "--port",
        "0",
        "--profile",
        "demo",
        "--seed",
        "3",
        "--sites",
        "paper-2014",
        "--json",
        "--log",
        log,
    ]
    with (
        subprocess.Popen(
            [sys.executable, "-c", code, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        ExitStack() as stack,
    ):
        stack.callback(process.kill)  # a failure does not wait for it
        document = json.loads(process.stdout.readline())
        shown = {"host": "127.0.0.1", "profile": "demo", "seed": 3, "sites": 35}
        assert document == {**shown, "port": document["port"]}
        connection = http.client.HTTPConnection("127.0.0.1", document["port"], timeout=PATIENCE_S)
        connection.request("GET", "/robots.txt", headers={"Host": "cgcr.com.cn"})
        assert b"Disallow: /\n" in connection.getresponse().read()
        os.kill(process.pid, number)
        assert process.wait(PATIENCE_S) == 0
        assert process.stdout.read() == process.stderr.read() == ""
        connection.close()
    assert json.loads(log.read_text("utf-8"))["outcome"] == "robots"
