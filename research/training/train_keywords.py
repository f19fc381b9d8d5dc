"""Trains the weights of `splitter.keyword_classifier` on the gold titles that may be learned from.

    python -m research.training.train_keywords ../shared/data splitter/data/keyword-weights.txt

Multinomial logistic regression (`research.training.logistic`); ``splitter/data/join-weights.txt`` and ``title-words.txt``
come first. The same titles give the same file. The dairy titles take no part, so all of them can be scored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from research.tools.titles import PARTS, Title, conll, dairy
from research.training.logistic import fitted
from research.training.public_titles import place_words, run_training
from splitter.candidates import candidates, name_words
from splitter.keyword_classifier import (
    Odds,
    opening_trait,
    pair_traits,
    traits_beside,
    word_traits,
)
from splitter.normalize import drop_asides, normalize

LEAST, PENALTY = 3, 1.5
"""A trait seen less often than the first gets no weight."""

Example = tuple[list[str], int]
"""Traits of a word and its part: 0 brand, 1 product, 2 model, 3 none of them."""

_HEAD = """\
# Weights of splitter/keyword_classifier.py: trait, then for a brand, a product word, a model (0 stands for none of
# them). Made by `python -m research.training.train_keywords` from {titles} titles, all but the fifth for testing, of
# products/taobao_titles_ner.conll (data of Jie et al., NAACL 2019) and products/jd_titles_ner.conll (sample of GAIIC
# 2022, task 2), without the dairy titles. No title is in here: only lengths, roles, places, characters and single
# words that at least {least} titles have.
"""


def halves(shared: Path) -> tuple[list[Title], dict[str, list[Title]]]:
    """The titles to train on, and those to report figures of, by source."""
    products = shared / "products"
    whole = dairy(products / "dairy_titles_gold.jsonl")
    apart = {title.text for title in whole}
    read = {
        "taobao": [t for t in conll(products / "taobao_titles_ner.conll") if t.text not in apart],
        "jd": conll(products / "jd_titles_ner.conll"),
    }
    tuned = [title for titles in read.values() for title in titles if title.tuned_on]
    held = {source: [t for t in titles if not t.tuned_on] for source, titles in read.items()}
    return tuned, {**held, "dairy": whole}


def examples(titles: Iterable[Title]) -> list[Example]:
    """The words of titles that may be keywords, as the classifier sees them, with their gold parts."""
    found: list[Example] = []
    for title in titles:
        words = name_words(drop_asides(normalize(title.text)))
        places = list(candidates(words))
        placed = place_words(title.text, (words[place] for place in places))
        for (_, at), traits in zip(placed, traits_of(words, places), strict=True):
            if at is None:
                continue
            inside = (s.part for s in title.spans if s.begin <= at[0] and at[1] <= s.end)
            part = next(inside, None)
            found.append((traits, PARTS.index(part) if part else len(PARTS)))
    return found


def traits_of(words: Sequence[str], places: Sequence[int]) -> list[list[str]]:
    """What the words at some places are, by themselves and in the name.

    Args:
        words: every word and mark of a name, in order.
        places: where the words stand that may be keywords, ascending.
    """
    count = len(places)
    times = Counter(words[place].casefold() for place in places)
    endings = Counter(words[place][-1] for place in places)
    found: list[list[str]] = []
    for number, place in enumerate(places):
        word = words[place]
        here = [
            *word_traits(word),
            f"of {min(count // 3, 6)}",
            f"from start {min(number, 4)}",
            f"from end {min(count - 1 - number, 3)}",
            *(traits_beside("before", words[place - 1]) if place else ["before mark"]),
            *(traits_beside("after", words[place + 1]) if place + 1 < len(words) else ["after mark"]),
            *pair_traits(
                words[place - 1] if place else "", word, words[place + 1] if place + 1 < len(words) else ""
            ),
        ]
        if not number:
            here.append(opening_trait(word))
        if times[word.casefold()] > 1:
            here.append("again")
        if endings[word[-1]] > 1 and not word.isascii():
            here.append("ending again")
        found.append(here)
    return found


def train(found: Sequence[Example]) -> dict[str, Odds]:
    """The weights that fit examples; none of the parts has the weight 0."""
    weights = fitted(found, len(PARTS) + 1, least=LEAST, penalty=PENALTY)
    return {trait: (brand, product, model) for trait, (brand, product, model) in weights.items()}


def written(weights: dict[str, Odds], titles: int) -> str:
    """The text of the file of weights."""
    lines = ["\t".join((trait, *(f"{number:.2f}" for number in odds))) for trait, odds in weights.items()]
    return _HEAD.format(titles=titles, least=LEAST) + "\n".join(lines) + "\n"


def main(shared: Path, target: Path) -> None:
    """Trains on the titles in a folder and writes the weights."""
    tuned, _ = halves(shared)
    target.write_text(written(train(examples(tuned)), len(tuned)), "utf-8")


if __name__ == "__main__":
    run_training(main)
