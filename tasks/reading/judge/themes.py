"""The themes of a review: what it complains about, and the clause that says so.

Two things are added up for each theme: a linear model over runs of one to three characters, found by their hashes, and
the terms of the themes file. A theme that the model doesn't know, because a person added it, is decided by its terms.
The quote is the clause with a term, otherwise the clause that says most for the theme. `docs/themes.md` has the
training and the scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import BytesIO

import numpy as np
from numpy.typing import NDArray

from tasks.domain.themes import Theme
from tasks.reading.judge.runs import ORDERS, Codes, hash_runs, plain_codes
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
Places = NDArray[np.intp]


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
        self._known: list[int] | slice = slice(None)
        self._columns: list[int] | slice = slice(None)
        if model is not None and self._names != tuple(model.themes):
            self._known = [number for number, name in enumerate(self._names) if name in model.themes]
            self._columns = [model.themes.index(self._names[number]) for number in self._known]

    def read(self, texts: Sequence[str], doubt: Floats | None = None) -> list[tuple[Theme, ...]]:
        """Return the themes of texts, which cost less together than one by one.

        Args:
            doubt: log odds by which a theme must be surer, of each text.
        """
        if not texts:
            return []
        batch = TextBatch([text[:MOST_READ] for text in texts])
        clauses, numbers = self._choose_clauses(batch, doubt)
        places = (batch.rows.take(clauses), numbers, *batch.quote(clauses))
        quotes = list(zip(*(column.tolist() for column in places), strict=True))
        moods = self._judge_moods(batch.texts, quotes)
        themes: list[list[Theme]] = [[] for _ in texts]
        for (row, theme, start, end), mood in zip(quotes, moods, strict=True):
            themes[row].append(Theme(self._names[theme], mood, start, end))
        return [tuple(of) for of in themes]

    def shows_theme(self, batch: TextBatch) -> NDArray[np.bool_]:
        """Return True for each clause that shows a theme."""
        found = self._terms.find(batch.codes, batch.runs, batch.clause_starts, batch.ends) > 0
        if self._model is not None:
            found = np.hstack([found, self._model.read(batch)[:, self._columns] >= 0])
        shows: NDArray[np.bool_] = np.logical_or.reduce(found, 1)
        return shows

    def _choose_clauses(self, batch: TextBatch, doubt: Floats | None) -> tuple[Places, Places]:
        """Return the best clause of each theme that a text has, and the number of the theme; by text and theme."""
        odds = self._sum_odds(batch)
        least = np.zeros(len(batch.rows), np.float32) if doubt is None else doubt.take(batch.rows)
        least[batch.sizes < _LEAST_CLAUSE] = np.inf
        cells = (odds >= least[:, None]).ravel().nonzero()[0]
        clauses, themes = np.divmod(cells, len(self._names))
        keys = batch.rows.take(clauses) * len(self._names) + themes
        order = np.lexsort((-odds.ravel().take(cells), keys))
        keys = keys.take(order)
        is_best = np.ones(len(keys), np.bool_)
        is_best[1:] = keys[1:] != keys[:-1]
        best = order[is_best]
        return clauses.take(best), themes.take(best)

    def _sum_odds(self, batch: TextBatch) -> Floats:
        """Return the log odds of themes in each clause, by model and terms; shape (clauses, themes)."""
        said = self._terms.find(batch.codes, batch.runs, batch.clause_starts, batch.ends)
        odds = np.where(said > 0, np.float32(np.inf), np.float32(-np.inf))
        if self._model is not None:
            known = self._model.read(batch)[:, self._columns]
            known += said[:, self._known] * self._model.of_term[self._columns]
            odds[:, self._known] = known
        return odds

    def _judge_moods(self, texts: Sequence[str], quotes: Sequence[tuple[int, int, int, int]]) -> list[int]:
        """Return the sentiment of quotes, each given as text, theme, begin and end."""
        if self._mood is None or not quotes:
            return [-1] * len(quotes)
        mood = np.tanh(network().told([texts[row][begin:end] for row, _, begin, end in quotes])[:, -1] / 2)
        moods: list[int] = ((mood >= self._mood).astype(int) - (mood <= -self._mood).astype(int)).tolist()
        return moods


class TextBatch:
    """Texts that stand one after the other, each with three blanks behind it, so that no run reaches the next one.

    Attributes:
        codes: their characters as they are compared.
        runs: hashes of the runs that begin at each character.
        ends: place of each character that ends a clause; a clause begins behind the end of the one before.
        first: number of each text's first clause.
        rows: number of each clause's text.
        sizes: characters of each clause, with its end.
        clause_starts: place of each clause's first character.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        codes = plain_codes(_BETWEEN.join([*texts, "", ""]))
        self.runs = hash_runs(codes, BITS)
        self.codes = codes[: self.runs.shape[1]]
        self._lengths = np.array([*map(len, texts)])
        sizes = self._lengths + len(_BETWEEN)
        self._starts = sizes.cumsum() - sizes
        self.ends = _list_ends(self.codes)
        self.sizes = _list_steps(self.ends)
        self.clause_starts = self.ends - self.sizes + 1
        self.first = self.ends.searchsorted(self._starts)
        is_first = np.zeros(len(self.ends), np.intp)
        is_first[self.first] = 1
        self.rows = is_first.cumsum() - 1

    def quote(self, clauses: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return where clauses begin and end in their texts, without the characters that end them."""
        rows = self.rows.take(clauses)
        starts = self._starts.take(rows)
        ends = np.minimum(self.ends.take(clauses) - starts, self._lengths.take(rows))
        return self.clause_starts.take(clauses) - starts, ends


def _list_ends(codes: Codes) -> NDArray[np.intp]:
    """Return the places that end clauses. A point between digits ends none; a clause that is too long ends early."""
    is_end = _is_end().take(codes)
    points = (codes == ord(".")).nonzero()[0]
    is_end[points] = (codes[points - 1] != ord("0")) | (codes[points + 1] != ord("0"))
    ends: NDArray[np.intp] = is_end.nonzero()[0]
    sizes = _list_steps(ends)
    if sizes.max() <= LONGEST_CLAUSE:
        return ends
    for place in (sizes > LONGEST_CLAUSE).nonzero()[0].tolist():
        begin = int(ends[place - 1]) if place else -1
        is_end[begin + LONGEST_CLAUSE : int(ends[place]) : LONGEST_CLAUSE] = True
    found: NDArray[np.intp] = is_end.nonzero()[0]
    return found


def _list_steps(ends: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the distance of each place from the one before, of the first one from -1."""
    steps = ends.copy()
    steps[1:] -= ends[:-1]
    steps[0] += 1
    return steps


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
    clauses = (~theme_reader(category).shows_theme(batch)).nonzero()[0]
    columns = (batch.rows.take(clauses), *batch.quote(clauses))
    for row, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        is_open[starts[row] + begin : starts[row] + end] = True
    return codes, is_open


def theme_reader(category: str) -> ThemeReader:
    """Return the reader of a category by the themes in force."""
    themes, version = IN_FORCE.get()
    held = _readers.get(category)
    if held is None or held[0] != version:
        held = (version, ThemeReader(themes, category, read_model(_file(), category)))
        _readers[category] = held
    return held[1]


_readers: dict[str, tuple[str, ThemeReader]] = {}
"""Readers by category, each with the version of its themes."""


def models() -> Mapping[str, ThemeModel]:
    """Return the models that come with the project, by category."""
    return {category: read_model(_file(), category) for category in CATEGORIES}


def read_model(file: bytes, category: str) -> ThemeModel:
    """Read the model of a category from a file of arrays, each named ``category.array``."""
    with np.load(BytesIO(file), allow_pickle=False) as held:
        return ThemeModel(
            themes=tuple(held[f"{category}.themes"].tolist()),
            packed=pack(held[f"{category}.rows"]),
            scale=held[f"{category}.scale"],
            bias=held[f"{category}.bias"],
            of_term=held[f"{category}.of_term"],
        )


def _file() -> bytes:
    return files("tasks.reading.judge").joinpath("theme-models.npz").read_bytes()


MODEL = hashlib.sha256(_file()).hexdigest()[:12]
"""The version of the models."""
