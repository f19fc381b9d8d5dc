"""The floors of the house: imports only ever point down, and each folder keeps away from what it must not know."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FLOORS = ("app", "tasks", "splitter")  # from the top down
ROOMS: tuple[
    tuple[str, ...], ...
] = (  # of tasks/, from the top down; rooms on one line don't know each other
    ("jobs",),
    ("worker",),
    ("signin",),
    ("store", "fetching", "reading"),
    ("scheduling",),
    ("domain",),
)
STORE: tuple[tuple[str, ...], ...] = (("queries", "verify"), ("content",), ("queue",), ("sql",))
"""The packages of tasks/store/, from the top down; packages on one line don't import each other."""

PACKAGES_OF_APP = (  # from the top down; a package imports those on its own line and below
    ("cli", "web"),
    ("sites", "lab"),
    ("run.cluster",),
    ("run",),
    ("reports",),
    ("actions", "importing", "insight", "sending"),
    ("files", "views"),
)
GROUND_KNOWS_NOT = {
    *("sqlalchemy", "alembic", "sqlite3", "psycopg2", "redis", "aiohttp", "requests", "socket", "urllib3"),
    *("http", "asyncio", "celery", "kombu", "apscheduler", "time"),
}
DECISIONS_KNOW_NOT = {
    *("sqlalchemy", "sqlite3", "psycopg2", "redis", "aiohttp", "requests", "socket", "celery", "apscheduler"),
    *("time", "asyncio", "threading", "os", "pathlib", "logging"),
}


