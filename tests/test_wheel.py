"""The wheel, on its own in an empty folder: with its catalog, its migrations and its data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
_TREE = (
    "app",
    "tasks",
    "splitter",
    "migrations",
    "sites.yaml",
    "docker-compose.yml",
    "pyproject.toml",
    "README.md",
)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel holds, built from a copy of the tree."""
    copy, wheels, folder = (tmp_path_factory.mktemp(name) for name in ("copy", "wheels", "installed"))
    for name in _TREE:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, copy / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy(source, copy / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", wheels, copy], check=True, capture_output=True)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


# The environment of the tests has the distribution `reviewloop-research`; a user of the wheel does not.
_ALONE = """
from importlib import metadata

found = metadata.entry_points
metadata.entry_points = lambda **asked: () if asked["group"] == "reviewloop.commands" else found(**asked)
from app.cli.main import main

main()
"""


@pytest.fixture
def reviewloop(installed, tmp_path):
    def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        environment = {name: text for name, text in os.environ.items() if not name.startswith("REVIEWLOOP_")}
        return subprocess.run(
            [sys.executable, "-c", _ALONE, *arguments],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(installed), "PYTHONSAFEPATH": "1"},
            capture_output=True,
            text=True,
            check=check,
        )

    return run


def test_it_splits_by_the_catalog_of_today(reviewloop):
    urls = [json.loads(line) for line in reviewloop("split", "光明高钙牛奶", "--json").stdout.splitlines()]
    assert urls[0]["keywords"] == ["光明", "高钙", "牛奶"]
    assert {"tieba.baidu.com", "cca.org.cn"} <= {url["site"] for url in urls}


def test_it_brings_its_migrations(reviewloop):
    assert "1 added" in reviewloop("product", "add", "光明高钙牛奶").stdout
    assert json.loads(reviewloop("status", "--json").stdout)["products"] == 1


def test_it_knows_its_version(reviewloop, installed):
    (metadata,) = installed.glob("*.dist-info/METADATA")
    version = next(line for line in metadata.read_text("utf-8").splitlines() if line.startswith("Version: "))
    assert reviewloop("--version").stdout.split()[-1] == version.split()[-1]


def test_commands_of_research_name_what_to_install(reviewloop):
    listed = reviewloop("--help").stdout.splitlines()
    for name in ("simulate", "bench", "chaos"):
        assert any(line.split()[:1] == [name] and "(not installed)" in line for line in listed), name
        ran = reviewloop(name, "splitter", check=False)
        assert (ran.returncode, ran.stdout) == (2, "")
        assert f"{name} is not installed: pip install ./research" in ran.stderr
