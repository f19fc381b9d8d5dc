"""Each command, page and call of the API that changes the store writes a row of the audit log; these tables name it."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import click
import pytest
from click.testing import CliRunner
from dashboard import Serve
from patience import PATIENCE_S
from pseudo_catalog import all_in_brackets, list_marks_outside, list_words_outside, read_page
from sample_store import OTHER, PRODUCT
from sqlalchemy import update

from app.cli.main import cli
from app.run.setting_fields import Settings
from app.web.api import acting, insight
from app.web.application import _PAGES
from splitter.errors import InputError
from tasks.domain.states import State
from tasks.reading.judge.theme_file import builtin_text
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.tables import subtasks

CLI = Path(__file__).parents[2] / "app" / "cli"

COMMANDS = (
    ("product add", "蒙牛早餐奶", ["add products"]),
    ("product import", "FOLDER/products.csv", ["add products"]),
    ("product edit", "蒙牛早餐奶 --priority 3", ["edit product"]),
    ("product edit", "--where category=food --priority 4", ["edit product", "edit product"]),
    ("product remove", "蒙牛早餐奶", ["remove product"]),
    ("product remove", f"{OTHER} --delete-reviews --yes", ["remove product"]),
    ("review import", "FOLDER/reviews.csv --site shop.example", ["import reviews", "add products"]),
    ("review correct", "1 --hide --yes", ["correct review"]),
    ("review correct", "1 --undo --yes", ["take back correction"]),
    ("product import", "--undo 2", ["undo import", "import undone"]),
    ("review import", "--undo 3", ["undo import", "import undone"]),
    ("insight archive", "蒙牛早餐奶 service", ["archive theme"]),
    ("insight archive", "蒙牛早餐奶 客服售后 --undo", ["restore theme"]),
    ("judge", "", ["judge reviews"]),
    ("judge", "--dates", ["read dates again"]),
    ("run", "伊利纯牛奶", ["add products"]),
    ("up", "三元牛奶 --data FOLDER", ["add products"]),
    ("demo", "--db DATABASE", ["add products"]),
    ("failed retry", "2", ["retry"]),
    ("failed abandon", "5", ["abandon"]),
    ("failed edit", "4 --quota 7", ["edit"]),
    ("failed assign", "3 node1", ["assign"]),
    ("nodes add", "second --address 127.0.0.9", ["add"]),
    ("nodes remove", "second", ["remove"]),
    ("nodes drain", "node1", ["drain"]),
    ("nodes resume", "node1", ["resume"]),
    ("schedule set", f"{PRODUCT} --every 7d", ["set schedule"]),
    ("schedule add", "export --every 1d --to file:FOLDER", ["add schedule"]),
    ("schedule run", PRODUCT, ["run schedule"]),
    ("schedule pause", PRODUCT, ["pause schedule"]),
    ("schedule resume", PRODUCT, ["resume schedule"]),
    ("schedule remove", PRODUCT, ["remove schedule"]),
    ("insight adopt", "黑渣渣 --theme foreign_matter", ["add term"]),
)
"""Commands in an order in which each can be run, with the actions that it records."""

READ_ONLY = {
    "product list", "split", "status", "insight themes", "insight rising", "insight new", "review classify",
    "export reviews", "report", "explain", "verify", "doctor", "control pairs",
    "nodes list", "schedule list", "failed list", "failed show", "failed report", "alerts list", "alerts test",
    "sites list", "sites check", "sites try", "balance", "web", "lab",
    "init",  # writes a file of settings
    "sites sign-in",  # writes a file of cookies
    "migrate",  # makes the tables, the audit log among them
    "simulate", "bench", "chaos",  # are not part of the product
}  # fmt: skip
"""Commands that change nothing in the store."""

PAGES = (
    ("POST", "/products", {}, ["add products"]),
    ("POST", "/imports/{number}/undo", {"number": 1, "sure": "yes"}, ["undo import", "import undone"]),
    ("POST", "/products/{product}/edit", {"product": 1, "priority": "3"}, ["edit product"]),
    ("POST", "/products/{product}/archive", {"product": 1, "theme": "service"}, ["archive theme"]),
    ("POST", "/products/edit", {"product": 2, "to_priority": "6"}, ["edit product"]),
    ("POST", "/products/{product}/remove", {"product": 2, "sure": "yes"}, ["remove product"]),
    ("POST", "/reviews/{number}/correct", {"number": 1, "voice": "news"}, ["correct review"]),
    (
        "POST",
        "/products/{product}/phrases",
        {"product": 1, "phrase": "黑渣渣", "theme": "foreign_matter"},
        ["add term"],
    ),
    ("POST", "/nodes", {"node": "node1", "action": "drain"}, ["drain"]),
    ("POST", "/failed", {"action": "retry", "subtask": "3"}, ["retry"]),
    ("POST", "/failed/{subtask}/edit", {"subtask": 4, "quota": "7"}, ["edit"]),
    ("POST", "/schedules", {"number": 1, "action": "pause"}, ["pause schedule"]),
    ("POST", "/api/products", {"names": ["伊利纯牛奶"]}, ["add products"]),
    ("POST", "/api/imports/{number}/undo", {"number": 2}, ["undo import", "import undone"]),
    ("POST", "/api/products/{product}/archive", {"product": 1, "theme": "客服售后"}, ["archive theme"]),
    (
        "POST",
        "/api/products/{product}/phrases",
        {"product": 1, "phrase": "黑疙瘩", "theme": "异物"},
        ["add term"],
    ),
    ("PATCH", "/api/products/{product}", {"product": 1, "priority": 4}, ["edit product"]),
    ("PUT", "/api/reviews/{review}/correction", {"review": 1, "hidden": True}, ["correct review"]),
    ("DELETE", "/api/reviews/{review}/correction", {"review": 1}, ["take back correction"]),
    ("POST", "/api/nodes", {"node": "node1", "action": "resume"}, ["resume"]),
    ("POST", "/api/schedules", {"number": 1, "action": "resume"}, ["resume schedule"]),
    ("POST", "/api/failed", {"action": "abandon", "subtasks": [5]}, ["abandon"]),
    ("POST", "/api/failed/{subtask}/edit", {"subtask": 2, "quota": 7}, ["edit"]),
    ("DELETE", "/api/products/{product}", {"product": 1}, ["remove product"]),
)
"""Pages and calls in an order in which each can be sent, with the actions that it records."""

PAGES_THAT_READ = {
    ("POST", "/products/preview"),
    ("POST", "/sites/{name}/try"),
    ("POST", "/sign-in"),
    ("POST", "/sign-out"),
}
"""Forms that change nothing in the store."""


def _leaves(command: click.Command, path: str = "") -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        full = f"{path} {name}".strip()
        if full in READ_ONLY:  # research may not be installed
            yield full
        elif (below := command.get_command(context, name)) is not None:
            yield from _leaves(below, full)


def test_every_command_is_in_a_table() -> None:
    assert {name for name, _, _ in COMMANDS} | READ_ONLY == set(_leaves(cli))


def test_every_form_and_call_is_in_a_table() -> None:
    sent = {
        (method, route.path)
        for module in (*_PAGES, acting, insight)
        for route in module.router.routes
        for method in route.methods - {"GET", "HEAD"}
    }
    assert {(method, path) for method, path, _, _ in PAGES} | PAGES_THAT_READ == sent


def test_commands_and_pages_change_the_store_through_actions_alone() -> None:
    sources = [*CLI.rglob("*.py"), *CLI.with_name("web").rglob("*.py")]
    changing = [
        path.name for path in sources if re.search(r"\bbegin\(|\bstore\.write\b", path.read_text("utf-8"))
    ]
    assert changing == ["schedule.py"]  # `schedule run` sends the file, as a runner does


class _Actions:
    """Actions recorded in the sample, in which subtasks 2, 3 and 4 wait for a person."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen = 0
        with store.begin() as tx:
            tx.engine_connection.execute(
                update(subtasks).where(subtasks.c.id == 2).values(state=State.MANUAL)
            )

    def new(self) -> list[str]:
        """Return the actions since the last call, the first one first."""
        with self._store.read() as tx:
            rows = notices.list_audit_rows(tx, most=100)
        fresh = [row.action for row in reversed(rows) if row.id > self._seen]
        self._seen = max((row.id for row in rows), default=0)
        return fresh


