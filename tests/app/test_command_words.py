"""Every word of a command's help is from a catalog or is code."""

from __future__ import annotations

import re

import pytest
from pseudo_catalog import all_in_brackets, list_marks_outside, list_words_outside, read_page
from test_command_line import commands

from app.cli.main import cli
from app.lab.pages import WORDING

ALL = {" ".join(path): command for path, command in commands(cli)}
_CODE = (
    r"(?m)^ +(?:-\S|\S+/|reviewloop |curl |watch |echo |REVIEWLOOP_|name,|光明|雀巢|\{).*$|\[[^\]]*\]|\{[^}]*\}"
    r"|\b(?:cli|reviewloop|[A-Z_.|]+)\b"
)
"""Lines of an example, options with their values, choices, and names of values."""


@pytest.mark.parametrize("name", ALL)
def test_every_word_of_help_is_from_a_catalog(name, reviewloop) -> None:
    with all_in_brackets():
        printed = reviewloop(*name.split(), "--help").stdout
    reviewloop(*name.split(), "--help")  # the help of loaded commands is English again
    text = printed.partition("⟦Commands⟧")[0].partition("⟦Benches⟧")[0]
    assert list_words_outside(text, rf"{_CODE}|\b(?:{name.replace(' ', '|')})\b") == set()


