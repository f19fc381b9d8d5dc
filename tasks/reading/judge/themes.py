"""The themes of a review: what it complains about, and the clause that says so.

Two things are added up for each theme: a linear model over runs of one to three characters, found by their hashes, and
the terms of the themes file. A theme that the model doesn't know, because a person added it, is decided by its terms.
The quote is the clause with a term, otherwise the clause that says most for the theme. `docs/themes.md` has the
training and the scores.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from tasks.domain.themes import Theme
from tasks.reading.judge.runs import ORDERS, Codes, hash_runs, plain_codes, text_of
from tasks.reading.judge.theme_file import CATEGORIES, IN_FORCE, ThemeFile
from tasks.reading.judge.theme_terms import BITS, compile_terms
from tasks.reading.judge.voice import network, pack

GOODS, CAR, RESTAURANT = CATEGORIES
LEVELS = 254
"""Largest number of a row of a model."""
LONGEST_CLAUSE = 85
"""Characters of a clause, at most: the numbers of its runs still fit into 16 bits together."""
MODEL_BITS = 17
"""Bits of the hashes of a model's rows."""
MOST_READ = 4000
"""Characters of a text that are read, at most."""
_BETWEEN = "   "
_CLAUSE_ENDS = " ,;!?。、~."
_LEAST_CLAUSE = 3
"""Characters of a clause that is a quote, with its end, at least."""
_MOOD = {CAR: 0.75, RESTAURANT: 0.4}
"""Mood of a clause from which it is praise, and below whose negative it is a complaint."""

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ThemeModel:
    """A linear model of a category's themes.

    Attributes:
        themes: ids, one a column.
        packed: rows of numbers from 0 to `LEVELS` (`tasks.reading.judge.voice.pack`), one of each hash of a run.
        scale: what a step of these numbers adds; shape (columns,).
        bias: log odds of a text that says nothing.
        of_term: log odds that a term adds.
    """

    themes: Sequence[str]
    packed: NDArray[np.uint64]
    scale: Floats
    bias: Floats
    of_term: Floats

    def read(self, batch: TextBatch) -> Floats:
        """Return the log odds of themes in each clause; shape (clauses, themes)."""
        runs = batch.runs >> np.uint32(BITS - MODEL_BITS)
        together = self.packed.take(runs[0], 0)
        for more in runs[1:]:
            together += self.packed.take(more, 0)
        odds = np.add.reduceat(together, batch.clause_starts).view(np.uint16).astype(np.float32)
        sizes = batch.sizes.astype(np.float32)[:, None]
        odds -= np.float32(ORDERS * LEVELS / 2) * sizes
        odds *= self.scale
        odds /= np.sqrt(ORDERS * sizes)
        return odds[:, : len(self.themes)] + self.bias


