"""Marked titles of shops from public repositories, which lie beside the shared titles and are not part of this project.

``products/public/OWNER+NAME/PATH`` under the shared data. The titles are those of GAIIC 2022, task 2 (JD), as
lylcst/GAIIC_project_NER has them: 4,000 marked by people, and 20,000 marked by a model that was trained on people's
marks. Every title of the contest's sample is left out, and so is each of the shared titles: what is for testing there,
or set aside from it, is never learned from.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from zipfile import ZipFile

from research.tools.titles import Title, conll, dairy, letters_of, marked_lines, title_of

_CONTEST = Path("lylcst+GAIIC_project_NER")
BY_PEOPLE = _CONTEST / "GAIIC_track2_baseline/datasets/JDNER/dev_split.txt"
BY_MODEL = _CONTEST / "data/orther/data.zip"
SAMPLE = Path("yanqiangmiffy+Product-Entity-Recognition/ner-camp/code/4-bert/train_500.txt")
"""Of which the shared titles of JD are a part."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A title, and all that was marked in it: characters ``[begin, end)`` and the mark."""

    title: Title
    marks: tuple[tuple[int, int, str], ...]


def public_titles(shared: Path) -> list[Marked]:
    """The titles, each once.

    Raises:
        FileNotFoundError: one of the files is not there; ``docs/keywords.md`` says where they come from.
    """
    folder = shared / "products" / "public"
    left_out = {letters_of(title.text)[0] for title in _left_out(shared)}
    found: list[Marked] = []
    for text, marks in _marked(folder):
        letters = letters_of(text)[0]
        if letters not in left_out:
            left_out.add(letters)
            found.append(Marked(title_of(text, marks), tuple(marks)))
    return found


def _left_out(shared: Path) -> Iterator[Title]:
    products = shared / "products"
    yield from conll(products / "public" / SAMPLE)
    yield from conll(products / "jd_titles_ner.conll")
    yield from conll(products / "taobao_titles_ner.conll")
    yield from dairy(products / "dairy_titles_gold.jsonl")


def _marked(folder: Path) -> Iterator[tuple[str, list[tuple[int, int, str]]]]:
    with (folder / BY_PEOPLE).open(encoding="utf-8") as file:
        yield from marked_lines(file)
    with ZipFile(folder / BY_MODEL) as packed:
        for name in sorted(packed.namelist()):
            with packed.open(name) as part:
                yield from marked_lines(TextIOWrapper(part, "utf-8"))


def place_words(text: str, words: Iterable[str]) -> Iterator[tuple[str, tuple[int, int] | None]]:
    """Yield each word with its characters ``[begin, end)`` in a text, or None if the text doesn't have it there."""
    letters, at = letters_of(text)
    begin = 0
    for word in words:
        own = letters_of(word)[0]
        here = letters.find(own, begin) if own else -1
        if here < 0:
            yield word, None
        else:
            begin = here + len(own)
            yield word, (at[here], at[begin - 1] + 1)


def run_training(main: Callable[[Path, Path], None]) -> None:
    """Call `main` with the two arguments of a training script: the shared data and the file to write."""
    if len(sys.argv) != 3:
        sys.exit(f"write: python {sys.argv[0]} SHARED_DATA FILE")
    main(Path(sys.argv[1]), Path(sys.argv[2]))
