"""The names of the commands, and the word that a person types to start the program in a shell."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from itertools import chain
from pathlib import Path

GROUPS = {
    "Every day": (
        "init",
        "product",
        "review",
        "split",
        "run",
        "status",
        "export",
        "report",
        "insight",
        "judge",
        "explain",
        "web",
        "failed",
        "alerts",
        "sites",
        "doctor",
        "demo",
    ),
    "Cluster": ("up", "migrate", "nodes", "control", "schedule", "verify"),
    "Research": ("lab", "simulate", "balance", "bench", "chaos"),
}
"""Names of the commands by heading in `--help`."""

_COMMAND = re.compile(rf"(?<![\w./-])reviewloop (?=(?:{'|'.join(chain(*GROUPS.values()))})\b)")


def program(*, from_anywhere: bool = False) -> str:
    """Return the word that starts this program in a shell: `reviewloop` if it is on the PATH, else the program's path.

    Args:
        from_anywhere: True for a path that works in any folder.
    """
    called, found = sys.argv[0], shutil.which("reviewloop")
    if Path(called).name != "reviewloop" or (found and os.path.realpath(found) == os.path.realpath(called)):
        return "reviewloop"
    return shlex.quote(str(Path(called).absolute()) if from_anywhere else called)


def as_called(text: str, *, from_anywhere: bool = False) -> str:
    """Replace `reviewloop` in a text by the word that starts the program (`program`)."""
    return _COMMAND.sub(lambda _: f"{program(from_anywhere=from_anywhere)} ", text)
