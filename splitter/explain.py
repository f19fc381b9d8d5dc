"""Why a name has the keywords it has: every word of it with its role, its score and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from splitter.dictionary import Role
from splitter.finder import MAX_KEYWORDS, Finder, asides_in, finder, least_value, without_asides
from splitter.keywords import keywords_of
from splitter.measures import measures_in, without_measures
from splitter.normalize import normalize
from splitter.word_weight import Identity, identity_of
from splitter.words import words_of


@dataclass(frozen=True, slots=True)
class WordChoice:
    """A word of a name and what became of it.

    Attributes:
        role: from our dictionary (brand, series, product, trait, place, noise); otherwise what it looks like, with
            a question mark; ``amount`` or ``aside`` for what is taken out before words are cut.
        score: how much it tells in this name by the model, where 1 is enough; None for what is no candidate.
        kept: whether it is a keyword.
        why: why it is or is not.
    """

    word: str
    role: str
    score: float | None
    kept: bool
    why: str


def explain(name: str) -> list[WordChoice]:
    """Every word of a name, in order: an added brand first, asides and amounts last.

    Raises:
        ProductNameError: the name gives no keyword; see `keywords_of`.
    """
    keywords = keywords_of(name)
    known = finder()
    text = normalize(name.strip())
    bare = without_asides(text)
    taken = bare if known.find(bare) else text
    words = words_of(known.segmenter, without_measures(taken))
    choices = list(_words(known, words, keywords))
    spelled = (known.lexicon.same.get(word, word) for word in known.without_companies(words))
    named = {word.casefold() for word in spelled}
    added = [
        WordChoice(word, Role.BRAND, None, True, "the name leaves its brand out")
        for word in keywords
        if word.casefold() not in named
    ]
    asides = asides_in(text) if taken == bare else []
    apart = [WordChoice(aside, "aside", None, False, "stands in brackets") for aside in asides]
    amounts = [
        WordChoice(amount, "amount", None, False, "a size, count, stage or date")
        for amount in dict.fromkeys(measures_in(taken))
    ]
    return [*added, *choices, *apart, *amounts]


def _words(known: Finder, words: Sequence[str], keywords: Sequence[str]) -> Iterator[WordChoice]:
    shown = known.without_companies(words)
    places, ranks = known.candidates(shown)
    plain = known.plain([shown[place] for place, rank in zip(places, ranks, strict=True) if rank is not None])
    values = known.values(shown, places)
    enough = least_value(values)
    seen: set[str] = set()
    for written, word in zip(words, shown, strict=True):
        if not written[0].isalnum() or written.casefold() in seen:
            continue
        seen.add(written.casefold())
        spelled = known.lexicon.same.get(word, word)
        kept = spelled.casefold() in {keyword.casefold() for keyword in keywords}
        if kept:
            why = _kept(plain, known.roles.get(word))
        elif word != written and word not in values:
            why = "only says that the brand is a company"
        elif word not in values:
            why = "promotion, packaging, or too little by itself"
        else:
            why = _dropped(known, spelled, keywords, None if plain else values[word] / enough)
        if spelled != written and kept:
            why += f"; written as {spelled}"
        yield WordChoice(written, _role(known, written), _score(values, word), kept, why)


def _kept(plain: bool, role: Role | None) -> str:
    if plain:
        return "the name has few words" if role is None else f"known as {role}"
    return "tells enough" if role is None else f"known as {role}; tells enough"


def _dropped(known: Finder, word: str, keywords: Sequence[str], share: float | None) -> str:
    around = next((keyword for keyword in keywords if word in keyword and word != keyword), None)
    if around:
        return f"{around} contains it"
    if known.lexicon.brand_named.get(word.lower(), word) != word:
        return f"another name of {known.lexicon.brand_named[word.lower()]}"
    if share is not None and share < 1:
        return "tells too little"
    if len(keywords) == MAX_KEYWORDS:
        return f"{MAX_KEYWORDS} others tell more"
    return "a place, a number or a single character beside better words"


def _role(known: Finder, word: str) -> str:
    role = known.roles.get(word)
    if role is not None:
        return role
    if word.lower() in known.lexicon.noise:
        return Role.NOISE
    identity = identity_of(word)
    return "other" if identity is Identity.ATTRIBUTE else f"{identity.name.lower()}?"


def _score(values: dict[str, float], word: str) -> float | None:
    return round(values[word], 2) if word in values else None
