"""Find the words of a name that may be its keywords, and how likely each of them identifies the product.

Words that only name the company, a colour, an edition or a form are none. Role and look of the others give them a rank
(`splitter.word_weight`); in a shop's title the trained model gives them odds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import truediv

from splitter.keyword_classifier import Odds, classifier
from splitter.lexicon import Role, is_brand, lexicon, numbered_brand, roles
from splitter.normalize import drop_amounts
from splitter.whole_words import LONGEST_NAME, YEAR, join_models, join_names, whole_words
from splitter.word_weight import BRAND_RANK, SINGLE_RANK, Look, look_of, names_model, rank_of
from splitter.words import rarity, words_of

_ENOUGH, _ENOUGH_OF_NAME = 0.42, (0.2, 0.4, 0.2)
# Least probability that a word is of any of them; in a shorter name, of a brand, a product, a model: a miss costs more.
_SOME_PRODUCT = 0.1  # of the likeliest product word of a title: it stays

_LEAST_COMPOUND, _LONGEST_COMPOUND = 4, 6  # characters of a word of two words
_LIKELY_HEAD, _LEAST_GAIN = 0.5, 0.1
# Least probability of a compound's head as a product word, and by how much it must be more than the compound's.
_UNLIKELY: Odds = (0.0, 0.0, 0.0)

_LONG_NUMBER = re.compile(
    r"(?!(?:19|20)\d\d(?:-|$))\d{3,10}(?:-\d+)*"
)  # a longer one is a telephone's or a book's
_YEAR = re.compile(r"(?:19|20)\d\d")
_COLOUR = re.compile(r"(?!特色|角色|本色|音色|景色|国色)[一-龥]{1,4}色")
_EDITION = re.compile(r"[一-龥A-Za-z0-9]{1,5}(?:版|款)")
_SHADES = "黑白红蓝绿紫粉金银灰橙黄青"
_SHADE = re.compile(rf"[一-龥]{{1,3}}[{_SHADES}]")  # behind a model
_FORM_ENDS = f"0123456789色版款{_SHADES}"
_BRANDED = (Role.BRAND, Role.SERIES)
_NAMES = (*_BRANDED, Role.PLATFORM)
_NUMBER_AND_KIND = re.compile(rf"(?!{YEAR.pattern})\d{{2,5}} [一-龥]{{2}}[^A-Za-z0-9]*")
_PROPER = (*_BRANDED, Role.PRODUCT, Role.TRAIT)
_MARK = ","


def name_words(text: str) -> list[str]:
    """The whole words of a name (normalized) and the marks between them, amounts left out."""
    return join_models(whole_words(words_of(drop_amounts(text))))


def cut_words(text: str) -> list[str]:
    """The words of a name, as `name_words`; of a shop's title, compounds that are less likely than their head are two
    words: of 水果罐头, people mark 水果 and 罐头."""
    words = name_words(text)
    if len(words) <= LONGEST_NAME:
        return join_names(words)
    place = 0
    while place < len(words):
        word = words[place]
        compound = not word.isascii() and word[0].isalpha() and word not in roles()
        if compound and _LEAST_COMPOUND <= len(word) <= _LONGEST_COMPOUND:
            words = _cut_compound(words, place)
        place += 1
    return words


def _cut_compound(words: list[str], place: int) -> list[str]:
    """Return the words with the one at a place cut in two if that names the goods better; else as they are."""
    whole = odds_of(words).get(place)
    if whole is None:
        return words
    word = words[place]
    ways: list[tuple[float, list[str]]] = []
    for cut in range(2, len(word) - 1):
        if _is_known(word[:cut]) and _is_known(word[cut:]):
            parted = [*words[:place], word[:cut], word[cut:], *words[place + 1 :]]
            odds = odds_of(parted)
            _, head, _ = odds.get(place + 1, _UNLIKELY)
            more = max(0.0, sum(odds.get(place, _UNLIKELY)) - _ENOUGH)
            if head > _LIKELY_HEAD:
                ways.append((head + more - sum(whole), parted))
    gain, parted = max(ways, default=(0.0, words))
    return parted if gain > _LEAST_GAIN else words


def _is_known(word: str) -> bool:
    return rarity(word) is not None or word in roles()


def odds_of(words: Sequence[str]) -> dict[int, Odds]:
    """Return the classifier's odds of each candidate, by its place."""
    places = list(candidates(words))
    return dict(zip(places, classifier().odds(words, places), strict=True))


