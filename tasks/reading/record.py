"""A record of a page without rules: what one person wrote there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The text of one person, with its marks.

    Attributes:
        element: its number in the page's outline.
        author, date_text: empty where the record has none.
        date: aware, where it could be read.
        text: without what it quotes, and without its author's signature.
        quotes: what it quotes of others; empty where nothing.
        signature: the author's, under the text; empty where there is none.
    """

    element: int
    author: str
    date_text: str
    date: datetime | None
    text: str
    quotes: str
    signature: str
