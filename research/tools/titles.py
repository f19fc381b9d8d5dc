"""Product titles with gold spans: reading them, halving them, and scoring keywords against them.

The gold words of a title are its spans of a brand, a product or a model; places, amounts, colours, materials, uses
and the like are not. Labels: Taobao's ``HPPX`` brand, ``HCCX`` product, ``XH`` model; JD's 1 brand, 2 and 3 line and
model, 4 product, 37 brand and 38 and 39 model of the device that a part fits.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal

Part = Literal["brand", "product", "model"]
PARTS: tuple[Part, ...] = ("brand", "product", "model")
_PART_OF: dict[str, Part] = {
    "HPPX": "brand",
    "HCCX": "product",
    "XH": "model",
    "1": "brand",
    "37": "brand",
    "4": "product",
    "2": "model",
    "3": "model",
    "38": "model",
    "39": "model",
}


@dataclass(frozen=True, slots=True)
class Span:
    """A gold word: its characters ``[begin, end)`` and what it is."""

    begin: int
    end: int
    part: Part


@dataclass(frozen=True, slots=True)
class Title:
    """A title and its gold words, in their order."""

    text: str
    spans: tuple[Span, ...]
    others: tuple[tuple[int, int], ...] = ()
    """What else was marked (a colour, a place, an amount): characters ``[begin, end)``."""

    @property
    def tuned_on(self) -> bool:
        """Whether the chooser may learn from it; those that it may not are for testing, a fifth.

        By the SHA-256 of its letters: a title is for testing where the first byte is odd and the second leaves 0 or 1
        when divided by 5.
        """
        letters = "".join(char for char in self.text if char.isalnum())
        first, second = hashlib.sha256(letters.encode()).digest()[:2]
        return first % 2 == 0 or second % 5 > 1


def conll(path: Path) -> list[Title]:
    """The titles of a file with one character and its BIO label a line, and a blank line between titles."""
    return [title_of(text, marks) for text, marks in marked_lines(path.read_text("utf-8").split("\n"))]


def title_of(text: str, marks: Sequence[tuple[int, int, str]]) -> Title:
    """A title with its gold words, from all that was marked in it."""
    spans = tuple(Span(a, b, part) for a, b, label in marks if (part := _PART_OF.get(label)))
    return Title(text, spans, tuple((a, b) for a, b, label in marks if label not in _PART_OF))


def marked_lines(lines: Iterable[str]) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    """Texts and what is marked in them, from lines of a character and its BIO label, and a blank line between texts."""
    text: list[str] = []
    marks: list[tuple[int, int, str]] = []
    for written in chain(lines, ("",)):
        if line := written.rstrip("\r\n"):
            _take(marks, len(text), line[2:])
            text.append(line[0])
        elif text:
            yield "".join(text), marks
            text, marks = [], []


def _take(marked: list[tuple[int, int, str]], place: int, label: str) -> None:
    kind, _, name = label.partition("-")
    if not name:
        return
    if kind == "I" and marked and marked[-1][1:] == (place, name):
        marked[-1] = (marked[-1][0], place + 1, name)
    else:
        marked.append((place, place + 1, name))


def dairy(path: Path) -> list[Title]:
    """The dairy titles, a JSON object a line: ``title`` and ``spans`` of ``[begin, end, label, text]``."""
    lines = map(json.loads, path.read_text("utf-8").splitlines())
    return [
        Title(
            line["title"],
            tuple(Span(a, b, part) for a, b, label, _ in line["spans"] if (part := _PART_OF.get(label))),
        )
        for line in lines
    ]


@dataclass(slots=True)
class Score:
    """Keywords against gold words, added up over titles.

    A keyword is *right* where it stands inside a gold word (or is it), anywhere in the title. A gold word is
    *found* when a right keyword stands in it. A keyword that the title doesn't have (an added brand) counts nowhere. Case, width, blanks and
    punctuation don't matter.

    Attributes:
        keywords, right: keywords that the titles have, and those of them that are right.
        gold, found: gold words of each part (equal ones of a title once), and those found.
        titles: how many were added.
    """

    keywords: int = 0
    right: int = 0
    gold: dict[Part, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    found: dict[Part, int] = field(default_factory=lambda: dict.fromkeys(PARTS, 0))
    titles: int = 0

    def add(self, title: Title, words: Iterable[str]) -> None:
        """Counts the keywords of one title."""
        text, places = letters_of(title.text)
        hit: set[Span] = set()
        for word in words:
            occurrences = list(_occurrences(text, places, letters_of(word)[0]))
            if not occurrences:
                continue
            self.keywords += 1
            around = [span for span in title.spans for at in occurrences if _inside(at, span)]
            self.right += bool(around)
            hit.update(around)
        self.titles += 1
        for part in PARTS:
            self.gold[part] += len(_texts(title, part, title.spans))
            self.found[part] += len(_texts(title, part, hit))

    def figures(self) -> dict[str, float]:
        """Return precision, recall and F1 of words, recall of each part, and keywords a title."""
        precision = _share(self.right, self.keywords)
        recall = _share(sum(self.found.values()), sum(self.gold.values()))
        return {
            "keywords": round(self.keywords / max(1, self.titles), 2),
            "precision": round(precision, 3),
            "recall": round(recall, 3),
            "f1": round(2 * precision * recall / (precision + recall) if precision + recall else 0.0, 3),
            **{f"recall_{part}": round(_share(self.found[part], self.gold[part]), 3) for part in PARTS},
        }


def scored(titles: Sequence[Title], choose: Callable[[str], Iterable[str]]) -> dict[str, float]:
    """The figures of a way to choose keywords from titles."""
    score = Score()
    for title in titles:
        score.add(title, choose(title.text))
    return score.figures()


def found_whole(titles: Sequence[Title], choose: Callable[[str], Iterable[str]]) -> float:
    """Share of gold words whose every character stands in a keyword that is inside the word."""
    gold = found = 0
    for title in titles:
        words = [letters_of(word)[0] for word in choose(title.text)]
        for text in {letters_of(title.text[span.begin : span.end])[0] for span in title.spans} - {""}:
            places = range(len(text))
            covered = {at for word in words for run in _occurrences(text, places, word) for at in run}
            gold += 1
            found += len(covered) == len(text)
    return _share(found, gold)


def letters_of(text: str) -> tuple[str, list[int]]:
    """Letters and digits of a text the one way, and where in it each stands."""
    letters = [
        (char, place)
        for place, written in enumerate(text)
        for char in unicodedata.normalize("NFKC", written).casefold()
        if char.isalnum()
    ]
    return "".join(char for char, _ in letters), [place for _, place in letters]


def _occurrences(text: str, places: Sequence[int], word: str) -> Iterable[tuple[int, ...]]:
    begin = text.find(word) if word else -1
    while begin >= 0:
        yield tuple(places[begin : begin + len(word)])
        begin = text.find(word, begin + 1)


def _inside(occurrence: Sequence[int], span: Span) -> bool:
    return span.begin <= occurrence[0] and occurrence[-1] < span.end


def _texts(title: Title, part: Part, spans: Iterable[Span]) -> set[str]:
    words = {letters_of(title.text[span.begin : span.end])[0] for span in spans if span.part == part}
    return words - {""}


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
