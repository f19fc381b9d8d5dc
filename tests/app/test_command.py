"""A command returns a view, which is printed as JSON or as text (app/cli/command.py, app/cli/render.py)."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import click
import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from app.cli.command import App, command
from app.cli.options import sites_option
from app.cli.output import Output
from app.cli.render import Fact, Part, print_parts, table, text


@dataclass(frozen=True)
class Page:
    name: str
    load_s: float
    kinds: frozenset[str]


@dataclass(frozen=True)
class PagesView:
    pages: list[Page]


@text.register
def _(view: PagesView) -> Iterator[Part]:
    yield Fact("Pages", str(len(view.pages)))
    yield table(view.pages, "name load_s kinds")


@click.group()
def pages() -> None:
    pass


@command(pages, "list", db=False)
@click.option("--failed", is_flag=True)
@sites_option
def list_(app: App, failed: bool) -> PagesView:
    app.exit_status = int(failed)
    return PagesView([Page(app.options["sites"] or "none", 90.0, frozenset({"b", "a"}))])


@command(pages, "remove", db=False)
def remove(_app: App) -> object:
    return object()


@pytest.mark.parametrize(("words", "status"), [((), 0), (("--failed",), 1)])
def test_a_view_is_printed_and_the_status_follows(words, status):
    result = CliRunner().invoke(pages, ["list", "--sites", "today", *words])
    assert result.exit_code == status
    assert result.stdout.split() == [
        "Pages",
        "1",
        "name",
        "load",
        "kinds",
        "─" * 22,
        "today",
        "90",
        "s",
        "a,",
        "b",
    ]


def test_json_has_the_fields_of_the_view():
    result = CliRunner().invoke(pages, ["list", "--json", "--failed"])
    assert result.exit_code == 1
    assert json.loads(result.stdout) == {"pages": [{"name": "none", "load_s": 90.0, "kinds": ["a", "b"]}]}


def test_a_view_needs_a_text():
    result = CliRunner().invoke(pages, ["remove"])
    assert isinstance(result.exception, TypeError)
    assert "object has no text" in str(result.exception)


def test_the_shared_options_stand_last():
    assert [one.name for one in list_.params] == ["failed", "sites", "as_json"]
    assert [one.name for one in command(None, "look")(lambda app: app).params] == ["db", "as_json"]


@pytest.mark.parametrize(
    "long",
    [
        "postgresql://u:***@127.0.0.1:1/x 没有 PostgreSQL 应答：请启动它，或改正主机和端口（REVIEWLOOP_DATABASE_URL）",
        "把 REVIEWLOOP_CONTACT 设为你的邮箱或网页（docs/legal.md），网站才能联系到你",
        "设置 REVIEWLOOP_LOGIN_WEIBO__DESKTOP_COOKIES_OF_A_VERY_LONG_NAME（docs/sign-in.md）",
        "它的搜索和帖子都是JSON，只有它自己的应用能签名，所以不能采集，也不必再试，除非规则改变",
        "a text of many short words that has to be broken between two of them, as every terminal does",
        "first line\nsecond line, which is a bit longer than the terminal is wide",
    ],
)
@pytest.mark.parametrize("width", [30, 40, 60])
def test_a_long_fact_is_broken_within_the_terminal_and_loses_nothing(long, width):
    out = Output(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    print_parts(out, [Fact("注意", long, style="", width=8)])
    lines = [line.rstrip() for line in out.file.getvalue().splitlines()]
    assert max(map(cell_len, lines)) <= width
    assert all(line.startswith("        ") for line in lines[1:])
    assert re.sub(r"\s", "", "".join(lines)) == re.sub(r"\s", "", f"注意{long}")
