"""Help of commands in both languages (app.cli.help_texts)."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from app.cli.help_texts import HelpFormatter, change_texts, measure_width, translate_help, wrap_paragraphs
from app.cli.main import cli
from app.views.words import switch_language

HELP = """Add products; a runner
    crawls them.

    \b
    Example, products.csv:
      name,keywords
      reviewloop demo    the whole loop
    """


def test_only_texts_change_and_code_stays() -> None:
    assert change_texts(HELP, str.upper) == (
        "ADD PRODUCTS; A RUNNER CRAWLS THEM.\n\n"
        "\b\nEXAMPLE, PRODUCTS.CSV:\n  name,keywords\n  reviewloop demo    THE WHOLE LOOP"
    )


@pytest.mark.parametrize("width", [20, 21, 40, 78])
def test_lines_fit_if_a_character_takes_two_columns(width) -> None:
    text = "从 FILE（- 表示标准输入）添加产品：CSV、xlsx，或每行一个名称，“待启动”的（.csv）不算。"
    lines = wrap_paragraphs(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(measure_width(line) <= width for line in lines)
    assert not any(line[0] in "，。、：）”" or line[-1] in "（“" for line in lines)


def test_a_block_keeps_its_lines() -> None:
    assert wrap_paragraphs("a b c\n\n\b\n  d  e\n  f", 3) == ["a b", "c", "", "  d  e", "  f"]


def test_terms_stand_beside_their_texts() -> None:
    formatter = HelpFormatter(width=50)
    formatter.write_dl([("a", "eins"), ("b" * 40, "zwei"), ("c", "")])
    assert formatter.getvalue() == f"a{' ' * 31}eins\n{'b' * 40}\n{' ' * 32}zwei\nc\n"


def test_help_is_in_the_language_asked_for_and_in_english_again() -> None:
    command = click.Command("add", help="Show the version and exit.")
    with switch_language("zh"):
        assert translate_help(command).help == "显示版本并退出。"
        assert command.get_short_help_str() == "显示版本并退出"
    assert translate_help(command).help == "Show the version and exit."


def test_the_program_speaks_the_language_asked_for() -> None:
    said = {code: CliRunner().invoke(cli, ["--lang", code, "--help"]).output for code in ("zh", "en")}
    assert "显示本说明并退出。" in said["zh"]
    assert "添加、导入、修改、移除和列出" in said["zh"]
    assert "Show" not in said["zh"]
    assert "Show this message and exit." in said["en"]
    assert "显示" not in said["en"]
