"""Choose the words of a product name that must all be on a page about it (AND keywords).

The words of a name are cut, then sorted out: amounts, promotion, packaging and asides in brackets go, spellings of one
thing become one, a brand the name leaves out is put in front. What remains keeps its order. A short name, and one whose
words our dictionary knows, is taken at its word. Of a longer one (a shop's title) the few words stay that identify the
product: brand, line or model, and kind of goods; a search for a dozen words at once finds nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import truediv

from splitter.errors import ProductNameError
from splitter.keyword_classifier import Odds, classifier
from splitter.lexicon import Role, is_brand, lexicon, roles
from splitter.normalize import drop_amounts, drop_asides, normalize
from splitter.whole_words import LONGEST_NAME, YEAR, join_models, whole_words
from splitter.word_weight import BRAND_RANK, PLACE_RANK, SINGLE_RANK, Look, look_of, names_model, rank_of
from splitter.words import greatest_rarity, rarity, words_of

MAX_NAME = 200
"""Longest name taken, in characters."""

MAX_KEYWORDS = 5
"""Most keywords made from a name by itself (``--keywords`` may give more)."""

MAX_PRODUCTS = 8
"""Most product words of a name that are asked by, each in a query of its own."""

MAX_MORE = 4
"""Most other words of a name that its first query has no room for and that are asked in queries of their own."""

_NEARLY = 1.5
# Product words whose ranks are at most this many times the best one's: the most common stands for the name.

_FEW = 3  # a name of at most this many words was chosen by a person: all of them stay

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
_PROPER = (*_BRANDED, Role.PRODUCT, Role.TRAIT)
_MARK = ","


@dataclass(frozen=True, slots=True)
class Choice:
    """The keywords of a name, and what decided about each of its words (`splitter.explain` shows it).

    Attributes:
        text: the normalized name without asides, or with them if the name has no other words.
        cut: its words and marks.
        words: the same; a mark stands for a word that is no candidate in its place: one that only marks a brand as
            a company, or a colour, an edition or a form of the product.
        at_its_word: every candidate is a keyword; the classifier is not used.
        queries: the keywords of the name, then those of its other queries; none if nothing is left.
    """

    text: str
    cut: Sequence[str]
    words: Sequence[str]
    at_its_word: bool
    queries: tuple[tuple[str, ...], ...]


def keywords_of(name: str, *, override: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the AND keywords of a product name.

    Args:
        name: as a person wrote it.
        override: the keywords themselves, if a person gave them: written the one way, otherwise untouched.

    Returns:
        At least one keyword, none empty, none twice, in the order of the name; an added brand first.

    Raises:
        ProductNameError: the name is empty, over 200 characters, or leaves no keyword.
    """
    return _overridden(_check_name(name), override) if override else choose(name).queries[0]


def keyword_sets_of(name: str) -> tuple[tuple[str, ...], ...]:
    """Return the keywords of a name, then those of its other queries: the same but for one word.

    A shop's title holds several words for one thing (光波炉, 微波炉) and two names of a brand (雀巢, nestle), and few
    pages hold them all; so each is asked by itself.

    Raises:
        ProductNameError: as `keywords_of`.
    """
    return choose(name).queries


def choose(name: str) -> Choice:
    """Choose the keywords of a name.

    Raises:
        ProductNameError: as `keywords_of`.
    """
    shown = _check_name(name)
    text = normalize(shown)
    chosen = _choose(drop_asides(text))
    if not chosen.queries:
        chosen = _choose(text)
    if not chosen.queries:
        raise ProductNameError(
            f"the product name {shown!r} leaves no keyword (sizes, counts, promotion and packaging "
            "don't count); name brand and product, or give keywords with --keywords"
        )
    return chosen


def _check_name(name: str) -> str:
    """Return a name without blanks at its ends, if its length may be."""
    shown = name.strip()
    if not shown:
        raise ProductNameError("the product name is empty; write one such as 光明高钙牛奶")
    if len(shown) > MAX_NAME:
        raise ProductNameError(
            f"the product name {shown[:20]}... has {len(shown)} characters; write at most {MAX_NAME}"
        )
    return shown


def _overridden(name: str, override: Sequence[str]) -> tuple[str, ...]:
    words: dict[str, str] = {}
    for word in map(normalize, override):
        if word:
            words.setdefault(word.casefold(), word)
    if not words:
        raise ProductNameError(f"no keyword is given for {name!r}; write --keywords 光明,牛奶")
    return tuple(words.values())


