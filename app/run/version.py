"""The project's folder, version and default paths. The help texts of commands need them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MIGRATIONS = ROOT / "migrations"
DEFAULT_DATABASE = "sqlite:///reviewloop.db"
DEFAULT_DATA = Path(".reviewloop")
"""Folder of the servers that `reviewloop up` starts by itself."""


def _version() -> str:
    """Return the project's version: of the source tree if the program runs in one, else of the installed package."""
    project = ROOT / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"])
    from importlib import metadata  # slow to import, and not needed in a source tree

    return metadata.version("reviewloop")


VERSION = _version()
