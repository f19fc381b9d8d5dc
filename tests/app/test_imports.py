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


@pytest.mark.slow
def test_beat_and_workers_import_their_own_alone():
    """What serves a queue is imported where it is served: beat serves none, and of the workers only one plans."""
    code = "import sys; import app.celery; print(*{name.partition('.')[0] for name in sys.modules})"
    servers = {"REVIEWLOOP_REDIS_URL": "redis://h/0", "REVIEWLOOP_DATABASE_URL": "postgresql://h/d"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
        env={**os.environ, **servers},
    )
    unasked = {
        "aiohttp",
        "bs4",
        "fastapi",
        "jieba",
        "lxml",
        "numpy",
        "pycurl",
        "requests",
        "scipy",
        "sqlalchemy",
    }
    assert unasked & set(done.stdout.split()) == set()


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
