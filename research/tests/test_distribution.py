"""What the distribution holds, and that nothing of the product needs it."""

from __future__ import annotations

import ast
import tomllib
from importlib import import_module
from pathlib import Path

import click

RESEARCH = Path(__file__).parents[1]
ROOT = RESEARCH.parent
PROJECT = tomllib.loads((RESEARCH / "pyproject.toml").read_text("utf-8"))
MAY_IMPORT = {
    "tests/app/test_command_line.py",
    "tests/app/test_documents.py",
    "tests/reading/test_samples.py",
    "tests/test_catalogs.py",
}
"""Tests of the product that may import research: they compare documents and catalogs with commands, or score saved pages."""


def test_every_folder_with_modules_is_a_package_of_the_distribution() -> None:
    folders = {path.parent for path in RESEARCH.rglob("*.py") if "tests" not in path.parts}
    packages = {".".join(("research", *folder.relative_to(RESEARCH).parts)) for folder in folders}
    assert packages == set(PROJECT["tool"]["setuptools"]["packages"])


def test_every_entry_point_is_a_command() -> None:
    for name, place in PROJECT["project"]["entry-points"]["reviewloop.commands"].items():
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        assert command.name == name


def test_a_folder_has_at_most_fifteen_modules() -> None:
    modules = [
        path for path in RESEARCH.rglob("*.py") if path.stem != "__init__" and "tests" not in path.parts
    ]
    folders = [path.parent.name for path in modules if path.parent.name != "simulator"]
    assert {folder: n for folder in folders if (n := folders.count(folder)) > 15} == {}


def test_nothing_of_the_product_imports_research() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for room in ("app", "tasks", "splitter", "migrations", "tests")
        for path in (ROOT / room).rglob("*.py")
        if "research" in path.read_text("utf-8") and _imports_research(path)
    }
    assert users <= MAY_IMPORT


def _imports_research(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if any(name.partition(".")[0] == "research" for name in names):
            return True
    return False


def test_the_lock_names_no_registry_and_no_local_path() -> None:
    lines = (RESEARCH / "requirements.lock").read_text("utf-8").splitlines()
    assert [line for line in lines if "://" in line or "file:" in line or line.startswith(("-", "/"))] == []
    names = {line.partition("==")[0] for line in lines if "==" in line}
    assert {"scrapy", "crawlee", "gevent", "matplotlib"} <= names
    assert "reviewloop" not in names
