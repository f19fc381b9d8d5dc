"""The options that `run` and `up` share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.cli.options import group_option, site_option
from tasks.scheduling.strategy_names import STRATEGIES

F = TypeVar("F", bound=Callable[..., Any])

_MOST_SLOTS = 1000

_RUNNER_OPTIONS = (
    click.option(
        "--until-done", is_flag=True, help="End when all subtasks are DONE, CANCELLED or wait for a person."
    ),
    click.option(
        "--for",
        "seconds",
        type=click.FloatRange(0, min_open=True),
        metavar="SECONDS",
        help="End after this time; `up` counts from its first lease.",
    ),
    click.option(
        "--slots",
        type=click.IntRange(1, _MOST_SLOTS),
        help="Attempts that a node runs at the same time. Default: 4.",
    ),
    group_option,
    site_option,
    click.option(
        "--allocation", type=click.Choice(STRATEGIES), help="Allocation strategy. Default: feedback."
    ),
    click.option(
        "--no-modification", is_flag=True, help="Use the site's own quota and budget; no attempt ends early."
    ),
    click.option("--no-recall", is_flag=True, help="Give every failed subtask to a person at once."),
    click.option(
        "--log",
        "request_log",
        metavar="FILE",
        help="Write a JSON line per request; `up` writes one file per node, FILE.NODE.",
    ),
)


def runner_options(command: F) -> F:
    """Add the options that `run` and `up` share to a command."""
    for option in reversed(_RUNNER_OPTIONS):
        command = option(command)
    return command
