"""Processes that begin without importing anything again: forked from one that has imported it all.

That one does nothing else, so that a fork copies no lock that somebody holds.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = (
    "app.cli.main",
    "research.tools.labs",
    "research.bench.politeness",
    "research.bench.strategy_runs.runs",
)
"""What begins most processes: the command line, which each imports again, and the functions they are to run."""


def forkserver() -> ForkServerContext:
    """What starts such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_IMPORTED))
    return context
