"""Limits on the structure of the product. Each may only fall.

Lower a limit when a change gets below it. The goals: no circle, no folder over 15 modules, no class name twice,
22 modules outside the store that import a driver.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LAYERS = ("app", "tasks", "splitter")
DRIVERS = {
    "sqlalchemy",
    "psycopg2",
    "sqlite3",
    "redis",
    "pycurl",
    "aiohttp",
    "requests",
    "celery",
    "playwright",
}
FOLDER_LIMIT = 15
LIMITS = {
    "circles of packages": 0,
    "circles of modules": 0,
    "wide folders": 7,
    "doubled class names": 21,
    "modules outside the store that import a driver": 25,
    "loose modules in app": 2,
}


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax trees of the product's modules by dotted name."""
    paths = [path for layer in LAYERS for path in sorted((ROOT / layer).rglob("*.py"))]
    return {dotted(path): ast.parse(path.read_text("utf-8")) for path in paths}


@cache
def nodes(name: str) -> list[ast.AST]:
    return list(ast.walk(modules()[name]))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def path_of(name: str) -> Path:
    path = ROOT / name.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def code_lines(text: str, nodes: Iterable[ast.AST]) -> int:
    """Return the number of lines that hold code: no blank lines, comments or docstrings."""
    docs = set()
    for node in nodes:
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and n not in docs for n, line in lines
    )


@cache
def imports(name: str) -> set[str]:
    """Return the modules that a module imports, those for types and inside functions included."""
    found = set()
    for node in nodes(name):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update(one if one in modules() else node.module for one in whole)
    return found


def circles(edges: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of two or more nodes that reach each other."""
    users = defaultdict(set)
    for one, others in edges.items():
        for other in others:
            users[other].add(one)
    left = set(edges)
    while ends := {one for one in left if not edges[one] & left or not users[one] & left}:
        left -= ends  # no circle goes through them
    found = []
    while left:
        start = next(iter(left))
        circle = _reached(start, edges, left) & _reached(start, users, left)
        found.append(circle)
        left -= circle
    return [one for one in found if len(one) > 1]


def _reached(start: str, edges: dict[str, set[str]], within: set[str]) -> set[str]:
    seen, waiting = {start}, [start]
    while waiting:
        new = edges.get(waiting.pop(), set()) & within - seen
        seen |= new
        waiting += new
    return seen


def package_of(name: str) -> str:
    """Return the folder of a module, at most three levels below a layer; a loose module stands for itself."""
    parts = name.split(".") if path_of(name).name == "__init__.py" else name.split(".")[:-1]
    return ".".join(parts[:4]) if len(parts) > 1 else name


def edges_between(group: dict[str, str]) -> dict[str, set[str]]:
    """Return which groups import which, given the group of each module."""
    edges = defaultdict(set)
    for name in modules():
        edges[group[name]].update(group[other] for other in imports(name) if other in modules())
    return {one: others - {one} for one, others in edges.items()}


def measured() -> dict[str, int]:
    names = modules().keys()
    own = [name for name in names if path_of(name).name != "__init__.py"]
    classes = Counter(node.name for name in names for node in nodes(name) if isinstance(node, ast.ClassDef))
    drive = [name for name in names if DRIVERS & {one.split(".")[0] for one in imports(name)}]
    folders = Counter(name.rpartition(".")[0] for name in own)
    return {
        "code lines": sum(code_lines(path_of(name).read_text("utf-8"), nodes(name)) for name in names),
        "modules": len(own),
        "circles of packages": len(circles(edges_between({name: package_of(name) for name in names}))),
        "circles of modules": len(circles(edges_between({name: name for name in names}))),
        "wide folders": sum(n > FOLDER_LIMIT for n in folders.values()),
        "doubled class names": sum(n > 1 for n in classes.values()),
        "modules outside the store that import a driver": sum(
            not name.startswith("tasks.store") for name in drive
        ),
        "loose modules in app": sum(
            name.count(".") == 1 and name.startswith("app.") and name != "app.__main__" for name in own
        ),
    }


@pytest.fixture(scope="module")
def figures():
    return measured()


@pytest.mark.parametrize("figure", LIMITS)
def test_no_limit_is_exceeded(figures, figure):
    assert figures[figure] <= LIMITS[figure], figure


def test_a_circle_is_seen():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert circles({"a": {"b"}, "b": set()}) == []


def test_code_is_counted_without_docstrings_and_comments():
    text = '"""Doc.\n\nMore.\n"""\n\nx = [\n    1,\n]  # one\n# two\n'
    assert code_lines(text, ast.walk(ast.parse(text))) == 3