def _choose(text: str) -> Choice:
    cut = cut_words(text)
    words = drop_forms(drop_companies(cut))
    ruled = [(words[place], rank) for place, rank in candidates(words).items() if rank is not None]
    at_its_word = is_taken_at_its_word([word for word, _ in ruled])
    odds = {} if at_its_word else odds_of(words)
    found = _once(ruled if at_its_word else _likely(words, odds))
    kinds = product_words(words, odds) & found.keys()
    every = _add_brands(found, text)
    queries = _by_goods(every, kinds)
    return Choice(text, cut, words, at_its_word, (*queries, *_add_second(found, every, queries[:1])))


def _likely(words: Sequence[str], odds: Mapping[int, Odds]) -> list[tuple[str, float]]:
    """Return the words that are likely enough by the classifier, with their ranks: 0 comes first."""
    scores = scores_of(words, odds)
    enough = least_score(scores)
    return [
        # If there are too many, a single character goes before longer words.
        (word, 1.0 / (1.0 + score) + (len(word) == 1 and not word.isascii()))
        for word, score in scores.items()
        if score >= enough
    ]


def _by_goods(every: dict[str, float], kinds: frozenset[str]) -> tuple[tuple[str, ...], ...]:
    """The best of the words, with each of the product words (`kinds`) in a query of its own."""
    ranked = _drop_contained(every.copy())
    products = [word for word in ranked if word in kinds and _is_long(word)]
    products = sorted(products, key=ranked.__getitem__)[:MAX_PRODUCTS]
    short = [
        word
        for word in every
        if word in kinds and word not in products and (word not in ranked or not _is_long(word))
    ]
    asked = [*products, *sorted(short, key=every.__getitem__)][:MAX_PRODUCTS]
    others = {word: rank for word, rank in ranked.items() if word not in kinds}
    if len(asked) < 2 or not products:
        words = _best(ranked)
        queries = [words] if words else []
    else:
        least = _NEARLY * ranked[products[0]]
        known = roles()
        products.sort(
            key=lambda one: (
                ranked[one] > least,
                known.get(one) is not Role.PRODUCT,
                rarity(one) or greatest_rarity(),
            )
        )
        rest = set(_best(others, MAX_KEYWORDS - 1))
        asked[: len(products)] = products
        queries = [tuple(word for word in every if word in rest or word == one) for one in asked]
    return (*queries, *_add_queries(queries, others, every, asked[:1]))


def _add_queries(
    queries: Sequence[tuple[str, ...]],
    others: Mapping[str, float],
    every: Iterable[str],
    product: Sequence[str],
) -> list[tuple[str, ...]]:
    """Queries for brands and models that the first one has no room for (of a part that fits many devices): each in the
    place of the word that ranks last there, so that no query asks for less than the first."""
    if not queries:
        return []
    more = [word for word in others if word not in queries[0] and _is_long(word)]
    more = sorted(more, key=others.__getitem__)[:MAX_MORE]
    kept = sorted((word for word in queries[0] if word in others), key=others.__getitem__)[:-1]
    return [tuple(word for word in every if word in (*kept, *product, one)) for one in more]