@pytest.mark.parametrize(
    ("environment", "heading"),
    [
        ({"LC_ALL": "", "LANG": "zh_CN.UTF-8"}, "用法"),
        ({"LC_ALL": "zh_CN.UTF-8", "LANG": "C"}, "用法"),
        ({"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "Usage"),
        ({"LC_ALL": "zh_CN.UTF-8", "REVIEWLOOP_LANG": "en"}, "Usage"),
    ],
)
def test_the_language_is_that_of_the_environment(environment, heading, reviewloop) -> None:
    assert reviewloop("status", "--help", **environment).stdout.startswith(heading)


@pytest.mark.parametrize(
    "arguments", [("--help",), ("-h",), (), ("-v", "--help"), ("--lang", "zh", "--help")]
)
def test_the_first_page_of_help_is_in_the_language_of_the_environment(arguments, reviewloop) -> None:
    result = reviewloop(*arguments, REVIEWLOOP_LANG="zh")
    assert "用法" in result.output
    assert "证明循环没有违反不变量" in result.output
    assert "Every day" not in result.output
    english = reviewloop("--help", REVIEWLOOP_LANG="en").output
    assert "Every day" in english
    assert re.findall(r"[\u4e00-\u9fff]+", english) == ["光明高钙牛奶"] * 2


@pytest.mark.parametrize(
    "command",
    [
        ("product", "import"),
        ("review", "import"),
        ("review", "classify"),
        ("split", "--file"),
        ("split", "--json", "--file"),
    ],
)
def test_a_file_that_is_not_there_is_named_in_the_language(command, reviewloop, tmp_path) -> None:
    for file, said in ((tmp_path / "none.csv", "没有这个文件"), (tmp_path, "是文件夹")):
        result = reviewloop("--lang", "zh", *command, file)
        assert result.exit_code == 2
        assert str(file) in result.stderr
        assert said in result.stderr


_FILES = {
    "text.db": b"some text, long enough to be looked at\n" * 100,
    "tab.yaml": b"version: 1\n\tname: a\n",
    "colon.yaml": "version：1\nname: a\n".encode(),
    "bracket.yaml": b"version: [1\nname: a\n",
    "indent.yaml": b"a:\n    b: 1\n  c: 2\n",
    "quote.yaml": b"name: 'open\nb: 1\n",
    "types.yaml": b"version: one\nname: [a]\nengines: 5\nrules: {}\nsites: []\nsyte: 1\n",
    "themes.yaml": "goods: {leak: {zh: 1, en: [a], terms: 漏, word: 1}}\ngods: {}\n".encode(),
    "old.xls": b"\xd0\xcf\x11\xe0 old",
    "cut.xlsx": b"PK\x03\x04 cut",
    "a.pdf": b"%PDF-1.7\n1 0 obj\n",
    "picture.csv": b"\x89PNG\r\n\x1a\n\0",
    "broken.jsonl": b'{"text": "a"\n',
    "list.json": b'[{"name": "a",}]',
    "types.jsonl": b'{"text": 5}\n',
}
_WRONG = (
    *(("status", "--db", file) for file in ("text.db", ".", "sqlite:///.", "none/r.db", "mysql://x/y")),
    *(
        ("product", "list", "--db", f"postgresql://u:geheim@{place}/x")
        for place in ("127.0.0.1:1", "x.invalid")
    ),
    *(
        ("sites", "list", "--sites", file)
        for file in _FILES
        if file.endswith("yaml") and file != "themes.yaml"
    ),
    ("sites", "list", "--sites", "none.yaml"),
    *(
        (*command, file)
        for command in (
            ("review", "import"),
            ("product", "import"),
            ("split", "--file"),
            ("review", "classify"),
        )
        for file in ("old.xls", "cut.xlsx", "a.pdf", "picture.csv", "none.csv", ".")
    ),
    ("review", "classify", "broken.jsonl"),
    ("review", "classify", "types.jsonl"),
    *(("balance", "--total", "5", file) for file in ("list.json", "types.jsonl", "none.json")),
    *(
        ("schedule", "add", "report", "--to", "file:x", "--cron", cron)
        for cron in ("x", "99 * * * *", "* * * * 9")
    ),
    ("schedule", "add", "report", "--every", "1d", "--to", "nowhere"),
    ("lab", "--profile", "tab.yaml"),
    ("lab", "--profile", "none.yaml"),
    ("product", "import", "--undo", "99"),
)
_CODE_OR_NAME = re.compile(r"`[^`]*`|--[\w-]+|https?://\S+|[a-z]+://\S+")
_SETTINGS = {
    "REDIS_URL": "http://x", "SLOTS": "x", "TIMEZONE": "Mars", "PROXY": "abc", "SMTP_URL": "x", "ALERTS": "foo",
    "ALERT_TO": "foo", "LOG_LEVEL": "loud", "KINDS": "x", "LAB": "1.2.3.4:5", "KEEP_LOG_DAYS": "x", "BATCH": "0",
    "TRUSTED_PROXIES": "zz", "WEB_ROOT_PATH": "x", "THEMES": "themes.yaml",
}  # fmt: skip


def _find_english(text: str) -> list[str]:
    """Return the places with three English words in a row, without code and addresses."""
    return re.findall(r"\b[a-z']{2,} [a-z']{2,} [a-z']{2,}\b", _CODE_OR_NAME.sub("", text))


@pytest.fixture
def wrong_files(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in _FILES.items():
        (tmp_path / name).write_bytes(content)


@pytest.mark.parametrize("arguments", _WRONG, ids=" ".join)
@pytest.mark.usefixtures("wrong_files")
def test_what_a_library_finds_wrong_is_said_in_chinese(arguments, reviewloop) -> None:
    result = reviewloop("--lang", "zh", *arguments)
    assert result.exit_code in (1, 2)
    assert re.search(r"[\u4e00-\u9fff]{3}", result.stderr)
    assert _find_english(result.output) == []
    assert "geheim" not in result.output


@pytest.mark.parametrize("name", _SETTINGS)
@pytest.mark.usefixtures("wrong_files")
def test_a_wrong_setting_is_said_in_chinese(name, reviewloop) -> None:
    result = reviewloop(
        "review", "classify", "-", REVIEWLOOP_LANG="zh", **{f"REVIEWLOOP_{name}": _SETTINGS[name]}
    )
    assert result.exit_code == 2
    assert re.search(r"[\u4e00-\u9fff]{2}", result.stderr)
    assert _find_english(result.output) == []


@pytest.mark.parametrize("command", [("report",), ("failed", "report")])
def test_every_word_of_a_report_is_from_a_catalog(command, crawled, reviewloop, tmp_path) -> None:
    file = tmp_path / "report.html"
    with all_in_brackets():
        assert reviewloop(*command, "-o", file, "--db", crawled.url).exit_code == 0
    reviewloop(*command, "--help")
    data = r"https?://\S+|[\w.-]+\.(?:com|cn|org|net)\b|\bnode\d\b|Asia/Shanghai|reviewloop|Re(?=[:：])"
    data = "|".join([data, *map(re.escape, WORDING["nicknames"])])
    page = read_page(file.read_text("utf-8"))
    assert (list_words_outside(page, data), list_marks_outside(page)) == (set(), [])


def test_a_report_is_in_the_language_asked_for(crawled, reviewloop, tmp_path) -> None:
    for code, tag, heading in (("zh", "zh-CN", "买家投诉什么"), ("en", "en", "What buyers complain about")):
        file = tmp_path / f"{code}.html"
        assert reviewloop("--lang", code, "report", "-o", file, "--db", crawled.url).exit_code == 0
        assert f'<html lang="{tag}">' in file.read_text("utf-8")
        assert f"<h1>{heading}</h1>" in file.read_text("utf-8")
