"""Estimate how many days pass before a written review is found, and which of the newest days are therefore incomplete.

The delay is estimated from reviews that were written after the product's first page at their site was stored. Older
reviews were all found together, by the first crawl or an import. Late reviews of the newest days have not been found
yet, so delays longer than the age of the day are missing from the data (truncated).

Source: Kalbfleisch and Lawless, Inference based on retrospective ascertainment, JASA 84 (1989): the product-limit
estimator of delays that are truncated from the right.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tasks.store.queries.themes import SeenReviews

MOST_DELAY_DAYS = 56
"""Age in days from which a day counts as complete. Reviews seen even later are found by chance."""
DELAY_DAYS = 2 * MOST_DELAY_DAYS
"""Number of newest days whose reviews are used to estimate the delay."""
COMPLETE = 0.9
"""A day is complete if at least this share of its reviews has been seen."""
LEAST_REVIEWS = 20
LEAST_DAYS = 28
"""Minimum age of the oldest of these reviews, in days."""


def estimate_incomplete_days(seen: Iterable[SeenReviews], today: int) -> int | None:
    """Return how many of the newest days, including today, are incomplete; `None` if there are too few reviews.

    Args:
        seen: counts of reviews by day of writing and by delay in days.
        today: number of the current day.
    """
    rows = np.array([(today - one.day, max(one.delay, 0), one.n) for one in seen], int).reshape(-1, 3)
    oldest = rows[:, 0].max(initial=0)
    ages, days, n = rows[rows[:, 1] <= np.minimum(rows[:, 0], MOST_DELAY_DAYS)].T
    by_age = np.zeros((DELAY_DAYS + 1, MOST_DELAY_DAYS + 1))
    np.add.at(by_age, (np.minimum(ages, DELAY_DAYS), days), n)
    delays = by_age.sum(axis=0)
    at_risk = by_age.cumsum(axis=1)[::-1].cumsum(axis=0)[::-1].diagonal()
    if delays.sum() < LEAST_REVIEWS or oldest < LEAST_DAYS:
        return None
    hazard = delays / np.maximum(at_risk, 1)
    is_seen = np.append(np.cumprod((1 - hazard)[:0:-1])[::-1], 1.0)
    return int(np.argmax(is_seen >= COMPLETE))