# --- which words are candidates, and how they rank ----------------------------------------------------------


def product_words(words: Sequence[str], odds: Mapping[int, Odds]) -> frozenset[str]:
    """Return the candidates of a name that say what it is."""
    role = roles().get
    found: set[str] = set()
    for place, (brand, product, model) in odds.items():
        word = words[place]
        sold = role(word) is None or word in lexicon().goods
        if role(word) is Role.PRODUCT or (sold and product > max(brand, model)):
            found.add(lexicon().same.get(word, word))
    return frozenset(found)


def drop_companies(words: Sequence[str]) -> Sequence[str]:
    """Return the words without those that only mark a brand as a company, if more follow: 吉利汽车帝豪, 长城汽车H6."""
    company, role = lexicon().company, roles().get
    short: dict[int, str] = {}
    for place, word in enumerate(words[:-1]):
        if word[-2:] in company and words[place + 1][0].isalnum():
            if role(word) is Role.BRAND:
                short[place] = word[:-2]
            elif word in company and place and role(words[place - 1]) is Role.BRAND:
                short[place] = _MARK
    return [short.get(place, word) for place, word in enumerate(words)] if short else words


def drop_forms(words: Sequence[str]) -> Sequence[str]:
    """Return the words of a short name without its colour, edition, year and form: iPhone 17 Air 天蓝色, 豆包App.

    Colour, edition and year stay if only a brand is left otherwise.
    """
    if not 1 < len(words) <= LONGEST_NAME:
        return words
    known = lexicon().forms
    forms = {
        place
        for place, word in enumerate(words)
        if place and (word in known or (word[-1] in _FORM_ENDS and _is_form(words[place - 1], word)))
    }
    if not forms:
        return words
    # A colour of two words (星宇橙色) goes whole.
    forms |= {place - 1 for place in forms if place > 1 and _is_shade(*words[place - 2 : place + 1])}
    left = [_MARK if place in forms else word for place, word in enumerate(words)]
    named = [word for word in left if rank_of(word, after_name=True) is not None]
    if named and not all(map(is_brand, named)):
        return left
    return [_MARK if place and word in known else word for place, word in enumerate(words)]


def _is_shade(model: str, word: str, colour: str) -> bool:
    return look_of(model) is Look.MODEL and word not in roles() and _COLOUR.fullmatch(colour) is not None


def _is_form(before: str, word: str) -> bool:
    """Return True for a colour, an edition or a form of a product."""
    if YEAR.fullmatch(word):
        return True
    if word in lexicon().models or roles().get(word) not in (None, Role.NOISE):
        return False
    if look_of(before) is Look.MODEL and rarity(word) is None and _SHADE.fullmatch(word):
        return True
    return _COLOUR.fullmatch(word) is not None or _EDITION.fullmatch(word) is not None


def _place_of_platform(words: Sequence[str]) -> int | None:
    """Return the place of a platform that opens a name and stands for a brand: 京东物流, but not 京东蒙牛纯牛奶."""
    if len(words) <= LONGEST_NAME and not any(roles().get(word) in _BRANDED for word in words):
        for place, word in enumerate(words):
            if roles().get(word) is Role.PLATFORM:
                return place
            if word[0].isalnum() and roles().get(word) is not Role.NOISE:
                return None
    return None


