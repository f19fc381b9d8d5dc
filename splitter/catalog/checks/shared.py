"""What the checks of engines, sites and sign-ins share: problems at their places, entries, names, robots.txt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from splitter.catalog.model import RobotsDecision
from splitter.yamlfile import Document, Place

Found = Iterator[tuple[Place, str]]
_Model = TypeVar("_Model", bound=BaseModel)
DOMAIN = re.compile(
    r"(?=.{4,253}$)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
_LEAST_REASON = 10


def entries_of(data: Mapping[str, Any], table: str) -> list[tuple[str, Any]]:
    """Name and data of each entry of a table; none where it is no table."""
    entries = data.get(table)
    return [(str(name), raw) for name, raw in entries.items()] if isinstance(entries, Mapping) else []


def read_as(model: type[_Model], raw: object) -> _Model | None:
    """Data as a model; None where it does not have its shape."""
    try:
        return model.model_validate_json(Document(raw, {}).json())
    except (ValidationError, TypeError, ValueError):
        return None  # its shape is reported where the whole catalog is read


def under(place: Place, found: Found) -> Found:
    """The same, each at its place within another."""
    for inner, message in found:
        yield (*place, *inner), message


def check_robots(decision: RobotsDecision | None) -> Found:
    """A decision not to obey robots.txt gives a reason."""
    if decision is not None and not decision.obey and len(decision.reason.strip()) < _LEAST_REASON:
        yield (
            ("robots", "reason"),
            f"{decision.reason!r} is no reason not to obey robots.txt; write in {_LEAST_REASON} characters or more "
            "who allows it",
        )


def nearest(name: str, known: Mapping[str, Any]) -> str:
    """A hint at the known name that is most like a wrong one."""
    near = get_close_matches(name, [str(key) for key in known], n=1, cutoff=0.5)
    if near:
        return f"; did you mean '{near[0]}'?"
    return f"; there is {', '.join(map(str, known))}" if known else ""
