"""The project's folder and its version: all that the command line's help needs."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def _version() -> str:
    """The project's version: of the tree this runs in, else of the installed package."""
    project = ROOT / "pyproject.toml"
    if project.is_file():
        return str(tomllib.loads(project.read_text("utf-8"))["project"]["version"])
    from importlib import metadata  # slow to import, and a tree does without

    return metadata.version("reviewloop")


VERSION = _version()