def _end(*_: object, **__: object) -> None:
    raise InputError("the crawl is left out")


def test_every_command_that_changes_something_says_so(
    sample_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(shutil.copy(sample_file, tmp_path / "reviews.db"))
    (tmp_path / "products.csv").write_text("name\n光明酸奶\n", "utf-8")
    (tmp_path / "reviews.csv").write_text("product,body\n导入的牛奶,结块了\n", "utf-8")
    env = {"REVIEWLOOP_DATABASE_URL": f"sqlite:///{file}", "REVIEWLOOP_SITES": "paper-2014"}
    themes = tmp_path / "own-themes.yaml"
    themes.write_text(builtin_text(), "utf-8")
    env["REVIEWLOOP_THEMES"] = str(themes)

    @contextmanager
    def cluster(settings: Settings, *_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(settings=settings.replace(database_url=env["REVIEWLOOP_DATABASE_URL"]))

    monkeypatch.setattr("app.run.cluster.supervisor.Cluster", cluster)
    monkeypatch.setattr("app.cli.crawl.crawling.find_askable", _end)
    monkeypatch.setattr("app.run.embedded.crawl", _end)
    store = Store.open(env["REVIEWLOOP_DATABASE_URL"])
    actions = _Actions(store)
    for command, arguments, expected in COMMANDS:
        words = shlex.split(arguments.replace("FOLDER", str(tmp_path)).replace("DATABASE", str(file)))
        own = env if command != "up" else {**env, "REVIEWLOOP_DATABASE_URL": ""}
        result = CliRunner(env=own).invoke(cli, [*command.split(), *words])
        assert (command, actions.new(), result.stderr[-500:]) == (command, expected, result.stderr[-500:])
    store.close()


def test_every_page_and_call_that_changes_something_says_so(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the themes file is made here
    served = serve()
    actions = _Actions(served.store)
    preview = served.post("/products/preview", data={"names": "蒙牛早餐奶"}).text
    draft = re.search(r'name="draft" value="([^"]+)"', preview)
    assert draft is not None
    for method, path, given, expected in PAGES:
        url = served.address + path.lstrip("/").format(**given)
        body = {name: value for name, value in given.items() if f"{{{name}}}" not in path}
        how = {"json": body} if path.startswith("/api") else {"data": {**body, "draft": draft[1]}}
        answer = served.session.request(method, url, timeout=PATIENCE_S, **how)
        assert (path, actions.new(), answer.ok) == (path, expected, True), answer.text[-500:]
    with all_in_brackets():
        shown = read_page(served.get("/audit").text)
    assert (
        list_words_outside(shown, rf"{tmp_path}\S*|\breviewloop\b|\bAPI\b|\bnode1\b|Asia/Shanghai") == set()
    )
    assert list_marks_outside(shown) == []