class ThemeReader:
    """Reads texts of one category for themes.

    Args:
        file: themes by category.
        category: goods, car or restaurant.
        model: of the category; `None` reads by terms alone.
    """

    def __init__(self, file: ThemeFile, category: str, model: ThemeModel | None) -> None:
        themes = file.list_themes(category)
        self._names = tuple(themes)
        self._mood = _MOOD.get(category)
        self._terms = compile_terms(themes.values(), denies=category == GOODS)
        self._model = model
        columns = {} if model is None else {name: number for number, name in enumerate(model.themes)}
        numbers = {name: number for number, name in enumerate(themes)}
        self._column = {number: columns[name] for name, number in numbers.items() if name in columns}
        self._theme = {column: number for number, column in self._column.items()}
        self._unused = [column for column in columns.values() if column not in self._theme]

    def read(self, texts: Sequence[str], doubt: Floats | None = None) -> list[tuple[Theme, ...]]:
        """Return the themes of texts, which cost less together than one by one.

        Args:
            doubt: log odds by which a theme must be surer, of each text.
        """
        if not texts:
            return []
        batch = TextBatch([text[:MOST_READ] for text in texts])
        if self._model is None:
            hits = self._terms.find(batch.plain, batch.runs, batch.ends)
            best = [(bisect_left(batch.ends, start), theme) for theme, start in hits]
        else:
            best = self._decide(self._model, batch, doubt)
        first: dict[tuple[int, int], int] = {}
        for clause, theme in sorted(best):
            first.setdefault((batch.rows[clause], theme), clause)
        quotes = [(row, theme, *batch.quote(row, clause)) for (row, theme), clause in sorted(first.items())]
        moods = self._moods([batch.texts[row][start:end] for row, _, start, end in quotes])
        themes: list[list[Theme]] = [[] for _ in texts]
        for (row, theme, start, end), mood in zip(quotes, moods, strict=True):
            themes[row].append(Theme(self._names[theme], mood, start, end))
        return [tuple(of) for of in themes]

    def shows_theme(self, batch: TextBatch) -> NDArray[np.bool_]:
        """Return True for each clause that shows a theme."""
        hits = self._terms.find(batch.plain, batch.runs, batch.ends)
        shows = np.zeros(len(batch.ends), np.bool_)
        shows[[bisect_left(batch.ends, start) for _, start in hits]] = True
        if self._model is not None:
            odds = self._model.read(batch)
            odds[:, self._unused] = -np.inf
            shows |= odds.max(1) >= 0
        return shows

    def _decide(self, model: ThemeModel, batch: TextBatch, doubt: Floats | None) -> list[tuple[int, int]]:
        """Return the best clauses of the themes that model and terms find together in texts."""
        odds = model.read(batch)
        odds[batch.sizes < _LEAST_CLAUSE] = -np.inf
        odds[:, self._unused] = -np.inf
        hits = self._terms.find(batch.plain, batch.runs, batch.ends)
        clauses = {(bisect_left(batch.ends, start), theme) for theme, start in hits}
        known = [(clause, self._column[theme]) for clause, theme in clauses if theme in self._column]
        if known:
            where = np.array(known)
            odds[where[:, 0], where[:, 1]] += model.of_term[where[:, 1]]
        best = np.maximum.reduceat(odds, batch.first)
        least = np.zeros(len(best), np.float32) if doubt is None else doubt
        is_best = odds >= np.maximum(best, least[:, None])[batch.rows]
        found = [(clause, self._theme[column]) for clause, column in np.argwhere(is_best).tolist()]
        return found + [(clause, theme) for clause, theme in clauses if theme not in self._column]

    def _moods(self, quotes: Sequence[str]) -> Iterator[int]:
        """Yield the sentiment of quotes."""
        if self._mood is None or not quotes:
            yield from (-1 for _ in quotes)
            return
        mood = np.tanh(network().told(quotes)[:, -1] / 2)
        yield from ((mood >= self._mood).astype(int) - (mood <= -self._mood).astype(int)).tolist()


