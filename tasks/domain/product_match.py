"""Product match: whether a page is about a product, and what a page is to a product.

A page matches a product if it contains enough of a keyword set: the words of the product's name, or of one of its
aliases, by their weights (`splitter.word_weight`), and at least one of those that identify it. The page as a whole is
matched (its title and all its reviews): the posts of a thread rarely repeat what it is about. All pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from splitter.lexicon import Role, lexicon, roles
from splitter.normalize import normalize
from splitter.word_weight import match_weights

LEAST_SHARE = 0.51
"""Share of a keyword set's weight that a page must contain (chosen by `reviewloop bench relevance`)."""

TEXT_CHARS = 20_000
"""Characters of a page that are matched."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")


class Verdict(StrEnum):
    """What a page is to a product."""

    REVIEW = "review"
    WRONG_PRODUCT = "wrong_product"
    NO_REVIEW = "no_review"


@dataclass(frozen=True, slots=True)
class ProductMatch:
    """Whether a page is about a product.

    Attributes:
        matches: the page contains enough of one keyword set.
        missing: words of the best matching keyword set that the page does not contain.
    """

    matches: bool
    missing: tuple[str, ...]


def matchable_text(title: str, reviews: Iterable[tuple[str, str]]) -> str:
    """The text of a page as keywords are matched with it: normalised, without case, at most `TEXT_CHARS` long.

    Args:
        title: of the page.
        reviews: title and body of each, in their order.
    """
    parts, left = [title], TEXT_CHARS - len(title)
    for heading, body in reviews:
        if left <= 0:
            break
        parts += [heading, body[:left]]
        left -= len(heading) + len(body)
    return normalize("\n".join(parts)).casefold()


def product_match(keyword_sets: Sequence[Sequence[str]], text: str) -> ProductMatch:
    """Whether a text (of `matchable_text`) is about the product of some keyword sets; without any set, it is."""
    if not keyword_sets:
        return ProductMatch(matches=True, missing=())
    best, missing = max((_match(words, text) for words in keyword_sets), key=lambda found: found[0])
    return ProductMatch(best >= LEAST_SHARE, missing)


def matched_share(words: Sequence[str], text: str) -> float:
    """Share of a keyword set's weight that a text contains; 0 where it contains none of the identifying words."""
    return _match(words, text)[0]


def _match(keywords: Sequence[str], text: str) -> tuple[float, tuple[str, ...]]:
    """What `matched_share` gives, and the words that the text lacks."""
    words = tuple(dict.fromkeys(keywords))
    of = match_weights(words)
    missing = tuple(word for word in words if not contains(text, word))
    if of.identifying.issubset(missing):
        return 0.0, missing
    return 1 - sum(of.weights[word] for word in missing) / sum(of.weights.values()), missing


def contains(text: str, word: str) -> bool:
    """Whether a text (of `matchable_text`) contains a keyword, in any of its spellings."""
    return any(one.search(text) for one in _patterns(word))


@lru_cache(maxsize=8192)
def _patterns(word: str) -> tuple[re.Pattern[str], ...]:
    """How a word may be written: as it is, as its brand is written elsewhere, as another spelling, or by its head."""
    known, role = lexicon(), roles().get(word)
    spellings = {word, *known.names_of.get(word, ())}
    spellings |= {other for other, one in known.same.items() if one == word}
    if role is Role.BRAND:
        spellings |= {line for line, brand in known.brand_of.items() if brand == word}
    if role is Role.PRODUCT and len(word) > 2 and _CHINESE.fullmatch(word[-1]):
        spellings.add(word[-2:])  # 纯牛奶: people say 牛奶
    return tuple(_pattern(spelling.casefold()) for spelling in sorted(spellings))


def _pattern(word: str) -> re.Pattern[str]:
    """Letters and digits match only as a whole: 11 is not in 2011, mate not in estimate."""
    before = r"(?<![a-z])" if re.match("[a-z]", word) else r"(?<![\d.])" if word[:1].isdigit() else ""
    after = r"(?![a-z])" if re.search("[a-z]$", word) else r"(?![\d.]\d|\d)" if word[-1:].isdigit() else ""
    return re.compile(before + re.escape(word) + after)
