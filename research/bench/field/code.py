"""Which code runs, so that runs of different code are told apart."""

from __future__ import annotations

import subprocess
from hashlib import sha256

from app.run.version import ROOT, VERSION

_RUNS = ("app", "tasks", "splitter", "migrations", "sites.yaml")
"""What a run is made of: a change of anything else (docs, tests, benches) leaves it the same."""


def version() -> str:
    """The last commit that changed what runs, as `git describe` names it, and whether something is not committed.

    Without git the project's version.
    """
    try:
        commit = _git("log", "-1", "--format=%H", "--", *_RUNS)
        named = _git("describe", "--always", "--tags", commit)
        changed = _git("diff", "HEAD", "--", *_RUNS) + _git(
            "ls-files", "-o", "--exclude-standard", "--", *_RUNS
        )
    except (OSError, subprocess.CalledProcessError):
        return VERSION
    return f"{named}-changed-{sha256(changed.encode()).hexdigest()[:8]}" if changed else named


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout.strip()
