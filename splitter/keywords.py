"""Choose the words of a product name that must all be on a page about it (AND keywords).

The words of a name are cut, then sorted out: amounts, promotion, packaging and asides in brackets go, spellings of one
thing become one, a brand the name leaves out is put in front. What remains keeps its order. A short name, and one whose
words our dictionary knows, is taken at its word. Of a longer one (a shop's title) the few words stay that identify the
product: brand, line or model, and kind of goods; a search for a dozen words at once finds nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from splitter.candidates import (
    candidates,
    cut_words,
    drop_companies,
    drop_forms,
    least_score,
    odds_of,
    product_words,
    scores_of,
)
from splitter.catalog.names import Category
from splitter.category import guess_category
from splitter.errors import ProductNameError
from splitter.keyword_classifier import Odds
from splitter.lexicon import Role, is_brand, lexicon, roles
from splitter.normalize import drop_asides, normalize
from splitter.word_weight import BRAND_RANK, PLACE_RANK, SINGLE_RANK
from splitter.words import greatest_rarity, rarity

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


@dataclass(frozen=True, slots=True)
class KeywordChoice:
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


def choose(name: str) -> KeywordChoice:
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
            "the product name {shown!r} leaves no keyword (sizes, counts, promotion and packaging don't "
            "count); name brand and product, or give keywords with --keywords",
            shown=shown,
        )
    return chosen


def _check_name(name: str) -> str:
    """Return a name without blanks at its ends, if its length may be."""
    shown = name.strip()
    if not shown:
        raise ProductNameError("the product name is empty; write one such as 光明高钙牛奶")
    if len(shown) > MAX_NAME:
        raise ProductNameError(
            "the product name {name}... has {n} characters; write at most {most}",
            name=shown[:20],
            n=len(shown),
            most=MAX_NAME,
        )
    return shown


def _overridden(name: str, override: Sequence[str]) -> tuple[str, ...]:
    words: dict[str, str] = {}
    for word in map(normalize, override):
        if word:
            words.setdefault(word.casefold(), word)
    if not words:
        raise ProductNameError("no keyword is given for {name!r}; write --keywords 光明,牛奶", name=name)
    return tuple(words.values())


def _choose(text: str) -> KeywordChoice:
    cut = cut_words(text)
    words = drop_forms(drop_companies(cut))
    ruled = [(words[place], rank) for place, rank in candidates(words).items() if rank is not None]
    at_its_word = is_taken_at_its_word([word for word, _ in ruled])
    odds = {} if at_its_word else odds_of(words)
    found = _once(ruled if at_its_word else _likely(words, odds))
    kinds = product_words(words, odds) & found.keys()
    every = _add_brands(found, text)
    queries = _split_by_goods(every, kinds)
    return KeywordChoice(text, cut, words, at_its_word, (*queries, *_add_second(found, every, queries[:1])))


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


def _split_by_goods(every: dict[str, float], kinds: frozenset[str]) -> tuple[tuple[str, ...], ...]:
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


def is_taken_at_its_word(words: Sequence[str]) -> bool:
    """Whether all candidates of a name are keywords: they are few, or our dictionary knows them all."""
    known = roles().get
    most = MAX_KEYWORDS if all(map(known, words)) else _FEW
    if len(words) > most and is_brand(words[0]) and known(words[-1]) is Role.PRODUCT:
        most += 1  # words between brand and kind of goods name a variety: 康师傅老坛酸菜牛肉面
    return len(words) <= most or len({word.casefold() for word in words}) <= most


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
        category: steers it to sites; `None`: unknown.
    """

    product: str
    keywords: KeywordSet
    aliases: tuple[KeywordSet, ...] = ()
    category: Category | None = None

    @property
    def keyword_sets(self) -> tuple[KeywordSet, ...]:
        """The name's keywords, then those of the aliases; sets of the same words only once."""
        different: dict[frozenset[str], KeywordSet] = {}
        for words in (self.keywords, *self.aliases):
            different.setdefault(frozenset(words), words)
        return tuple(different.values())


def product_query(name: str, *, keywords: Sequence[str] = (), aliases: Sequence[str] = ()) -> ProductQuery:
    """Make the query of a product name, with the category that the name suggests.

    Args:
        name: as a person wrote it.
        keywords: given instead of those found in the name.
        aliases: alternative names of the product.

    Raises:
        ProductNameError: the name or an alias is empty, over 200 characters, or leaves no keyword.
    """
    own = (keywords_of(name, override=keywords),) if keywords else keyword_sets_of(name)
    others = (*own[1:], *(keywords_of(alias) for alias in aliases))
    return ProductQuery(name.strip(), own[0], others, guess_category(name, own[0]))
