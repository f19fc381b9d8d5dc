"""Limits on what makes the product hard to read. Each may only fall; lines are only reported.

Lower a limit when a change gets below it. The goals: a setting named in 4 modules, 15 imports of a module, 12
conditional expressions, 4 tuple assignments and 2 assignment expressions per 1,000 code lines, at most 7 parameters,
60 lines a function, 500 lines a module, a complexity of 12, no circle, no folder over 15 modules, no class name twice,
22 modules outside the store that import a driver. The path of a decision has its limits in
`tests/store/test_store_turns.py` and `tests/worker/test_attempt.py`.

`.venv/bin/python tests/test_size.py` prints every figure and the code lines of each package.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
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
MODULE_LINES = 500
FUNCTION_LINES = 60
PARAMETERS = 7
COMPLEXITY = 12
DECLARATIONS = {"tasks.store.sql.tables"}
"""Modules that may be long, because they list one row after another."""

ASSEMBLY = ("app.cli.", "app.run.", "app.web.application")
"""Entry points, and modules that put the parts together: they import what they assemble."""

LIMITS = {
    "modules that name one setting": 19,
    "product modules that one module imports": 25,
    "conditional expressions per 1,000 code lines": 25.5,
    "tuple assignments per 1,000 code lines": 8.2,
    "assignment expressions per 1,000 code lines": 3.7,
    "functions with more than 7 parameters": 5,
    "functions over 60 lines": 7,
    "modules over 500 lines": 0,
    "functions with a complexity over 12": 1,
    "circles of packages": 0,
    "circles of modules": 0,
    "wide folders": 6,
    "doubled class names": 0,
    "modules outside the store that import a driver": 23,
    "loose modules in app": 2,
}
GROWTH = 1.05
PACKAGES = {
    "app": (51, "app.celery starts beat and workers itself, since the command celery imports a terminal"),
    "app/actions": (411, "Undoes imports by their number, and edits the themes file."),
    "app/cli": (4_893, "`judge --dates` reads stored dates again."),
    "app/files": (656, "Shows cells as a person sees them, and limits what a whole workbook may hold."),
    "app/importing": (
        794,
        "Reads the optional columns of both imports as people write them, and tells lists of names from other texts.",
    ),
    "app/insight": (480, "Judges which themes rise, and finds new phrases."),
    "app/lab": (1_540, ""),
    "app/reports": (669, "Takes samples that differ from each other, and links them."),
    "app/run": (2_823, "Gives every obstacle as a reason with parameters, and says that a cluster starts."),
    "app/sending": (442, "Writes alerts in the language of each receiver."),
    "app/sites": (930, ""),
    "app/views": (
        234,
        "Has the one table of what is said of the system, which status, run, pages and API each had.",
    ),
    "app/web": (2_323, "Makes sentences of reasons, and counts reviews that are not judged."),
    "splitter": (2_222, "Guesses categories from whole names, and keeps names whole."),
    "tasks": (0, ""),
    "tasks/domain": (
        1_028,
        "Judges every address that a person gives, describes each class of errors, and logs outages once.",
    ),
    "tasks/fetching": (
        2_266,
        "Gives errors as messages with values, so that people read them in their language.",
    ),
    "tasks/jobs": (1_596, "Reads the dates of stored records again, with its own outcome."),
    "tasks/reading": (
        4_859,
        "Reads written dates whole: numerals, two units, clocks, zones; decides which texts are copies.",
    ),
    "tasks/scheduling": (3_380, ""),
    "tasks/signin": (686, "errors are templates with values"),
    "tasks/store": (5_670, "Notes what each import added, and removes it; verify proves more."),
    "tasks/worker": (2_402, ""),
}
"""Code lines of each package at its last review, and the reason if it has grown by more than 5 % since."""


@cache
def modules_of(layer: str) -> dict[str, ast.Module]:
    paths = sorted((ROOT / layer).rglob("*.py"))
    return {dotted(path): ast.parse(path.read_text("utf-8")) for path in paths}


@cache
def modules() -> dict[str, ast.Module]:
    """Return the syntax trees of the product's modules by dotted name."""
    return {name: tree for layer in LAYERS for name, tree in modules_of(layer).items()}


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
def source(name: str) -> str:
    return path_of(name).read_text("utf-8")


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


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function of the product with the name of its module."""
    for name in modules():
        for node in nodes(name):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node


def parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the number of parameters, without `self` and `cls`."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return sum(one.arg not in ("self", "cls") for one in given)


def setting_names() -> set[str]:
    """Return the fields of settings classes whose names mean nothing else: those of two words or more."""
    return {
        field.target.id
        for name in modules()
        for node in nodes(name)
        if isinstance(node, ast.ClassDef) and node.name.endswith("Settings")
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and "_" in field.target.id
    }


def most_named_setting() -> int:
    """Return the number of modules that name the setting which most modules name."""
    named: Counter[str] = Counter()
    for name in modules():
        named.update(set(re.findall(r"\w+", source(name))))
    return max(named[setting] for setting in setting_names())


def import_count(name: str) -> int:
    return len({other for other in imports(name) if other in modules()} - {name})


def complex_functions() -> int:
    """Return the number of functions that ruff finds more complex than `COMPLEXITY`."""
    limit = f"lint.mccabe.max-complexity={COMPLEXITY}"
    folders = [str(ROOT / layer) for layer in LAYERS]
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "C901", "--config", limit]
    found = subprocess.run(
        [*ruff, "--output-format", "json", *folders], capture_output=True, text=True, check=False
    )
    return len(json.loads(found.stdout))


def is_tuple_assignment(node: ast.AST) -> bool:
    """Return True for `a, b = 1, 2`: two statements in one."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Tuple)
        and any(isinstance(target, ast.Tuple) for target in node.targets)
    )


