"""Choose quotes that differ from each other: of nearly equal ones, people see one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from app.insight.rows import QuoteRow
from tasks.reading.copies.near_duplicates import plain, shingles, similarity_if_near


def list_different(quotes: Iterable[QuoteRow]) -> Iterator[QuoteRow]:
    """Yield the quotes that are not nearly the same as one before."""
    seen: list[tuple[str, frozenset[int]]] = []
    for quote in quotes:
        text = plain(quote.text)
        hashes = frozenset(shingles(text))
        if any(
            text == earlier or similarity_if_near(hashes, of_earlier) is not None
            for earlier, of_earlier in seen
        ):
            continue
        seen.append((text, hashes))
        yield quote
