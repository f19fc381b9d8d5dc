"""Product match: whether a page is about a product.

A page matches a product if it contains enough of a keyword set: the words of the product's name, or of one of its
aliases, by their weights (`splitter.word_weight`), and at least one of those that identify it. The page as a whole is
matched (its title and all its reviews): the posts of a thread rarely repeat what it is about. All pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from splitter.lexicon import Role, is_brand, lexicon, numbered_brand, roles
from splitter.normalize import normalize
from splitter.word_weight import Look, look_of, match_weights
from splitter.words import rarity

LEAST_SHARE = 0.51
"""Share of a keyword set's weight that a page must contain (chosen by `reviewloop bench relevance`)."""

TEXT_CHARS = 20_000
"""Characters of a page that are matched."""

_LONGER = (
    r"(?!\+)(?![\s-]?(?:pro|max|plus|ultra|mini|lite|coupe|turbo|sport|cross|note|fold|flip|air|se)+(?![a-z]))"
    r"(?!(?![a-d]{1,2}柱|4s|abs|esp|app|suv|mpv|cvt|dct|dsg|led|at(?![a-z])|mt(?![a-z])|vs(?![a-z])|ok)[a-z]{1,3}\d{0,2}(?![a-z\d]))"
)
"""Marks that make a longer model of one: an affix, or up to three letters right behind it; parts of a car are none."""

_SEVERAL = 1
"""Of more keyword sets than this, one alone that is without brand, line or model does not tell what a page is about."""

_ONE_BRAND = 1
"""Of more brands than this, without line or model, a page must name one: not every service is 福田南山服务."""

_ABBREVIATED = 3  # characters of a product word that people shorten to its first and last

OPENING = 80
"""Characters a page opens with, its title first, where what it is about is named; and how far words are that form
one name."""

_BESIDE, _KIND = 12, 4
"""Characters before a usual word, and behind it, among which brand or kind of goods must stand."""

_CHINESE = re.compile(r"[\u3400-\u9fff]")


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
    first = keyword_sets[0]
    found = [
        _match(words, text) if not place or _tells(words, first, text) else (0.0, tuple(words))
        for place, words in enumerate(keyword_sets)
    ]
    share, missing = max(found, key=lambda one: one[0])
    if share >= LEAST_SHARE and len(keyword_sets) > _SEVERAL:
        matching = [words for words, one in zip(keyword_sets, found, strict=True) if one[0] >= LEAST_SHARE]
        if len(matching) == 1 and match_weights(tuple(dict.fromkeys(matching[0]))).common:
            return ProductMatch(matches=False, missing=missing)
    return ProductMatch(share >= LEAST_SHARE, missing)


def _tells(words: Sequence[str], first: Sequence[str], text: str) -> bool:
    """Whether a further keyword set may tell what a text is about.

    One that differs from the first by a word is of the same name, asked with another word: the text must hold that
    word, and the brands that both have.
    """
    other, kept = set(words) - set(first), set(words) & set(first)
    if len(other) != 1 or not kept:
        return True
    needed = (*other, *filter(is_brand, kept))
    return all(_has(text, word, tuple(words)) for word in needed)


def matched_share(words: Sequence[str], text: str) -> float:
    """Share of a keyword set's weight that a text contains; 0 where it contains none of the identifying words."""
    return _match(words, text)[0]


def _match(keywords: Sequence[str], text: str) -> tuple[float, tuple[str, ...]]:
    """The share that `matched_share` gives, and the words that the text lacks."""
    words = tuple(dict.fromkeys(keywords))
    of = match_weights(words)
    named = {word for word in of.naming if _names(text, word, words)}
    missing = tuple(word for word in words if word not in named and not _has(text, word, words))
    if of.identifying.issubset(missing) or len(named) < of.least_named:
        return 0.0, missing or of.naming
    if of.brands and not any(_near(text, brand, words) for brand in of.brands):
        return 0.0, missing or of.naming
    if len(of.brands) > _ONE_BRAND and set(of.brands).issubset(missing):
        return 0.0, missing
    usual = all(roles().get(word) is None and look_of(word) is Look.LATIN for word in words)
    if usual and len(words) > 1 and not any(_beside(text, word, words) for word in words):
        return 0.0, missing or words
    if of.common and (missing or not any(contains(text[:OPENING], word) for word in words)):
        return 0.0, missing or words
    return 1 - sum(of.weights[word] for word in missing) / sum(of.weights.values()), missing


def _has(text: str, word: str, words: tuple[str, ...]) -> bool:
    """Whether a text contains a keyword of a set; a brand also where its line in the set is there: 特仑苏 is 蒙牛."""
    if contains(text, word):
        return True
    lines = [line for line in words if lexicon().brand_of.get(line) == word]
    return any(contains(text, line) for line in lines)


