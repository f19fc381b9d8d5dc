"""Explains the keywords of a name: every word of it with its role, its score and what became of it."""

from __future__ import annotations

from dataclasses import dataclass

from splitter.candidates import least_score, odds_of, scores_of
from splitter.errors import Message
from splitter.keywords import MAX_KEYWORDS, KeywordChoice, choose
from splitter.lexicon import Role, lexicon, roles
from splitter.normalize import amounts_in, asides_in, normalize
from splitter.word_weight import Identity, identity_of


@dataclass(frozen=True, slots=True)
class WordChoice:
    """A word of a name and what became of it.

    Attributes:
        role: from our dictionary (brand, series, product, trait, place, noise); otherwise what it looks like, with
            a question mark; ``amount`` or ``aside`` for text that is removed before words are cut.
        score: how likely it identifies the product by the classifier: 1 is enough. `None` if it is no candidate.
        kept: whether it is a keyword of the first query.
        why: why it is or is not.
    """

    word: str
    role: str
    score: float | None
    kept: bool
    why: Message


def explain(name: str) -> list[WordChoice]:
    """Explain every word of a name, in order: an added brand first, asides and amounts last.

    Raises:
        ProductNameError: the name gives no keyword.
    """
    made = choose(name)
    scores = scores_of(made.words, odds_of(made.words))
    words: dict[str, WordChoice] = {}
    for written, word in zip(made.cut, made.words, strict=True):
        if written[0].isalnum():
            kept, why = _outcome(made, written, word, scores)
            score = round(scores[word], 2) if word in scores else None
            words.setdefault(written.casefold(), WordChoice(written, _role(written), score, kept, why))
    named = {lexicon().same.get(word, word).casefold() for word in made.words}
    added = [word for word in made.queries[0] if word.casefold() not in named]
    text = normalize(name)
    apart = asides_in(text) if made.text != text else []
    amounts = dict.fromkeys(amounts_in(made.text))
    return [
        *(
            WordChoice(word, Role.BRAND, None, True, Message("the name leaves its brand out"))
            for word in added
        ),
        *words.values(),
        *(WordChoice(word, "aside", None, False, Message("stands in brackets")) for word in apart),
        *(
            WordChoice(word, "amount", None, False, Message("a size, count, stage or date"))
            for word in amounts
        ),
    ]


def _outcome(made: KeywordChoice, written: str, word: str, scores: dict[str, float]) -> tuple[bool, Message]:
    """Return whether a word is a keyword, and why it is or is not."""
    spelled = lexicon().same.get(word, word)
    queries = [[keyword.casefold() for keyword in query] for query in made.queries]
    number = next((n for n, query in enumerate(queries, 1) if spelled.casefold() in query), 0)
    if number == 1:
        if word in roles():
            why = Message("known as {role}", role=roles()[word])
        else:
            why = Message("the name has few words" if made.at_its_word else "likely enough")
        return True, why if spelled == written else Message("{why}; written as {word}", why=why, word=spelled)
    if word != written:
        why = Message("only says that the brand is a company, or which colour, edition or form it is")
    elif word not in scores:
        why = Message("promotion, packaging, or too little by itself")
    elif longer := [keyword for keyword in made.queries[0] if spelled in keyword]:
        why = Message("{word} contains it", word=longer[0])
    elif (brand := lexicon().brand_named.get(word.lower(), word)) != word:
        why = Message("another name of {brand}", brand=brand)
    elif number:
        why = Message("searched in query {n}", n=number)
    elif not made.at_its_word and scores[word] < least_score(scores):
        why = Message("unlikely to identify the product")
    elif len(made.queries[0]) == MAX_KEYWORDS:
        why = Message("{n} others weigh more", n=MAX_KEYWORDS)
    else:
        why = Message("a place, a number or a single character beside better words")
    return False, why


def _role(word: str) -> str:
    role = roles().get(word) or (Role.NOISE if word.lower() in lexicon().noise else None)
    if role is not None:
        return role
    identity = identity_of(word)
    return "other" if identity is Identity.ATTRIBUTE else f"{identity.name.lower()}?"
