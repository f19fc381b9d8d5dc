"""Options that several benches have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import click

from app.cli.options import ReadBy
from splitter.errors import InputError


def names_of(what: str, names: Iterable[str]) -> ReadBy:
    """Return the type of an option that takes some of these names, separated by commas."""
    known = tuple(names)

    def read(text: str) -> tuple[str, ...]:
        chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
        for name in chosen:
            if name not in known:
                raise InputError(f"{what} {name!r}: there is {', '.join(known)}")
        return chosen

    return ReadBy("name,...", read)


def seeds_options(count: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options for the number of seeds and the first one."""
    seeds = click.option(
        "--seeds", type=click.IntRange(1), default=count, show_default=True, help="Number of seeds."
    )
    first = click.option("--seed-from", type=int, default=1, show_default=True, help="The first seed.")
    return lambda function: seeds(first(function))
