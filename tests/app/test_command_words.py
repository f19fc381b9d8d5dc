"""Every word of a command's help is from a catalog or is code."""

from __future__ import annotations

import re

import pytest
from pseudo_catalog import all_in_brackets, list_words_outside, read_page
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


@pytest.mark.parametrize("command", [("report",), ("failed", "report")])
def test_every_word_of_a_report_is_from_a_catalog(command, crawled, reviewloop, tmp_path) -> None:
    file = tmp_path / "report.html"
    with all_in_brackets():
        assert reviewloop(*command, "-o", file, "--db", crawled.url).exit_code == 0
    reviewloop(*command, "--help")
    data = r"https?://\S+|[\w.-]+\.(?:com|cn|org|net)\b|\bnode\d\b|Asia/Shanghai|reviewloop|Re(?=[:：])"
    data = "|".join([data, *map(re.escape, WORDING["nicknames"])])
    assert list_words_outside(read_page(file.read_text("utf-8")), data) == set()


def test_a_report_is_in_the_language_asked_for(crawled, reviewloop, tmp_path) -> None:
    for code, tag, heading in (("zh", "zh-CN", "买家投诉什么"), ("en", "en", "What buyers complain about")):
        file = tmp_path / f"{code}.html"
        assert reviewloop("--lang", code, "report", "-o", file, "--db", crawled.url).exit_code == 0
        assert f'<html lang="{tag}">' in file.read_text("utf-8")
        assert f"<h1>{heading}</h1>" in file.read_text("utf-8")
