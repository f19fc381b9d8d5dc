"""A command answers at once: it imports what it needs when it needs it. Held by what is imported, not by a clock."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from patience import PATIENCE_S

from app.run.open_store import hold_folder

_SLOW = {
    *(
        "aiohttp",
        "alembic",
        "apprise",
        "apscheduler",
        "bs4",
        "celery",
        "cryptography",
        "fastapi",
        "jinja2",
        "lxml",
    ),
    *("openpyxl", "psycopg2", "pyarrow", "pycurl", "redis", "requests", "scipy", "uvicorn"),
}
_LOADED = """
import sys
from app.cli.main import cli
status = cli.main(sys.argv[1:], standalone_mode=False)
print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("words", "without"),
    [
        (("--help",), _SLOW | {"jieba", "numpy", "pydantic", "rich", "sqlalchemy", "yaml"}),
        (("run", "--help"), _SLOW | {"jieba", "numpy", "pydantic", "sqlalchemy"}),
        (("up", "--help"), _SLOW | {"jieba", "numpy", "pydantic", "sqlalchemy"}),
        (("status", "--db", "DB"), _SLOW | {"jieba", "numpy"}),
        (("nodes", "list", "--db", "DB"), _SLOW | {"jieba", "numpy"}),
        (("failed", "list", "--db", "DB"), _SLOW | {"jieba", "numpy"}),
        (("product", "list", "--db", "DB"), _SLOW | {"jieba", "numpy"}),
        (("schedule", "list", "--db", "DB"), _SLOW | {"jieba", "numpy"}),
        (("split", "光明高钙牛奶", "--sites", "paper-2014"), _SLOW | {"asyncio", "numpy", "sqlalchemy"}),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
@pytest.mark.slow
def test_a_command_imports_what_it_needs(crawled_once, words, without):
    path, _ = crawled_once
    assert without & loaded(*(f"sqlite:///{path}" if word == "DB" else word for word in words)) == set()


def test_a_cluster_is_refused_its_folder_before_anything_is_imported(tmp_path):
    with hold_folder(tmp_path):
        modules = loaded("up", "--data", str(tmp_path), "光明高钙牛奶", status=2)
    assert modules & (_SLOW | {"jieba", "numpy", "pydantic", "sqlalchemy"}) == set()


_STRATEGIES = {"apscheduler", "highspy", "numpy", "tasks.scheduling.planner", "tasks.scheduling.feedback"}
_PEOPLE = {"app.reports", "app.sending.delivery", "app.files.exporting", "tasks.store.queries", "rich"}
_TERMINAL = {"prompt_toolkit", "click_repl", "pygments"}
_ELSEWHERE = {"alembic", "bs4", "cryptography.fernet", "fastapi", "jieba", "lxml", "openpyxl", "pyarrow"} | {
    "requests",
    "scipy",
}


@pytest.mark.parametrize(
    ("imported", "without"),
    [
        (
            "app.celery tasks.jobs.celery_tasks celery.apps.beat celery.apps.worker",
            _ELSEWHERE | _STRATEGIES | _PEOPLE | _TERMINAL | {"pycurl", "sqlalchemy", "tasks.worker.node"},
        ),
        (
            "app.celery tasks.jobs.celery_tasks app.run.cluster.node_process",
            _ELSEWHERE | (_STRATEGIES - {"numpy"}) | _PEOPLE | _TERMINAL | {"tasks.jobs.planning"},
        ),
        ("app.celery tasks.jobs.celery_tasks app.run.cluster.control_process", _ELSEWHERE | _TERMINAL),
        ("app.run.embedded", _ELSEWHERE | _TERMINAL | {"celery", "redis", "psycopg2"}),
    ],
    ids=["beat", "node", "control", "embedded"],
)
@pytest.mark.slow
def test_a_process_imports_what_it_uses(imported, without):
    """A process of a cluster costs memory for what it imports, and so many times as there are nodes."""
    lines = [f"import sys, {', '.join(imported.split())}", "print(*sys.modules)"]
    servers = {"REVIEWLOOP_REDIS_URL": "redis://h/0", "REVIEWLOOP_DATABASE_URL": "postgresql://h/d"}
    done = subprocess.run(
        [sys.executable, "-c", "; ".join(lines)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, **servers},
    )
    assert without & set(done.stdout.split()) == set()


def loaded(*words: str, status: int = 0) -> set[str]:
    """The packages that a command has imported at its end."""
    done = subprocess.run(
        [sys.executable, "-c", _LOADED, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == status, done.stderr
    return set(done.stderr.splitlines()[-1].split())
