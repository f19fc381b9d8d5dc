"""Explains the keywords of a name: every word of it with its role, its score and what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from splitter.asides import asides_in, without_asides
from splitter.keywords import (
    MAX_KEYWORDS,
    candidates,
    chosen,
    keyword_sets_of,
    least_score,
    parted_words,
    scores_of,
    taken_at_its_word,
    without_companies,
)
from splitter.lexicon import Role, lexicon, roles
from splitter.normalize import amounts_in, normalize
from splitter.word_weight import Identity, identity_of


@dataclass(frozen=True, slots=True)
class WordChoice:
    """A word of a name and what became of it.

    Attributes:
        role: from our dictionary (brand, series, product, trait, place, noise); otherwise what it looks like, with
            a question mark; ``amount`` or ``aside`` for what is taken out before words are cut.
        score: how likely it identifies the product by the classifier, where 1 is enough; None for what is no candidate.
        kept: whether it is a keyword of the first query.
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
        ProductNameError: the name gives no keyword; see `keyword_sets_of`.
    """
    keywords, *later = keyword_sets_of(name)
    text = normalize(name.strip())
    bare = without_asides(text)
    taken = bare if chosen(bare) else text
    words = parted_words(taken)
    choices = list(_words(words, keywords, later))
    named = {_spelled(word).casefold() for word in without_companies(words)}
    added = [
        WordChoice(word, Role.BRAND, None, True, "the name leaves its brand out")
        for word in keywords
        if word.casefold() not in named
    ]
    asides = asides_in(text) if taken == bare else []
    apart = [WordChoice(aside, "aside", None, False, "stands in brackets") for aside in asides]
    amounts = [
        WordChoice(amount, "amount", None, False, "a size, count, stage or date")
        for amount in dict.fromkeys(amounts_in(taken))
    ]
    return [*added, *choices, *apart, *amounts]


def _words(
    words: Sequence[str], keywords: Sequence[str], later: Sequence[Sequence[str]]
) -> Iterator[WordChoice]:
    shown = without_companies(words)
    places, ranks = candidates(shown)
    plain = taken_at_its_word(
        [shown[place] for place, rank in zip(places, ranks, strict=True) if rank is not None]
    )
    scores = scores_of(shown, places)
    enough = least_score(scores)
    kept_words = {keyword.casefold() for keyword in keywords}
    seen: set[str] = set()
    for written, word in zip(words, shown, strict=True):
        if not written[0].isalnum() or written.casefold() in seen:
            continue
        seen.add(written.casefold())
        spelled = _spelled(word)
        kept = spelled.casefold() in kept_words
        if kept:
            why = _why_kept(plain, roles().get(word))
        elif word != written and word not in scores:
            why = "only says that the brand is a company"
        elif word not in scores:
            why = "promotion, packaging, or too little by itself"
        else:
            told = (_another_keyword(spelled, keywords), _asked_later(spelled, later))
            why = "; ".join(filter(None, told)) or _why_dropped(
                keywords, likely=plain or scores[word] >= enough
            )
        if spelled != written and kept:
            why += f"; written as {spelled}"
        yield WordChoice(written, _role(written), _score(scores, word), kept, why)


def _spelled(word: str) -> str:
    return lexicon().same.get(word, word)


def _why_kept(plain: bool, role: Role | None) -> str:
    if plain:
        return "the name has few words" if role is None else f"known as {role}"
    return "likely enough" if role is None else f"known as {role}; likely enough"


def _another_keyword(word: str, keywords: Sequence[str]) -> str:
    """How a keyword stands for a word that is none; empty where none does."""
    around = next((keyword for keyword in keywords if word in keyword and word != keyword), None)
    if around:
        return f"{around} contains it"
    brand = lexicon().brand_named.get(word.lower(), word)
    return f"another name of {brand}" if brand != word else ""


def _asked_later(word: str, later: Sequence[Sequence[str]]) -> str:
    """The number of the first later query that asks for a word; empty where none does."""
    for number, keywords in enumerate(later, 2):
        if word.casefold() in (keyword.casefold() for keyword in keywords):
            return f"asked in query {number}"
    return ""


def _why_dropped(keywords: Sequence[str], *, likely: bool) -> str:
    if not likely:
        return "unlikely to identify the product"
    if len(keywords) == MAX_KEYWORDS:
        return f"{MAX_KEYWORDS} others weigh more"
    return "a place, a number or a single character beside better words"


def _role(word: str) -> str:
    role = roles().get(word)
    if role is not None:
        return role
    if word.lower() in lexicon().noise:
        return Role.NOISE
    identity = identity_of(word)
    return "other" if identity is Identity.ATTRIBUTE else f"{identity.name.lower()}?"


def _score(scores: Mapping[str, float], word: str) -> float | None:
    return round(scores[word], 2) if word in scores else None