def _opens_with_number(words: Sequence[str]) -> bool:
    """Return True if a name is a number and the kind of goods: the number is its brand (502胶水, but not 24色彩笔)."""
    if len(words) > LONGEST_NAME or not _NUMBER_AND_KIND.fullmatch(" ".join(words)):
        return False
    return not any(roles().get(word) in _NAMES for word in words)


def candidates(words: Sequence[str]) -> dict[int, int | None]:
    """Return the places of the words that may be keywords, and their ranks by role and look.

    A long number (the model of some shop's goods) and what may be packaging (礼盒) have no rank: they take part only
    where the classifier decides.
    """
    found: dict[int, int | None] = {}
    after_name = after_brand = False
    platform = _place_of_platform(words)
    for place, word in enumerate(words):
        if roles().get(word) is Role.PLATFORM and place != platform:
            after_name = after_brand = False
            continue
        rank = rank_of(word, after_name=after_name)
        if place == 0 and _opens_with_number(words):
            rank = BRAND_RANK
        if (
            rank == SINGLE_RANK
            and after_brand
            and (place + 1 == len(words) or not words[place + 1].isalnum())
        ):
            rank = BRAND_RANK + 1  # 比亚迪汉
        if rank is None and after_name and place + 1 == len(words) and _YEAR.fullmatch(word):
            rank = BRAND_RANK + 1  # 标致2008
        line = after_brand and rank is not None and roles().get(word) is None  # 李宁飞电3
        after_brand = rank == BRAND_RANK
        after_name = line or names_model(word, rank)
        number = word[:1].isdigit() and _LONG_NUMBER.fullmatch(word)
        if rank is not None or number or word in lexicon().goods:
            found[place] = rank
    return found


def scores_of(words: Sequence[str], odds: Mapping[int, Odds]) -> dict[str, float]:
    """Return how likely each candidate identifies the product, once at its best; 1 is just enough."""
    scores: dict[str, float] = {}
    name = len(words) <= LONGEST_NAME
    likeliest = (_SOME_PRODUCT, "")
    for place, chances in odds.items():
        score = sum(chances) / _ENOUGH
        if name:
            score = max(score, *map(truediv, chances, _ENOUGH_OF_NAME))
        word = words[place]
        if score > scores.get(word, 0.0):
            scores[word] = score
        likeliest = max(likeliest, (chances[1], word))
    if name:
        named = roles().get(words[0]) is Role.BRAND or bool(numbered_brand(words[0]))
        models = {word for word in scores if word.isascii() and not word.isdigit()}  # 捷豹XEL
        models |= {word for word in scores if numbered_brand(word)}
        kept = models.union(filter(_is_new, scores) if named else ())
        scores |= {word: max(scores[word], 1.0) for word in kept}
    elif word := likeliest[1]:
        scores[word] = max(scores[word], 1.0)
    for word in _proper_name(words):
        scores[word] = 1.0 + max(scores.get(word, 0.0), 1.0)
    return scores


def _is_new(word: str) -> bool:
    """Whether no dictionary has a word: in a name that opens with a brand, it is a name itself (广汽三菱 劲炫)."""
    return len(word) > 1 and not word.isascii() and rarity(word) is None


def least_score(scores: Mapping[str, float]) -> float:
    """The score that is enough for a keyword: 1, or that of the second best, so that two words stay."""
    return min(1.0, *sorted(scores.values())[-2:])


def _proper_name(words: Sequence[str]) -> list[str]:
    """The words of our dictionary that stand in one run with a brand or line: 蒙牛特仑苏纯牛奶."""
    found: list[str] = []
    run: list[str] = []
    branded = False
    for word in [*words, _MARK]:
        role = roles().get(word)
        if role in _PROPER:
            run.append(word)
            branded = branded or role in _BRANDED
        elif role is not Role.NOISE:
            if branded:
                found += run
            run, branded = [], False
    return found
