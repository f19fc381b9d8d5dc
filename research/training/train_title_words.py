"""Makes the table of `splitter.keyword_classifier`: what the words of public titles were marked as.

    python -m research.training.train_title_words ../shared/data splitter/data/title-words.txt

Words are cut as the classifier sees them, so ``splitter/data/join-weights.txt`` comes first. The same titles give the
same file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from research.training.public_titles import Marked, place_words, public_titles, run_training
from splitter.candidates import name_words
from splitter.normalize import drop_asides, normalize

ENOUGH = 3
"""A word seen less often is in the table without its share."""

LONGEST = 12
"""A longer word is not in the table."""

_COMMON = 1000  # a mark that fewer words have is one with the other rare ones
_RARE = "x"
_NONE, _PART = "O", "?"

_HEAD = """\
# What words were marked as in {titles} titles of GAIIC 2022, task 2 (JD), and how often of four times: see
# splitter/keyword_classifier.py. Made by `python -m research.training.train_title_words`; docs/keywords.md says from which files. No
# title is in here: only single words of at most {longest} characters.
"""


def marks_of_words(titles: Iterable[Marked]) -> dict[str, Counter[str]]:
    """How often each word has each mark."""
    found: dict[str, Counter[str]] = {}
    for one in titles:
        for word, place in place_words(one.title.text, name_words(drop_asides(normalize(one.title.text)))):
            if place is not None:
                found.setdefault(word.casefold(), Counter())[_mark(one, *place)] += 1
    return found


def _mark(one: Marked, begin: int, end: int) -> str:
    for first, last, mark in one.marks:
        if first < end and begin < last:
            return mark if first <= begin and end <= last else _PART
    return _NONE


def written(found: dict[str, Counter[str]], titles: int) -> str:
    """The text of the table."""
    every = Counter(mark for marks in found.values() for mark in marks.elements())
    lines: dict[str, list[str]] = {}
    for word, marks in sorted(found.items()):
        times = marks.total()
        if len(word) <= LONGEST and not word.isdigit():
            mark, most = min(marks.items(), key=lambda one: (-one[1], one[0]))
            shown = mark if every[mark] >= _COMMON else _RARE
            share = f"{4 * most // times}" if times >= ENOUGH else "rare"
            lines.setdefault(f"{shown} {share}", []).append(word)
    rows = ["\t".join((mark, *words)) for mark, words in sorted(lines.items())]
    return _HEAD.format(titles=titles, longest=LONGEST) + "\n".join(rows) + "\n"


def main(shared: Path, target: Path) -> None:
    """Counts the marks in the titles of a folder and writes the table."""
    titles = public_titles(shared)
    target.write_text(written(marks_of_words(titles), len(titles)), "utf-8")


if __name__ == "__main__":
    run_training(main)
