"""Trains the weights of `splitter.whole_words` on the word boundaries of the titles that may be learned from.

    python -m bench.tools.train_joins ../shared/data splitter/data/join-weights.txt

Two neighbours as jieba cuts them are one word where one marked span of a title holds both, and two where a span begins
or ends between them. Logistic regression, by stochastic gradient descent with AdaGrad's steps, as in
`bench.tools.train_keywords`; the same titles give the same file.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import exp, sqrt
from pathlib import Path

from bench.tools.titles import Title, letters_of
from splitter.asides import without_asides
from splitter.normalize import normalize, without_amounts
from splitter.whole_words import join_traits, may_join
from splitter.words import words_of

EPOCHS, STEP, PENALTY, SEED = 5, 0.2, 3e-4, 0
LEAST = 3
"""A trait seen less often gets no weight."""

Example = tuple[list[str], bool]
"""Traits of two neighbours, and whether they are one word."""

_HEAD = """\
# Weights of splitter/whole_words.py: trait, then what it adds to the log odds that two neighbours are one word.
# Made by `python -m bench.tools.train_joins` from {pairs} pairs of neighbours in the titles that
# splitter/data/keyword-weights.txt names, without those for testing.
"""


def pairs(titles: Iterable[Title]) -> Iterator[tuple[str, str, bool]]:
    """Neighbours of titles that may be one word, and whether they are; what people did not mark is left out."""
    for title in titles:
        words = words_of(without_amounts(without_asides(normalize(title.text))))
        text, at = letters_of(title.text)
        spans = [*((span.begin, span.end) for span in title.spans), *title.others]
        begin, before = 0, ("", -1, -1)
        for word in words:
            letters = letters_of(word)[0]
            here = text.find(letters, begin) if letters else -1
            if here < 0:
                before = ("", -1, -1)
                continue
            begin = here + len(letters)
            first, last = at[here], at[begin - 1] + 1
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


def train(found: Sequence[Example]) -> dict[str, float]:
    """The weights that fit examples."""
    seen = Counter(trait for traits, _ in found for trait in traits)
    rows = [([trait for trait in traits if seen[trait] >= LEAST], joined) for traits, joined in found]
    weights = {trait: 0.0 for trait, times in seen.items() if times >= LEAST}
    squares = dict.fromkeys(weights, 0.1)
    order = random.Random(SEED)
    for _ in range(EPOCHS):
        order.shuffle(rows)
        for traits, joined in rows:
            error = 1 / (1 + exp(-sum(weights[trait] for trait in traits))) - joined
            for trait in traits:
                slope = error + PENALTY * weights[trait]
                squares[trait] += slope * slope
                weights[trait] -= STEP * slope / sqrt(squares[trait])
    return dict(sorted(weights.items()))


def written(weights: Mapping[str, float], count: int) -> str:
    """The text of the file of weights."""
    lines = [f"{trait}\t{weight:.2f}" for trait, weight in weights.items()]
    return _HEAD.format(pairs=count) + "\n".join(lines) + "\n"


def main(shared: Path, target: Path) -> None:
    """Trains on the titles in a folder and writes the weights."""
    from bench.tools.train_keywords import halves

    found = examples(halves(shared)[0])
    target.write_text(written(train(found), len(found)), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("write: python -m bench.tools.train_joins SHARED_DATA WEIGHTS_FILE")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
