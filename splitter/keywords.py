"""From a product name to the words that must all be on a page about it (AND keywords).

The words of a name are cut, then sorted out: sizes, counts, stages, promotion, packaging and asides in
brackets go, spellings of one thing become one, a brand the name leaves out is put in front. What remains
keeps its order. A short name, and one whose words our dictionary knows, is taken at its word. Of a longer one
(a shop's title) the few words stay that identify the product: brand, line or model, what it is; a search for
a dozen words at once finds nothing. ``splitter.finder`` does it, ``splitter.keyword_classifier`` weighs the words.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitter.errors import ProductNameError
from splitter.finder import MAX_KEYWORDS, finder, without_asides
from splitter.normalize import normalize

__all__ = ["MAX_KEYWORDS", "MAX_NAME", "keywords_of"]

MAX_NAME = 200
"""Longest name taken, in characters."""


def keywords_of(name: str, *, override: Sequence[str] = ()) -> tuple[str, ...]:
    """The AND keywords of a product name.

    Args:
        name: as a person wrote it.
        override: the keywords themselves, where a person gave them: written the one way, otherwise untouched.

    Returns:
        At least one keyword, none empty, none twice, in the order of the name; an added brand first.

    Raises:
        ProductNameError: the name is empty, over 200 characters, or leaves no keyword.
    """
    shown = name.strip()
    if not shown:
        raise ProductNameError("the product name is empty; write one such as 光明高钙牛奶")
    if len(shown) > MAX_NAME:
        raise ProductNameError(
            f"the product name {shown[:20]}... has {len(shown)} characters; write at most {MAX_NAME}"
        )
    if override:
        return _overridden(shown, override)
    text = normalize(shown)
    found = finder()
    words = found.find(without_asides(text)) or found.find(text)
    if not words:
        raise ProductNameError(
            f"the product name {shown!r} leaves no keyword (sizes, counts, promotion and packaging "
            "don't count); name brand and product, or give keywords with --keywords"
        )
    return words


def _overridden(name: str, override: Sequence[str]) -> tuple[str, ...]:
    words: dict[str, str] = {}
    for word in map(normalize, override):
        if word:
            words.setdefault(word.casefold(), word)
    if not words:
        raise ProductNameError(f"no keyword is given for {name!r}; write --keywords 光明,牛奶")
    return tuple(words.values())
