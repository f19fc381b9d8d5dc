"""Trains the weights of `splitter.whole_words` on the word boundaries of the titles that may be learned from.

    python -m research.training.train_joins ../shared/data splitter/data/join-weights.txt

Two neighbours as jieba cuts them are one word where one marked span of a title holds both, and two where a span begins
or ends between them. Logistic regression (`research.training.logistic`): first on the public titles
(`research.training.public_titles`), then from there on the shared ones, whose words are marked finer. The same titles
give the same file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from research.tools.titles import Title
from research.training.logistic import fitted
from research.training.public_titles import place_words, public_titles, run_training
from splitter.normalize import drop_amounts, drop_asides, normalize
from splitter.whole_words import join_traits, may_join
from splitter.words import words_of

PENALTY = 2.0
"""On what differs from the weights of the public titles."""

LEAST = 3
"""A trait seen less often gets no weight."""

SMALL = 0.05
"""A smaller weight is left out."""

Example = tuple[list[str], bool]
"""Traits of two neighbours, and whether they are one word."""

_HEAD = """\
# Weights of splitter/whole_words.py: trait, then what it adds to the log odds that two neighbours are one word.
# Made by `python -m research.training.train_joins` from {pairs} pairs of neighbours in the titles that
# splitter/data/keyword-weights.txt names, without those for testing, and {others} in titles of GAIIC 2022, task 2 (JD).
"""


def pairs(titles: Iterable[Title]) -> Iterator[tuple[str, str, bool]]:
    """Neighbours of titles that may be one word, and whether they are; what people did not mark is left out."""
    for title in titles:
        words = words_of(drop_amounts(drop_asides(normalize(title.text))))
        spans = [*((span.begin, span.end) for span in title.spans), *title.others]
        before = ("", -1, -1)
        for word, place in place_words(title.text, words):
            if place is None:
                before = ("", -1, -1)
                continue
            first, last = place
            left, left_begin, left_end = before
            before = (word, first, last)
            if left and left_end == first and may_join(left, word):
                if any(a <= left_begin and last <= b for a, b in spans):
                    yield left, word, True
                elif any(first in span for span in spans):
                    yield left, word, False


def examples(titles: Iterable[Title]) -> list[Example]:
    """The traits of neighbours, and whether they are one word."""
    return [(join_traits(left, right), joined) for left, right, joined in pairs(titles)]


def train(found: Sequence[Example], before: Mapping[str, float] | None = None) -> dict[str, float]:
    """The weights that fit examples; `before`: those to begin with, of other examples."""
    parts = [(traits, 0 if joined else 1) for traits, joined in found]
    others = None if before is None else {trait: (weight,) for trait, weight in before.items()}
    weights = fitted(parts, 2, least=LEAST, penalty=PENALTY if before else 1.0, before=others)
    return {trait: weight for trait, (weight,) in weights.items()}


def written(weights: Mapping[str, float], count: int, others: int) -> str:
    """The text of the file of weights, without those that hardly tell."""
    lines = [f"{trait}\t{weight:.2f}" for trait, weight in weights.items() if abs(weight) >= SMALL]
    return _HEAD.format(pairs=count, others=others) + "\n".join(lines) + "\n"


def main(shared: Path, target: Path) -> None:
    """Trains on the titles in a folder and writes the weights."""
    from research.training.train_keywords import halves

    others = examples(one.title for one in public_titles(shared))
    found = examples(halves(shared)[0])
    target.write_text(written(train(found, train(others)), len(found), len(others)), "utf-8")


if __name__ == "__main__":
    run_training(main)