class TextBatch:
    """Texts that stand one after the other, each with three blanks behind it, so that no run reaches the next one.

    Attributes:
        plain: the texts as they are compared.
        runs: hashes of the runs that begin at each character.
        ends: place of each character that ends a clause; a clause begins behind the end of the one before.
        first: number of each text's first clause.
        rows: number of each clause's text.
        sizes: characters of each clause, with its end.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        codes = plain_codes(_BETWEEN.join([*texts, "", ""]))
        self.runs = hash_runs(codes, BITS)
        self.plain = text_of(codes[: self.runs.shape[1]])
        lengths = np.array([len(text) + len(_BETWEEN) for text in texts])
        starts = lengths.cumsum() - lengths
        ends = _list_ends(codes[: self.runs.shape[1]])
        self.first = ends.searchsorted(starts)
        self.sizes = np.diff(ends, prepend=-1)
        self.clause_starts = ends - self.sizes + 1
        self.ends: list[int] = ends.tolist()
        self._starts: list[int] = starts.tolist()
        self.rows: list[int] = np.repeat(
            np.arange(len(texts)), np.diff(self.first, append=len(ends))
        ).tolist()

    def quote(self, row: int, clause: int) -> tuple[int, int]:
        """Return where a clause begins and ends in its text, without blanks around it."""
        text, start = self.texts[row], self._starts[row]
        begin = max(int(self.clause_starts[clause]) - start, 0)
        end = min(self.ends[clause] - start, len(text))
        part = text[begin:end]
        return begin + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _list_ends(codes: Codes) -> NDArray[np.intp]:
    """Return the places that end clauses. A point between digits ends none; a clause that is too long ends early."""
    is_end = _is_end().take(codes)
    points = (codes == ord(".")).nonzero()[0]
    is_end[points] = (codes[points - 1] != ord("0")) | (codes[points + 1] != ord("0"))
    ends: NDArray[np.intp] = is_end.nonzero()[0]
    for place in (np.diff(ends, prepend=-1) > LONGEST_CLAUSE).nonzero()[0].tolist():
        begin = int(ends[place - 1]) if place else -1
        is_end[begin + LONGEST_CLAUSE : int(ends[place]) : LONGEST_CLAUSE] = True
    found: NDArray[np.intp] = is_end.nonzero()[0]
    return found


@cache
def _is_end() -> NDArray[np.bool_]:
    found = np.zeros(1 << 16, np.bool_)
    found[[ord(one) for one in _CLAUSE_ENDS]] = True
    return found


def read_themes(text: str, category: str) -> tuple[Theme, ...]:
    """Return the themes of a text, each once, in the order of the themes file.

    Args:
        category: set of themes: goods, car or restaurant.
    """
    return theme_reader(category).read([text])[0]


def mark_open_clauses(texts: Sequence[str], category: str | None) -> tuple[Codes, NDArray[np.bool_]]:
    """Return the characters of texts as they are compared, and True for those in a clause that shows no theme.

    A text is followed by one blank. The part of a text behind `MOST_READ` counts as showing a theme.

    Args:
        category: set of themes; `None`: no clause shows one.
    """
    codes = plain_codes("".join(f"{text} " for text in texts))
    if category is None or not texts:
        return codes, np.ones(codes.size, np.bool_)
    batch = TextBatch([text[:MOST_READ] for text in texts])
    is_open = np.zeros(codes.size, np.bool_)
    starts = np.cumsum([0, *(len(text) + 1 for text in texts[:-1])]).tolist()
    for clause in (~theme_reader(category).shows_theme(batch)).nonzero()[0].tolist():
        row = batch.rows[clause]
        begin, end = batch.quote(row, clause)
        is_open[starts[row] + begin : starts[row] + end] = True
    return codes, is_open


def theme_reader(category: str) -> ThemeReader:
    """Return the reader of a category by the themes in force."""
    themes, version = IN_FORCE.get()
    held = _readers.get(category)
    if held is None or held[0] != version:
        held = (version, ThemeReader(themes, category, models().get(category)))
        _readers[category] = held
    return held[1]


_readers: dict[str, tuple[str, ThemeReader]] = {}
"""Readers by category, each with the version of its themes."""


@cache
def models() -> Mapping[str, ThemeModel]:
    """Return the models that come with the project, by category."""
    return read_models(_file())


def read_models(file: bytes) -> Mapping[str, ThemeModel]:
    """Read models from a file of their arrays, each named ``category.array``."""
    with np.load(BytesIO(file), allow_pickle=False) as held:
        categories = {name.partition(".")[0] for name in held.files}
        return {
            category: ThemeModel(
                themes=tuple(held[f"{category}.themes"].tolist()),
                packed=pack(held[f"{category}.rows"]),
                scale=held[f"{category}.scale"],
                bias=held[f"{category}.bias"],
                of_term=held[f"{category}.of_term"],
            )
            for category in sorted(categories)
        }


def _file() -> bytes:
    return files("tasks.reading.judge").joinpath("theme-models.npz").read_bytes()


MODEL = hashlib.sha256(_file()).hexdigest()[:12]
"""The version of the models."""
