"""How right the themes of texts are, on texts that were set apart before any term was written.

- **goods, car, restaurant**: macro F1 over the themes of a category: by terms alone, by runs alone, and by both as `review classify`
  reads them (`research.training.themes.theme_texts.list_apart`). Nothing is learned, chosen or calibrated from these texts.
- **serious**: recall and precision of safety and foreign matter together, in goods.
- **confusion**: of the three worst themes, what their missed texts have instead, and the themes of what is wrongly taken for them.
- **read** (`--quotes`): clauses to read by eye, from texts that are not set apart.
- **agreement**: F1 of the second marks of 150 texts against the first: what a reader reaches.
- **written**: what a clone without the shared data has: the posts of `research/samples/voices/posts.tsv`.
- **cost**: CPU that themes add to the voices of a page of 28 texts, of complaints (`goods`) and of posts (`written`): if it is judged
  alone, and if eight pages are judged together, as in a crawl.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from research.training.themes.theme_texts import (
    SECOND,
    ThemeText,
    list_apart,
    list_marked,
    list_open_complaints,
    read_labels,
)
from research.training.voices.voice_posts import written_posts
from tasks.domain.pages import Review
from tasks.domain.themes import Theme
from tasks.reading.judge.reviews import judge_reviews
from tasks.reading.judge.theme_file import CATEGORIES, ThemeFile, builtin_themes
from tasks.reading.judge.themes import GOODS, ThemeReader, models

_A_PAGE, _TIMES = 28, 300
_WORST = 3
_SERIOUS = frozenset({"safety", "foreign_matter"})

Flags = NDArray[np.bool_]


@click.option(
    "--quotes", type=click.IntRange(0), default=0, help="Print so many quotes of each theme to read."
)
@click.option("--theme", "of_themes", multiple=True, help="Only quotes of this theme. Repeatable.")
def run(shared: Path, smallest: bool, quotes: int = 0, of_themes: Sequence[str] = ()) -> dict[str, Any]:
    """Score the themes of the tree.

    Args:
        quotes: number of quotes of each theme of goods to print, from texts that are not set apart.
        of_themes: prints quotes of these themes only.
    """
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {}
    written = [post.text for post in written_posts()]
    if (shared / "themes").is_dir():
        texts = list_apart(shared)
        for category in CATEGORIES:
            more, about = score([one for one in texts if one.category == category], category)
            ratios |= more
            figures |= about
        ratios["agreement.f1"] = agreement(shared)
        ratios |= _measure_cost("goods", [one.text for one in texts if one.source == "goods_more"], smallest)
        if quotes:
            wanted = of_themes or builtin_themes().goods
            figures["read"] = {theme: list_quotes(shared, theme, quotes) for theme in wanted}
    written_themes = [theme for found in _classify(written, GOODS) for theme in found]
    ratios["quotes"] = round(
        sum(theme.quote_from < theme.quote_to for theme in written_themes) / max(len(written_themes), 1), 3
    )
    ratios |= _measure_cost("written", written, smallest)
    return {"bench": "themes", "ratios": ratios, "figures": figures}


def score(texts: Sequence[ThemeText], category: str) -> tuple[dict[str, float], dict[str, Any]]:
    """Return ratios and figures of the texts of a category."""
    read = [one.text for one in texts]
    names = list(builtin_themes().list_themes(category))
    without_terms = ThemeFile.model_validate({category: _drop_terms(category)})
    model = models()[category]
    ways: dict[str, Sequence[Sequence[Theme]]] = {
        "terms": ThemeReader(builtin_themes(), category, None).read(read),
        "runs": ThemeReader(without_terms, category, model).read(read),
        "both": ThemeReader(builtin_themes(), category, model).read(read),
        "classify": _classify(read, category),
    }
    truth = _flags([one.themes for one in texts], names)
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {f"{category}.texts": len(texts)}
    for way, found in ways.items():
        told = _flags([{theme.id for theme in themes} for themes in found], names)
        ratios[f"{category}.{way}_f1"] = macro_f1(truth, told)
    for column, name in enumerate(names):
        here = truth[:, column]
        figures[f"{category}.{name}"] = {
            "texts": int(here.sum()),
            "found": int(told[:, column].sum()),
            "both": int((here & told[:, column]).sum()),
            "f1": macro_f1(truth[:, [column]], told[:, [column]]) if here.any() else None,
        }
    figures[f"{category}.confusion"] = confuse(truth, told, names)
    if category == GOODS:
        serious = [column for column, name in enumerate(names) if name in _SERIOUS]
        right = int((truth[:, serious] & told[:, serious]).sum())
        ratios["serious_recall"] = round(right / max(int(truth[:, serious].sum()), 1), 3)
        ratios["serious_precision"] = round(right / max(int(told[:, serious].sum()), 1), 3)
    return ratios, figures


def macro_f1(truth: Flags, told: Flags) -> float:
    """Return the mean F1 of the themes that a text has."""
    there = truth.any(0)
    both = (truth & told).sum(0)[there]
    each = truth.sum(0)[there] + told.sum(0)[there]
    return round(float((2 * both / each).mean()), 3)


def confuse(truth: Flags, told: Flags, names: Sequence[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Return what the texts of the worst themes were taken for, and what was taken for these themes."""
    there = [column for column in range(len(names)) if truth[:, column].any()]
    worst = sorted(there, key=lambda column: macro_f1(truth[:, [column]], told[:, [column]]))[:_WORST]

    def count(rows: Flags, flags: Flags) -> dict[str, int]:
        counted = {name: int(n) for name, n in zip(names, flags[rows].sum(0), strict=True) if n}
        return counted | {"none": int((~flags[rows].any(1)).sum())}

    return {
        names[column]: {
            "missed_has": count(truth[:, column] & ~told[:, column], told),
            "wrong_is": count(told[:, column] & ~truth[:, column], truth),
        }
        for column in worst
    }


