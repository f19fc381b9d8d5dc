"""What a command prints, for a right and a wrong input, is from a catalog or is data."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from threading import Event
from unittest.mock import Mock

import click
import pytest
from pseudo_catalog import all_in_brackets, list_marks_outside, list_words_outside
from test_command_line import ALL
from tiny_world import PRODUCTS, SITES

DB = "{db}"
LEAVES = {" ".join(path) for path, command in ALL if not isinstance(command, click.Group)}
ELSEWHERE = {"simulate", "balance", "chaos"}
"""Commands of research: they are for developers, in English."""

MADE = {
    "names.csv": "name,priority\n特仑苏,high\n🥛,1\n",
    "reviews.jsonl": '{"product": "特仑苏", "body": "很好喝"}\n{"a": 1}\n',
    "page.html": "<p>很好喝</p>",
}
"""Files in the folder of each run."""

RIGHT = {
    "alerts list": (DB,),
    "alerts test": (),
    "control pairs": (DB,),
    "demo": ("--db", "{folder}/demo.db"),
    "doctor": ("--lab", "{lab}", DB),
    "explain": ("1", DB),
    "export reviews": ("-o", "{folder}/new.csv", DB),
    "failed abandon": ("{manual}", "--why", "known", DB),
    "failed assign": ("{manual}", "node1", DB),
    "failed edit": ("{manual}", "--quota", "7", DB),
    "failed list": (DB,),
    "failed report": ("-o", "{folder}/failed.md", DB),
    "failed retry": ("--all", DB),
    "failed show": ("{manual}", DB),
    "init": ("{folder}/new",),
    "insight new": (DB,),
    "insight rising": (DB,),
    "insight themes": (DB,),
    "judge": (DB,),
    "lab": ("--port", "0"),
    "migrate": (DB,),
    "nodes drain": ("node1", DB),
    "nodes list": (DB,),
    "nodes resume": ("node1", DB),
    "product add": ("特仑苏", DB),
    "product edit": (PRODUCTS[0], "--priority", "3", DB),
    "product import": ("{folder}/names.csv", DB),
    "product list": (DB,),
    "product remove": (PRODUCTS[0], DB),
    "report": ("-o", "{folder}/report.html", DB),
    "review classify": ("{folder}/reviews.jsonl",),
    "review correct": ("1", "--voice", "praise", DB),
    "review import": ("{folder}/reviews.jsonl", DB),
    "run": ("特仑苏", "--until-done", "--lab", "{lab}", "--db", "{folder}/run.db"),
    "schedule add": ("report", "--every", "1d", "--to", "file:{folder}", DB),
    "schedule list": (DB,),
    "schedule set": (PRODUCTS[0], "--every", "7d", DB),
    "sites check": ("--lab", "{lab}"),
    "sites list": (DB,),
    "sites try": (SITES[0], "{folder}/page.html"),
    "split": ("--explain", "光明高钙牛奶"),
    "status": (DB,),
    "up": ("特仑苏", "--until-done", "--nodes", "1", "--lab", "{lab}", "--data", "{folder}/up"),
    "verify": (DB,),
    "web": ("--host", "0.0.0.0", "--port", "0", DB),
}

WRONG = {
    "control pairs": ("--site", "nowhere.example", DB),
    "demo": ("--seed", "one"),
    "doctor": ("--lab", "nowhere"),
    "explain": ("999999", DB),
    "export reviews": ("-o", "{folder}/reviews.docx", DB),
    "failed abandon": (DB,),
    "failed assign": ("{manual}", "nobody", DB),
    "failed edit": ("{manual}", DB),
    "failed retry": ("999999", DB),
    "failed show": ("999999", DB),
    "init": ("{folder}/names.csv",),
    "insight adopt": ("黑色颗粒", "--theme", "nonesuch"),
    "insight archive": ("没有这个", "taste", DB),
    "insight new": ("没有这个", DB),
    "insight rising": ("--db", "{folder}/none.db"),
    "insight themes": ("没有这个", DB),
    "lab": ("--port", "{busy}"),
    "nodes add": ("{folder}", "--address", "192.0.2.7", DB),
    "nodes drain": ("nobody", DB),
    "nodes remove": ("nobody", DB),
    "nodes resume": ("nobody", DB),
    "product add": ("🥛", DB),
    "product edit": (PRODUCTS[0], "--pages", "high", DB),
    "product import": ("{folder}/none.csv", DB),
    "product list": ("--contains", "", "--db", "{folder}/none.db"),
    "product remove": ("没有这个", DB),
    "report": ("没有这个", "-o", "{folder}/report.html", DB),
    "review classify": ("{folder}/names.csv",),
    "review correct": ("999999", "--voice", "praise", DB),
    "review import": ("{folder}/none.csv", DB),
    "run": ("--until-done", "--lab", "{lab}", "--db", "{folder}/new.db"),
    "schedule add": ("report", "--every", "soon", "--to", "nowhere", DB),
    "schedule pause": ("99", DB),
    "schedule remove": ("99", DB),
    "schedule resume": ("99", DB),
    "schedule run": ("99", DB),
    "schedule set": ("没有这个", "--every", "7d", DB),
    "sites check": ("--sites", "{folder}/page.html"),
    "sites sign-in": ("nowhere.example",),
    "sites try": ("nowhere.example", "{folder}/page.html"),
    "split": ("123",),
    "status": ("--db", "nonesuch://x"),
    "up": ("--db", "sqlite:///new.db"),
    "verify": ("--db", "{folder}/none.db"),
    "web": ("--port", "{busy}", DB),
}

_DATA = (
    r"`[^`]*`|https?://\S+|sqlite:\S+|/\S+|--[\w-]+|\b[A-Z][A-Z_]{2,}\b|\bnode\d\b|'[^']*'"
    r"|\b[\w.-]+\.(?:com|cn|org|net|example|py|md|csv|docx|html|db|jsonl|txt)\b|\bcsv\b|\bcd\b|\bcolumns-\w+"
    r"|\b(?:cli|reviewloop)(?: [a-z-]+)*|\bnobody\b|\b(?:KB|MB|ms|min|s|h|d)\b"
)
"""Names, addresses, commands, options, settings and units."""

_OWN_DATA = {
    "run": r"\b(?:export|xlsx|html)\b",  # files of the commands that come next
    "sites check": r"\b(?:baidu|weibo|yunyun)\b",  # engines
    "up": r"\b(?:export|xlsx|html)\b",
    "web": r"\S{40,}",  # a token and its hash
    "alerts list": r"\b(?:completion|idle|manual|refusing|rising|silent)\b",  # rules as the setting names them
    "insight themes": r"[A-Z]?[a-z]+",  # names of themes, of a file of their own
    "schedule list": r"\b[a-z]+(?:_[a-z]+)*\b",  # names of sweeps
    "sites list": r"\b(?:baidu|weibo|yunyun)\b",  # engines
    "sites try": r"\b[a-z_]+\b",  # fields of rules and the markup of a page
    "schedule add": r"\b(?:export|failed|recrawl|report)\b",  # kinds as they are typed
}
"""Further data of a command, by its name."""


@pytest.fixture
def places(lab, tmp_path, monkeypatch) -> Iterator[dict[str, object]]:
    """What the arguments of a run name: its folder, the lab, a port that is in use. Servers end at once."""
    monkeypatch.setattr("app.cli.crawl.lab.Event", lambda: Mock(Event))
    monkeypatch.setattr("app.cli.crawl.lab.signal.signal", lambda *_: None)
    monkeypatch.setattr("app.web.server.make_server", lambda *_, **_named: Mock())
    with socket.create_server(("127.0.0.1", 0)) as busy:
        yield {"folder": tmp_path, "lab": f"{lab.host}:{lab.port}", "busy": busy.getsockname()[1]}


def _list_printed(reviewloop, crawled, places, name: str, given: tuple[str, ...]) -> set[str]:
    tmp_path = places["folder"]
    for file, text in MADE.items():
        (tmp_path / file).write_text(text, "utf-8")
    values = {**places, "db": "", "manual": crawled.printed["waits_for_a_person"][0]["subtask_id"]}
    arguments = [one.format(**values) for one in given if one != DB]
    if DB in given:
        arguments += ["--db", crawled.url]
    with all_in_brackets():
        result = reviewloop(*name.split(), *arguments, COLUMNS="300")
    reviewloop(*name.split(), "--help")  # the help of loaded commands is English again
    printed = re.sub("(?m)^WARNING .*", "", f"{result.stdout}\n{result.stderr}")  # the log is English
    words = list_words_outside(printed, f"{_DATA}|{_OWN_DATA.get(name, _DATA)}")
    return {*words, *list_marks_outside(printed)}


def test_every_command_is_tried() -> None:
    assert {
        name for name in LEAVES if not name.startswith("bench ")
    } - RIGHT.keys() - WRONG.keys() == ELSEWHERE


@pytest.mark.slow
@pytest.mark.parametrize("name", RIGHT)
def test_every_word_for_a_right_input_is_from_a_catalog(name, reviewloop, crawled, places) -> None:
    assert _list_printed(reviewloop, crawled, places, name, RIGHT[name]) == set()


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_every_word_for_a_wrong_input_is_from_a_catalog(name, reviewloop, crawled, places) -> None:
    assert _list_printed(reviewloop, crawled, places, name, WRONG[name]) == set()


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_every_word_for_an_unknown_option_is_from_a_catalog(name, reviewloop) -> None:
    with all_in_brackets():
        result = reviewloop(*name.split(), "--nonesuch")
    reviewloop(*name.split(), "--help")
    assert result.exit_code == 2
    arguments = r"\[OPTIONS\]|NODES\.json|\{[^}]*\}"
    assert list_words_outside(re.sub(arguments, " ", result.stderr), _DATA) == set()
