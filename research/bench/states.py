"""How states of themes and alarms behave in worlds whose truth is known: false alarms, delays, changes of state.

A world has products with 18 themes each, from 0.05 to 10 complaints a week, and 5 to 200 other reviews a week. Half of
the worlds are Poisson, half have 1.5 times its variance. Worlds of 1, 10 and 100 products count alike: the correction
for many series depends on their number. Nothing but the product's own functions judges them (`app.insight`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.insight.rises import Counts
from app.insight.rows import ThemeState
from app.insight.states import CutoffSearch, Judgement, ThemeSeries, judge_weeks

_RATES = np.geomspace(0.05, 10, 18)
_OTHERS = (5.0, 30.0, 200.0)
_PRODUCTS = (1, 10, 100)
_DISPERSIONS = (1.0, 1.5)
_BEFORE = 60
"""Weeks of a world that are not counted: the product is not watched yet, or its baseline is short."""
_COUNTED = 156
_AFTER_CHANGE = 40
_DOUBLED = 17
_WEEKS = _BEFORE + _COUNTED
_RISING_THEME = int(np.argmin(abs(_RATES - 3)))
_RISING = list(ThemeState).index(ThemeState.RISING)


@dataclass(frozen=True, slots=True)
class _World:
    """A world of products.

    Attributes:
        dispersion: variance divided by mean of a theme's complaints.
        crawl: share of the reviews that the crawl finds, by week.
        factor: what the complaints of `_RISING_THEME` are multiplied with during the last `_AFTER_CHANGE` weeks.
    """

    products: int
    dispersion: float
    crawl: Counts
    factor: float = 1.0


_ALL_FOUND = np.ones(_WEEKS)
_HALF_FOUND_PER_YEAR = 0.5 ** ((_WEEKS - 1 - np.arange(_WEEKS)) / 52)
_DOUBLED_AT_LAST = np.where(np.arange(_WEEKS) < _WEEKS - _DOUBLED, 1.0, 2.0)


def run(_shared: object, smallest: bool) -> dict[str, Any]:
    """Draw worlds and judge them.

    Returns:
        ``ratios``: the targets. ``figures``: the same by size and dispersion of the worlds, and what they rest on.
    """
    rng = np.random.default_rng(18)
    theme_weeks = 20_000 if smallest else 1_000_000
    changed_products = 10 if smallest else 400
    figures: dict[str, Any] = {}
    found: dict[str, list[float]] = defaultdict(list)
    changes: list[NDArray[np.float64]] = []
    for products, dispersion in product(_PRODUCTS, _DISPERSIONS):
        world = _World(products, dispersion, _ALL_FOUND)
        share = theme_weeks / len(_PRODUCTS) / len(_DISPERSIONS)
        times = max(1, round(share / products / len(_RATES) / _COUNTED))
        judged = list(_judge(rng, world, times))
        alarms = float(np.mean([_alarms_per_10_years(one) for one in judged]))
        figures[f"{products}_products.dispersion_{dispersion}.false_alarms_per_10_years"] = round(alarms, 2)
        found["false_alarms_per_10_years"].append(alarms)
        changes.append(np.mean([_changes_per_year(one) for one in judged], axis=0))
        for name, change, measure in _CHANGES:
            times = max(1, changed_products // products)
            drawn = [measure(one) for one in _judge(rng, replace(world, **change), times)]
            found[name].append(float(np.mean(drawn)))
    by_rate = np.mean(changes, axis=0)
    ratios = {name: round(float(np.mean(values)), 3) for name, values in found.items()}
    ratios["changes_per_theme_year"] = round(float(by_rate.max()), 2)
    figures["theme_weeks"] = theme_weeks
    figures["complaints_a_week_of_the_rising_theme"] = round(float(_RATES[_RISING_THEME]), 2)
    for rate, number in zip(_RATES, by_rate, strict=True):
        figures[f"changes_per_theme_year.{rate:.2f}_a_week"] = round(float(number), 2)
    return {"bench": "states", "ratios": ratios, "figures": figures}


def _judge(rng: np.random.Generator, world: _World, times: int) -> Iterator[Judgement]:
    """Draw a world several times, and judge it each time."""
    for _ in range(times):
        drawn = _draw(rng, world)
        yield judge_weeks(drawn, _find_cutoffs(drawn))


def _find_cutoffs(series: ThemeSeries) -> list[float]:
    search = CutoffSearch()
    search.add(series)
    return search.list_cutoffs()


def _draw(rng: np.random.Generator, world: _World) -> ThemeSeries:
    mean = np.tile(_RATES, world.products)[:, None] * world.crawl
    mean[_RISING_THEME :: len(_RATES), -_AFTER_CHANGE:] *= world.factor
    if world.dispersion > 1:
        size = mean / (world.dispersion - 1)
        mean = rng.gamma(size, world.dispersion - 1)
    counts = rng.poisson(mean).astype(float)
    praise = rng.poisson(rng.choice(_OTHERS, (world.products, 1)) * world.crawl)
    reviews = counts.reshape(world.products, len(_RATES), -1).sum(axis=1) + praise
    others = np.repeat(reviews, len(_RATES), axis=0) - counts
    has_reviews = np.repeat(reviews > 0, len(_RATES), axis=0)
    return ThemeSeries(counts, others, has_reviews, np.full(len(counts), 2.0), np.zeros(len(counts), int))


def _alarms(judged: Judgement) -> NDArray[np.bool_]:
    """Return by product, theme and week whether an alarm begins."""
    is_rising = judged.states == _RISING
    begins: NDArray[np.bool_] = is_rising[:, 1:] & ~is_rising[:, :-1]
    return begins.reshape(-1, len(_RATES), begins.shape[1])


def _alarms_per_10_years(judged: Judgement) -> float:
    begins = _alarms(judged)[..., -_COUNTED:]
    return float(begins.sum() / begins.shape[0] / begins.shape[2] * 520)


def _has_late_alarm(judged: Judgement) -> float:
    """Return the share of products with an alarm in the last weeks."""
    return float(_alarms(judged)[..., -_DOUBLED:].any(axis=(1, 2)).mean())


def _delay_weeks(judged: Judgement) -> float:
    """Return the mean number of weeks until the changed theme rises; `_AFTER_CHANGE` if it never does."""
    is_rising = judged.states[_RISING_THEME :: len(_RATES), -_AFTER_CHANGE:] == _RISING
    weeks = np.where(is_rising.any(axis=1), is_rising.argmax(axis=1) + 1, _AFTER_CHANGE)
    return float(weeks.mean())


def _changes_per_year(judged: Judgement) -> NDArray[np.float64]:
    """Return the changes of state a year, by theme."""
    states = judged.states[:, -_COUNTED:]
    changed = (states[:, 1:] != states[:, :-1]).mean(axis=1) * 52
    by_theme: NDArray[np.float64] = changed.reshape(-1, len(_RATES)).mean(axis=0)
    return by_theme


_CHANGES: Sequence[tuple[str, Mapping[str, Any], Callable[[Judgement], float]]] = (
    ("alarm_within_17_weeks", {}, _has_late_alarm),
    ("alarm_within_17_weeks_doubled_crawl", {"crawl": _DOUBLED_AT_LAST}, _has_late_alarm),
    ("false_alarms_per_10_years_old_pages_found_less", {"crawl": _HALF_FOUND_PER_YEAR}, _alarms_per_10_years),
    ("delay_weeks_x3", {"factor": 3.0}, _delay_weeks),
    ("delay_weeks_x2", {"factor": 2.0}, _delay_weeks),
)
"""What is measured in changed worlds: name of the ratio, what changes, and the measurement."""