def package_with_lines(name: str) -> str:
    """Return the package that a module's lines count for; a loose module counts for its layer."""
    parts = name.split(".")
    if parts[0] == "splitter" or len(parts) == 1 or not (ROOT / parts[0] / parts[1]).is_dir():
        return parts[0]
    return "/".join(parts[:2])


def package_lines() -> dict[str, int]:
    """Return the code lines of each package."""
    lines: Counter[str] = Counter()
    for name in modules():
        lines[package_with_lines(name)] += code_lines(source(name), nodes(name))
    return dict(lines)


def measured() -> dict[str, float]:
    names = modules().keys()
    own = [name for name in names if path_of(name).name != "__init__.py"]
    classes = Counter(node.name for name in names for node in nodes(name) if isinstance(node, ast.ClassDef))
    drive = [name for name in names if DRIVERS & {one.split(".")[0] for one in imports(name)}]
    folders = Counter(name.rpartition(".")[0] for name in own)
    thousand_lines = sum(package_lines().values()) / 1000
    every_node = [node for name in names for node in nodes(name)]
    undecorated = [function for _, function in functions() if not function.decorator_list]
    return {
        "modules that name one setting": most_named_setting(),
        "product modules that one module imports": max(
            import_count(name) for name in names if not name.startswith(ASSEMBLY)
        ),
        "conditional expressions per 1,000 code lines": sum(
            isinstance(node, ast.IfExp) for node in every_node
        )
        / thousand_lines,
        "tuple assignments per 1,000 code lines": sum(map(is_tuple_assignment, every_node)) / thousand_lines,
        "assignment expressions per 1,000 code lines": sum(
            isinstance(node, ast.NamedExpr) for node in every_node
        )
        / thousand_lines,
        "functions with more than 7 parameters": sum(
            parameter_count(function) > PARAMETERS for function in undecorated
        ),
        "functions over 60 lines": sum(
            (function.end_lineno or function.lineno) - function.lineno >= FUNCTION_LINES
            for _, function in functions()
        ),
        "modules over 500 lines": sum(
            source(name).count("\n") > MODULE_LINES for name in names if name not in DECLARATIONS
        ),
        "functions with a complexity over 12": complex_functions(),
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


@pytest.mark.parametrize("layer", LAYERS)
def test_every_package_has_its_lines_recorded(layer):
    packages = {package for package in PACKAGES if package.split("/")[0] == layer}
    assert set(map(package_with_lines, modules_of(layer))) == packages


@pytest.mark.cpu(6.0)  # the first test of a process reads every module
def test_a_package_that_grows_says_why():
    unexplained = {}
    for package, lines in package_lines().items():
        reviewed, reason = PACKAGES[package]
        if lines > reviewed * GROWTH and not reason:
            unexplained[package] = (reviewed, lines)
    assert unexplained == {}


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


def print_figures() -> None:
    for figure, value in measured().items():
        print(f"{value:8.4g}  {figure} (at most {LIMITS[figure]})")
    for package, lines in sorted(package_lines().items()):
        reviewed, reason = PACKAGES[package]
        print(f"{lines:8,}  {package} ({reviewed:,} at its last review) {reason}")


if __name__ == "__main__":
    print_figures()
