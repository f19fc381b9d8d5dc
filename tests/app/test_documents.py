"""What the documents promise is there: commands, options, files, links, settings, keys, benchmarks."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import click
import pytest
import yaml
from pydantic import BaseModel
from tiny_world import ROOT

from app.cli.main import cli
from app.run.settings import misspelt
from research.tools.reference import TEXTS, commands
from splitter.catalog.model import Catalog

EVERY = sorted(path.relative_to(ROOT).as_posix() for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))
NOW = [name for name in EVERY if name != "CHANGELOG.md"]  # which tells what was
COMMANDS = {path[1:]: command for path, command in commands(cli, "reviewloop")}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text_of(document: str) -> str:
    return (ROOT / document).read_text("utf-8")


@pytest.mark.parametrize("document", ["README.md", "README.zh.md"])
def test_a_readme_is_short_and_opens_with_the_two_commands(document):
    lines = [line for line in text_of(document).splitlines() if line.strip()]
    assert [line.split("#")[0].strip() for line in lines[1:3]] == ["make demo", "make test"]
    assert len(text_of(document).splitlines()) <= 100


@pytest.mark.slow
@pytest.mark.parametrize("document", TEXTS)
def test_the_references_are_what_the_code_says(document):
    assert text_of(document) == TEXTS[document](), "run `make reference`"


def test_the_start_page_names_every_document():
    start = text_of("docs/README.md")
    missing = [path.name for path in ROOT.glob("docs/*.md") if f"]({path.name})" not in start]
    assert missing == ["README.md"]


@pytest.mark.parametrize("document", EVERY)
def test_every_link_leads_somewhere(document):
    base = (ROOT / document).parent
    links = re.findall(r"\]\(([^)\s]+)\)", re.sub(FENCE, "", text_of(document)))
    wrong = []
    for link in links:
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        to = base / path if path else ROOT / document
        if not to.exists() or (anchor and anchor not in anchors(to)):
            wrong.append(link)
    assert wrong == []


def anchors(document: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", document.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head).strip().lower().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("document", NOW)
def test_every_file_a_document_names_is_there(document):
    text = text_of(document)
    named = re.findall(r"`((?:app|tasks|splitter|tests|research|docs|migrations)/[\w./-]*)`", text)
    named += re.findall(r"python -m (research(?:\.\w+)+)", text)
    missing = [name for name in named if not (ROOT / name).exists() and not module_of(name).exists()]
    assert missing == []


def test_every_test_that_holds_a_guarantee_is_there():
    named = re.findall(r"`((?:research/)?tests/[\w/]+\.py)((?:::\w+)*)`", text_of("docs/tests.md"))
    missing = [f"{file}{tests}" for file, tests in named if not has_test(ROOT / file, tests.split("::")[1:])]
    assert len(named) > 50
    assert missing == []


def has_test(file: Path, names: list[str]) -> bool:
    node: ast.Module | ast.stmt | None = ast.parse(file.read_text("utf-8")) if file.exists() else None
    for name in names:
        node = next((one for one in getattr(node, "body", ()) if getattr(one, "name", None) == name), None)
    return node is not None


def module_of(name: str) -> Path:
    return ROOT / f"{name.replace('.', '/')}.py"


@pytest.mark.parametrize("document", sorted({*NOW} - {*TEXTS}))
def test_every_command_and_option_a_document_names_is_there(document):
    text = text_of(document)
    wrong = [line for line in calls(text) if not runs(line)]
    targets = re.findall(r"^([a-z-]+):", text_of("Makefile"), re.MULTILINE)
    wrong += [
        name for name in re.findall(r"(?:^ {4}|^|`)make ([a-z-]+)", text, re.MULTILINE) if name not in targets
    ]
    assert wrong == []


def calls(text: str) -> Iterator[str]:
    """What stands behind `reviewloop` in code: blocks and spans."""
    blocks = [block for _, block in FENCE.findall(text)]
    blocks += re.findall(r"^ {4}.*$", text, re.MULTILINE)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    for line in [*lines, *re.findall(r"(?<!`)`([^`\n]+)`(?!`)", FENCE.sub("", text))]:
        if found := re.match(r"\s*(?:\$ )?(?:\S*/)?reviewloop ((?!\w+:).+)", line):
            yield re.split(r"\s+#|\s{3,}|[;&|>)] ?|, ", found[1])[0]


def runs(line: str) -> bool:
    """Whether the words of a call are a command with its options."""
    words = [word for word in shlex.split(line.replace("'", "").replace('"', "")) if word != "..."]
    if words[:1] == ["--lang"]:
        words = words[2:]
    if words[:2] == ["bench", "NAME"]:
        words[1] = "splitter"
    command: click.Command = cli
    at = 0
    while isinstance(command, click.Group) and at < len(words) and not words[at].startswith("-"):
        below = [command.get_command(click.Context(command), name) for name in words[at].split("/")]
        if None in below:
            return False
        command, at = below[0], at + 1  # type: ignore[assignment]
    known = {
        option
        for one in (command, cli)
        for param in one.params
        for option in (*param.opts, *param.secondary_opts)
    }
    asked = {word.split("=")[0] for word in words[at:] if re.match(r"--?[a-z]", word)}
    return asked <= known | {"-h", "--help"}


@pytest.mark.parametrize("document", NOW)
def test_every_setting_a_document_names_is_there(document):
    named = re.findall(r"REVIEWLOOP_[A-Z_]+", text_of(document))
    assert misspelt(dict.fromkeys(named, "1")) == {}


@pytest.mark.parametrize("document", NOW)
def test_every_key_of_a_catalog_a_document_names_is_there(document):
    blocks = [
        yaml.safe_load(block) for language, block in FENCE.findall(text_of(document)) if language == "yaml"
    ]
    catalogs = [one for one in blocks if isinstance(one, dict) and set(one) & {"rules", "engines", "sites"}]
    assert [key for one in catalogs for key in unknown_keys(Catalog, one)] == []


def unknown_keys(shape: Any, value: Any) -> Iterator[str]:
    models = [
        part for part in (shape, *get_args(shape)) if isinstance(part, type) and issubclass(part, BaseModel)
    ]
    if not models or not isinstance(value, dict):
        return
    if models[0] is not shape and get_args(shape)[0] is str:
        for entry in value.values():
            yield from unknown_keys(models[0], entry)
        return
    for key, below in value.items():
        field = models[0].model_fields.get(key)
        if field is None:
            yield key
        else:
            yield from unknown_keys(field.annotation, below)
