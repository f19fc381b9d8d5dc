"""What the documents promise is there: every command, every folder, every benchmark."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
import pytest
from tiny_world import ROOT

from app.cli.main import cli

README = (ROOT / "README.md").read_text("utf-8")


def commands(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, *path, name)
        else:
            yield (*path, name)


@pytest.mark.parametrize("path", list(commands(cli)), ids=" ".join)
def test_every_command_is_in_the_readme(path):
    rows = [row for row in README.splitlines() if row.startswith("|") and f"`{path[0]}" in row]
    assert any(all(re.search(rf"\b{word}\b", row) for word in path) for row in rows)


def test_the_readme_opens_with_the_two_commands():
    lines = [line for line in README.splitlines() if line.strip()]
    assert [line.split("#")[0].strip() for line in lines[1:3]] == ["make demo", "make test"]


@pytest.mark.parametrize("document", ["README.md", "ARCHITECTURE.md"])
def test_every_file_a_document_names_is_there(document):
    text = (ROOT / document).read_text("utf-8")
    named = re.findall(r"`((?:app|tasks|splitter|tests|bench|docs|migrations)/[\w./-]*)`", text)
    linked = re.findall(r"\]\(((?:docs/)?[\w.-]+\.md)\)", text)
    assert named + linked
    base = (ROOT / document).parent
    missing = [n for n in named if not (ROOT / n).exists()] + [n for n in linked if not (base / n).exists()]
    assert missing == []
