"""Prepare quotes for people: make them long enough to understand, and drop near-equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from app.insight.rows import QuoteRow
from tasks.reading.copies.near_duplicates import plain, shingles, similarity_if_near
from tasks.store.queries.themes import AROUND

_LONG_ENOUGH = 7
"""Minimum number of characters of a clause that people understand without its context."""
_ENDS = "，,；;。！？!?、~ \n"
_SENTENCE_ENDS = re.compile(r"[。！？!?\n]")
_FIRST_CLAUSE = re.compile(f"[{_ENDS}]*([^{_ENDS}]*)")


def widen_quote(before: str, clause: str, after: str) -> str:
    """Return a clause, extended if it is short: by the text before it in its sentence, else by the next clause.

    Args:
        before, after: at most `AROUND` characters of the text on either side. A clause that is cut off at this limit is
            not used.
    """
    if len(clause.strip(_ENDS)) >= _LONG_ENOUGH:
        return clause.strip(_ENDS)
    head = _SENTENCE_ENDS.split(before)[-1]
    if len(head) == AROUND:  # the beginning may be cut off
        head = re.sub(f"^[^{_ENDS}]*", "", head)
    if head.strip(_ENDS):
        return (head + clause).strip(_ENDS)
    behind = _FIRST_CLAUSE.match(after)
    if behind and behind[1] and not (len(after) == AROUND and behind.end() == AROUND):
        return (clause + behind[0]).strip(_ENDS)
    return clause.strip(_ENDS)


def list_different(quotes: Iterable[QuoteRow]) -> Iterator[QuoteRow]:
    """Yield the quotes that are not nearly equal to an earlier one."""
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
