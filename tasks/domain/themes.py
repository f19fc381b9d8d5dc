"""Themes: the subjects of a review, and the clauses that name them."""

from __future__ import annotations

from typing import NamedTuple

ALL_THEMES = "all"
"""Used in place of a theme: all complaints of a product together."""


class Theme(NamedTuple):
    """A theme of a review, and the clause that shows it.

    Attributes:
        id: as in the themes file.
        sentiment: -1 for a complaint, 1 for praise, 0 for neither.
        quote_from, quote_to: start and end of the clause in the text.
    """

    id: str
    sentiment: int
    quote_from: int
    quote_to: int