def _modules(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found, f"there is nothing in {folders}"
    return found


@cache
def _imports(path: Path) -> tuple[str, ...]:
    """Dotted names of what a module imports, wherever in it: `a.b` for `from a import b`."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _within(name: str, modules: set[str]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def _offenders(paths: list[Path], banned: set[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in paths
        for name in _imports(path)
        if _within(name, banned)
    ]


@pytest.mark.parametrize("floor", FLOORS)
def test_imports_only_point_down(floor: str) -> None:
    above = {*FLOORS[: FLOORS.index(floor)], "tests", "research"}
    assert _offenders(_modules(floor), above) == []


def test_the_ground_floor_knows_no_database_network_celery_or_clock() -> None:
    assert _offenders(_modules("splitter"), GROUND_KNOWS_NOT) == []
    for path in _modules("splitter"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not _clock(node), f"{path.name}:{node.lineno} reads the clock: take times as arguments"


def _clock(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("now", "utcnow", "today")


def _above(room: str, order: tuple[tuple[str, ...], ...] = ROOMS, parent: str = "tasks") -> set[str]:
    """Return the packages of `parent` that one of them must not import: those on its own line and above."""
    line = next(place for place, rooms in enumerate(order) if room in rooms)
    return {f"{parent}.{name}" for rooms in order[: line + 1] for name in rooms if name != room}


@pytest.mark.parametrize("room", [name for rooms in ROOMS for name in rooms])
def test_rooms_import_only_rooms_below(room: str) -> None:
    assert _offenders(_modules(f"tasks/{room}"), _above(room)) == []


@pytest.mark.parametrize("line", range(1, len(PACKAGES_OF_APP)))
def test_packages_of_app_import_only_their_line_and_below(line: int) -> None:
    above = {f"app.{name}" for names in PACKAGES_OF_APP[:line] for name in names}
    for name in PACKAGES_OF_APP[line]:
        paths = [path for path in _modules(f"app/{name.replace('.', '/')}") if not _is_in(path, above)]
        assert _offenders(paths, above) == []


def _is_in(path: Path, packages: set[str]) -> bool:
    return _within(".".join(path.relative_to(ROOT).with_suffix("").parts), packages)


def test_every_package_of_app_has_its_line() -> None:
    there = {path.parent.relative_to(ROOT / "app").as_posix() for path in (ROOT / "app").rglob("__init__.py")}
    named = {name.replace(".", "/") for names in PACKAGES_OF_APP for name in names}
    assert {name for name in there if not name.startswith(("cli/", "web/"))} - {"."} == named


def test_every_room_has_its_place() -> None:
    there = {path.name for path in (ROOT / "tasks").iterdir() if (path / "__init__.py").exists()}
    assert there == {name for rooms in ROOMS for name in rooms}


@pytest.mark.parametrize("package", [name for packages in STORE for name in packages])
def test_packages_of_the_store_import_only_those_below(package: str) -> None:
    assert _offenders(_modules(f"tasks/store/{package}"), _above(package, STORE, "tasks.store")) == []


def test_the_store_has_no_other_packages_and_no_loose_modules() -> None:
    store = ROOT / "tasks" / "store"
    assert {path.parent.name for path in store.glob("*/__init__.py")} == {
        name for line in STORE for name in line
    }
    assert [path.name for path in store.glob("*.py")] == ["__init__.py"]


@pytest.mark.parametrize("room", [name for rooms in ROOMS[1:] for name in rooms])
def test_lint_bans_the_rooms_above(room: str) -> None:
    rules = tomllib.loads((ROOT / "tasks" / room / "ruff.toml").read_text("utf-8"))
    banned = rules["lint"]["flake8-tidy-imports"]["banned-api"].keys()
    assert {name for name in banned if name.startswith("tasks.")} == _above(room)


def test_no_rooms_know_each_other_in_a_circle() -> None:
    def room(name: str) -> str:
        return ".".join(name.split(".")[:2])

    known: dict[str, set[str]] = {}
    for path in _modules(*FLOORS):
        own = room(".".join(path.relative_to(ROOT).with_suffix("").parts))
        known.setdefault(own, set()).update(
            room(name) for name in _imports(path) if name.split(".")[0] in FLOORS
        )
    order = TopologicalSorter({of: knows - {of} for of, knows in known.items()})
    order.prepare()  # raises CycleError, which names the rooms of a circle


def test_packages_hold_no_code_of_their_own() -> None:
    for path in _modules(*FLOORS):
        if path.name == "__init__.py":
            body = ast.parse(path.read_text("utf-8")).body
            docstring = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
            assert len(body) <= bool(docstring), f"{path.relative_to(ROOT)} holds code"


def test_decisions_are_pure() -> None:
    assert _offenders(_modules("tasks/scheduling"), DECISIONS_KNOW_NOT) == []
    for path in _modules("tasks/scheduling"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            assert not _clock(node), f"{path.name}:{node.lineno} reads the clock: take `now` as an argument"
            called = (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("open", "print")
            )
            assert not called, f"{path.name}:{node.lineno} does I/O"


def test_only_the_store_makes_statements() -> None:
    others = [path for path in _modules("app", "tasks") if not path.is_relative_to(ROOT / "tasks" / "store")]
    assert _offenders(others, {"sqlalchemy", "sqlite3", "psycopg2"}) == []


def test_only_the_settings_read_the_environment() -> None:
    readers = ("environ", "environb", "getenv")
    for path in _modules(*FLOORS):
        text = path.read_text("utf-8")
        if path == ROOT / "app" / "run" / "settings.py" or not any(reader in text for reader in readers):
            continue
        names = {name for name in _imports(path) if _within(name, {f"os.{reader}" for reader in readers})}
        reads = {
            ast.unparse(node)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Attribute) and node.attr in readers
        }
        assert names | reads == set(), f"{path.relative_to(ROOT)} reads the environment"


def test_a_forbidden_import_is_seen(tmp_path: Path) -> None:
    module = tmp_path / "guilty.py"
    module.write_text("import a.b\n\ndef f():\n    from sqlalchemy import select, exc\n", "utf-8")
    assert _imports(module) == ("a.b", "sqlalchemy.select", "sqlalchemy.exc")
    assert [_within(name, {"sqlalchemy"}) for name in _imports(module)] == [False, True, True]


def test_one_module_executes_sql():
    executing = re.compile(r"\.execute(many|script)?\(|exec_driver_sql")
    found = [path for path in _modules(*FLOORS) if executing.search(path.read_text("utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in found] == ["tasks/store/sql/transaction.py"]


def test_insight_knows_nothing_of_the_crawl() -> None:
    crawl = {f"tasks.{name}" for name in ("jobs", "worker", "signin", "fetching", "scheduling")}
    crawl |= {"tasks.store.queue", "tasks.store.content", "app.run", "app.sites", "app.lab"}
    reading = {path.stem for path in (ROOT / "tasks" / "reading").iterdir()}
    crawl |= {f"tasks.reading.{name}" for name in reading - {"copies"}}  # how near texts are: pure
    assert _offenders(_modules("app/insight"), crawl) == []