def list_quotes(shared: Path, theme: str, most: int) -> list[str]:
    """Return a clause of each of the first texts with a theme, in the order of drawing; none is set apart."""
    texts = list_open_complaints(shared)
    found = zip(texts, _classify(texts, GOODS), strict=True)
    quotes = [text[one.quote_from : one.quote_to] for text, of in found for one in of if one.id == theme]
    return quotes[:most]


def agreement(shared: Path) -> float:
    """Return F1 of second marks against the first, over all themes."""
    second = read_labels(SECOND)
    first = {one.digest: one.themes for one in list_marked(shared) if one.source == "goods_more"}
    both = sum(len(first[key].keys() & themes.keys()) for key, themes in second.items())
    each = sum(len(first[key]) + len(themes) for key, themes in second.items())
    return round(2 * both / each, 3)


def _classify(texts: Sequence[str], category: str) -> list[tuple[Theme, ...]]:
    return [themes or () for _, themes in judge_reviews([_record(text) for text in texts], None, category)]


def _drop_terms(category: str) -> dict[str, Any]:
    return {
        name: {"zh": one.zh, "en": one.en} for name, one in builtin_themes().list_themes(category).items()
    }


def _flags(found: Sequence[Any], names: Sequence[str]) -> Flags:
    return np.array([[name in themes for name in names] for themes in found])


def _measure_cost(kind: str, texts: Sequence[str], smallest: bool) -> dict[str, float]:
    """Return the milliseconds of CPU that themes add to the voices of a page, by name of the figure."""
    times = _TIMES // 10 if smallest else _TIMES
    found = {}
    for name, pages in (("page_ms", 1), ("page_of_eight_ms", 8)):
        wanted = _A_PAGE * pages
        sample = [_record(text) for text in texts[:: max(len(texts) // wanted, 1)][:wanted]]
        sizes = [_A_PAGE] * (len(sample) // _A_PAGE)
        sample = sample[: sum(sizes)]
        with_themes = partial(judge_reviews, sample, pages=sizes)
        without = partial(judge_reviews, sample, None, None, pages=sizes)
        found[f"{kind}_{name}"] = round((_ms(with_themes, times) - _ms(without, times)) / len(sizes), 4)
    return found


def _ms(do: Callable[[], object], times: int) -> float:
    """Return the least CPU time, after one call that is not counted."""
    do()
    took = []
    for _ in range(times):
        begun = time.process_time()
        do()
        took.append(time.process_time() - begun)
    return min(took) * 1_000


def _record(text: str) -> Review:
    return Review("#0", "", text, "", "", None, None)