def _near(text: str, brand: str, words: tuple[str, ...]) -> bool:
    """Return True if a brand opens a text, or stands near another word of its set: 光明 far from 牛奶 is light."""
    return not contains(text, brand) or contains(text[:OPENING], brand) or _beside(text, brand, words)


def _beside(text: str, word: str, words: tuple[str, ...]) -> bool:
    """Return True if a word stands near another one of its set: LA Galaxy far from watch is no Galaxy Watch."""
    return any(
        contains(text[max(0, found.start() - OPENING) : found.end() + OPENING], other)
        for pattern in _patterns(word)
        for found in pattern.finditer(text)
        for other in words
        if other != word
    )


def _names(text: str, word: str, words: tuple[str, ...]) -> bool:
    """Whether a text names a line or model itself.

    Not a longer model that begins like it (帝豪GL, H6 Coupe), not only the kind of thing it is (牛奶 for 纯牛奶), and a
    number only behind the word before it (马自达3).
    """
    if roles().get(word) is not None or rarity(word) is None or len(words) == 1:
        return any(one.search(text) for one in _named_as(word, words))
    others = [other for other in words if other != word]
    return any(  # a usual word (草莓) names a variety only beside the brand or the kind of goods
        contains(text[max(0, begin - _BESIDE) : begin], other)
        or (not is_brand(other) and contains(text[end : end + _KIND], other))
        for begin, end in namings(text, word, words)
        for other in others
    )


def namings(text: str, word: str, words: tuple[str, ...]) -> list[tuple[int, int]]:
    """Places (begin, end; ascending) where a text of `matchable_text` itself names a line or model of a keyword set."""
    return sorted({one.span() for pattern in _named_as(word, words) for one in pattern.finditer(text)})


def _named_as(word: str, words: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    place = words.index(word)
    whole = place + 1 == len(words) or not words[place + 1].isascii()
    before = words[place - 1] if place and word.isdigit() else ""
    return _naming_patterns(word, before, whole)


def contains(text: str, word: str) -> bool:
    """Whether a text (of `matchable_text`) contains a keyword, in any of its spellings."""
    return any(one.search(text) for one in _patterns(word))


@lru_cache(maxsize=8192)
def _patterns(word: str) -> tuple[re.Pattern[str], ...]:
    """How a word may be written: as it is, as its brand is written elsewhere, as another spelling, or by its head."""
    spellings = _spellings(word)
    if roles().get(word) is Role.PRODUCT and len(word) > 2 and _CHINESE.fullmatch(word[-1]):
        spellings.add(word[-2:])  # 纯牛奶: people say 牛奶
    return tuple(_pattern(spelling.casefold()) for spelling in sorted(spellings))


@lru_cache(maxsize=8192)
def _naming_patterns(word: str, before: str, whole: bool) -> tuple[re.Pattern[str], ...]:
    """How a line or model is named.

    Args:
        before: the word that a number must stand behind; may be empty.
        whole: not as the beginning of a longer model.
    """
    spellings = _spellings(word)
    if roles().get(word) is Role.PRODUCT and len(word) == _ABBREVIATED and _CHINESE.fullmatch(word[0]):
        spellings.add(word[0] + word[-1])  # 纯牛奶: 纯奶
    longer = _LONGER if whole else ""
    if not before:
        return tuple(_pattern(spelling.casefold(), longer) for spelling in sorted(spellings))
    heads = "|".join(re.escape(one.casefold()) for one in sorted(_spellings(before)))
    return (re.compile(rf"(?:{heads})[^\d]{{0,3}}{word}(?![\d.]\d|\d){longer}"),)


def _spellings(word: str) -> set[str]:
    known = lexicon()
    found = {
        word,
        *known.names_of.get(word, ()),
        *(other for other, one in known.same.items() if one == word),
    }
    if brand := numbered_brand(word):
        number = word.removeprefix(brand)
        found |= {other + number for other in known.names_of.get(brand, ())}
    if roles().get(word) is Role.TRAIT and word.endswith("味"):
        found.add(word[:-1])
    if model := re.fullmatch(r"[A-Za-z]+ ([A-Za-z]+\d.*)", word):
        found.add(model[1])  # Galaxy S25 Ultra: people say S25 Ultra
    return found


def _pattern(word: str, longer: str = "") -> re.Pattern[str]:
    """Letters and digits match only as a whole: 11 is not in 2011, mate not in estimate; blanks don't matter."""
    before = r"(?<![a-z])" if re.match("[a-z]", word) else r"(?<![\d.])" if word[:1].isdigit() else ""
    after = r"(?![a-z])" if re.search("[a-z]$", word) else r"(?![\d.]\d|\d)" if word[-1:].isdigit() else ""
    return re.compile(before + r"[\s-]*".join(map(re.escape, word.split())) + after + longer)
