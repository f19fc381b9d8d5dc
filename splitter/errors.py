"""The exception tree of reviewloop.

    ReviewloopError                 everything the project raises on purpose
    ├── InputError                  what came in was wrong; exit status 2
    │   ├── CatalogError            sites.yaml: names file, line, key and a correct form
    │   └── ProductNameError        a product name that gives no query
    └── (tasks.domain.errors)              StoreBusy, IllegalTransition, ...

A message names the problem, its place, and a correct form.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from typing import Self


class ReviewloopError(Exception):
    """Root of everything reviewloop raises on purpose.

    Args:
        template: English message, with names of parameters in braces. Without parameters it is taken as it is.
        parameters: values of the names. The message in another language is made from the same values.
    """

    def __init__(self, template: str = "", **parameters: object) -> None:
        super().__init__(template)
        self.template = template
        self.parameters = parameters

    def __str__(self) -> str:
        """Return the message in English."""
        return self.template.format_map(self.parameters) if self.parameters else self.template


class InputError(ReviewloopError):
    """Input from a person or a file that cannot be used; nothing was stored."""

    @classmethod
    def unknown(cls, kind: str, name: str, known: Collection[str], see: str) -> Self:
        """Make the error of an unknown name. It lists names near it, or points to the list of all."""
        return cls(f"there is no {kind} {name!r}{did_you_mean(name, known) or f'; see {see}'}")


class CatalogError(InputError):
    """A catalog (sites.yaml) is wrong; the message carries file, line and key of each problem."""


class ProductNameError(InputError):
    """A product name is empty, too long, or has no keyword to search for."""


def did_you_mean(name: str, known: Collection[str], most: int = 3) -> str:
    """Return a hint at the known names that are most like a wrong one; empty if none is."""
    near = get_close_matches(name, known, most, 0.5)
    return f"; did you mean {', '.join(map(repr, near))}?" if near else ""