def _add_second(
    found: Iterable[str], every: Mapping[str, float], queries: Iterable[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """Return the queries with the brand's second name, if the name has one: nestle & 奶粉 for 雀巢 & 奶粉."""
    named = lexicon().brand_named
    second = {named[word.lower()]: word for word in found if word not in every}
    return [tuple(second.get(one, one) for one in words) for words in queries if second.keys() & set(words)]


def _is_long(word: str) -> bool:
    return len(word) > 1 or word.isascii()


def name_words(text: str) -> list[str]:
    """The whole words of a name (normalized) and the marks between them, amounts left out."""
    return join_models(whole_words(words_of(drop_amounts(text))))


def cut_words(text: str) -> list[str]:
    """The words of a name, as `name_words`; of a shop's title, compounds that are less likely than their head are two
    words: of 水果罐头, people mark 水果 and 罐头."""
    words = name_words(text)
    if len(words) <= LONGEST_NAME:
        return words
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


def _standing_platform(words: Sequence[str]) -> bool:
    """Return True if the first word is a platform that stands for a brand: 京东物流, but not 京东蒙牛纯牛奶."""
    opens = 0 < len(words) <= LONGEST_NAME and roles().get(words[0]) is Role.PLATFORM
    return opens and not any(roles().get(word) in _BRANDED for word in words)


def candidates(words: Sequence[str]) -> dict[int, int | None]:
    """Return the places of the words that may be keywords, and their ranks by role and look.

    A long number (the model of some shop's goods) and what may be packaging (礼盒) have no rank: they take part only
    where the classifier decides.
    """
    found: dict[int, int | None] = {}
    after_name = after_brand = False
    platform = _standing_platform(words)
    for place, word in enumerate(words):
        if roles().get(word) is Role.PLATFORM and (place or not platform):
            after_name = after_brand = False
            continue
        rank = rank_of(word, after_name=after_name)
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


def is_taken_at_its_word(words: Sequence[str]) -> bool:
    """Whether all candidates of a name are keywords: they are few, or our dictionary knows them all."""
    known = roles().get
    most = MAX_KEYWORDS if all(map(known, words)) else _FEW
    if len(words) > most and is_brand(words[0]) and known(words[-1]) is Role.PRODUCT:
        most += 1  # words between brand and kind of goods name a variety: 康师傅老坛酸菜牛肉面
    return len(words) <= most or len({word.casefold() for word in words}) <= most


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
        named = roles().get(words[0]) is Role.BRAND
        latin = {word for word in scores if word.isascii() and not word.isdigit()}  # 捷豹XEL
        kept = latin.union(filter(_is_new, scores) if named else ())
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


def _once(ranked: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Each word once, in its one spelling."""
    same = lexicon().same
    once: dict[str, float] = {}
    seen: set[str] = set()
    for written, rank in ranked:
        word = same.get(written, written)
        if (folded := word.casefold()) not in seen:
            seen.add(folded)
            once[word] = rank
    return once


# --- the choice among them ----------------------------------------------------------------------------------


def _add_brands(ranked: dict[str, float], text: str) -> dict[str, float]:
    """The words, after the brands that the name leaves out; of many, without a brand's second name."""
    known = lexicon()
    if len(ranked) > _FEW:
        named = known.brand_named
        ranked = {
            word: rank
            for word, rank in ranked.items()
            if (name := named.get(word.lower(), word)) == word or name not in ranked
        }
    brands = [brand for word in ranked if (brand := known.brand_of.get(word))]
    if not brands:
        return ranked
    written = text.lower()
    missing = {brand: 0.0 for brand in brands if not any(name in written for name in known.names_of[brand])}
    return {**missing, **ranked}


def _drop_contained(ranked: dict[str, float]) -> dict[str, float]:
    """The words without those that another one contains: a page with 纯牛奶 has 牛奶 too."""
    longer = [word for word in ranked if len(word) > 2 and not word.isascii()]
    if not longer:
        return ranked
    for word, rank in list(ranked.items()):
        around = [other for other in longer if word in other and word != other]
        if around and not word.isascii():
            del ranked[word]
            for other in around:
                if other in ranked:
                    ranked[other] = min(ranked[other], rank)
    return ranked


def _best(ranked: Mapping[str, float], most: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return at most `most` words, the best ranks first; places and single characters only if there are few others."""
    if len(ranked) <= most and max(ranked.values(), default=0) < SINGLE_RANK:
        return tuple(ranked)
    low = {SINGLE_RANK: not any(rank < SINGLE_RANK for rank in ranked.values())}
    low[PLACE_RANK] = not any(rank == BRAND_RANK or word.isascii() for word, rank in ranked.items())
    words = [word for word, rank in ranked.items() if rank < SINGLE_RANK or low[int(rank)]]
    if len(words) > most:
        first = set(sorted(words, key=ranked.__getitem__)[:most])
        words = [word for word in words if word in first]
    return tuple(words)


# --- the keyword sets of a product ---------------------------------------------------------------------------

KeywordSet = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ProductQuery:
    """A product with the AND keywords it is searched by.

    Attributes:
        product: its name, as written.
        keywords: of the name; at least one.
        aliases: the keywords with another product word (`keyword_sets_of`), and of each alternative name its own. Each
            is searched by itself, on every site, within the product's task.
    """

    product: str
    keywords: KeywordSet
    aliases: tuple[KeywordSet, ...] = ()

    @property
    def keyword_sets(self) -> tuple[KeywordSet, ...]:
        """The name's keywords, then those of the aliases; sets of the same words only once."""
        different: dict[frozenset[str], KeywordSet] = {}
        for words in (self.keywords, *self.aliases):
            different.setdefault(frozenset(words), words)
        return tuple(different.values())


def product_query(name: str, *, keywords: Sequence[str] = (), aliases: Sequence[str] = ()) -> ProductQuery:
    """Makes a query of a product name.

    Args:
        name: as a person wrote it.
        keywords: given instead of those found in the name.
        aliases: alternative names of the product.

    Raises:
        ProductNameError: the name or an alias is empty, over 200 characters, or leaves no keyword.
    """
    own = (keywords_of(name, override=keywords),) if keywords else keyword_sets_of(name)
    return ProductQuery(name.strip(), own[0], (*own[1:], *(keywords_of(alias) for alias in aliases)))
