"""Detection of a change of the rates of a (site, node): the weight that earlier data keep after an attempt.

Bayesian change-point detection (Adams and MacKay, Bayesian online changepoint detection, 2007), with one step of
memory. Before an attempt the rates of its pair have changed with the chance `CHANGES`. By Bayes' rule they have not
with

    keep = (1 - h) L_same / ((1 - h) L_same + h L_new),    h = CHANGES

L_same is the likelihood of the attempt after all that was seen of the pair, L_new that after nothing but a weak prior.
Earlier sums count `keep` times as much from then on. An attempt that goes as usual leaves them nearly as they are, one
that does not makes them count little, and a few of the kind make them count nothing.

Both likelihoods have two factors, for the two rates that `tasks.scheduling.posterior` believes in. Of n tried pages k
were stored, and they took T seconds:

    stored pages   beta-binomial      B(a + k, b + n - k) / B(a, b)
    seconds        gamma mixture      G(c + n) / G(c) * d^c / (d + T)^(c + n)

with a, b, c, d the prior's numbers (L_new), or these and the sums of the pair (L_same). The prior of seconds has the
mean of the pair. Pages of one attempt resemble each other, so m of them count as `m / design_effect(m)`.
"""

from __future__ import annotations

from math import exp, lgamma, log

CHANGES = 0.01
"""Chance that a pair has changed between one attempt and the next."""

ALIKE = 0.1
"""Correlation of pages of one attempt, from 0 (independent) to 1 (an attempt is as much evidence as one page)."""

_STORED, _MISSED, _PAGES = 0.8, 0.4, 1.0
"""The weak prior, in pages: stored and missed ones; those that took as long as the pair's do."""

_LONG = 50.0
"""Bound of the logarithm of a ratio: more makes no difference."""


def design_effect(pages: float) -> float:
    """Return how many of an attempt's `pages` count as one independent page (Kish, cluster samples, 1965)."""
    return 1.0 + (max(1.0, pages) - 1.0) * ALIKE


def still_counts(
    *, attempts: float, tried: float, collected: float, active_s: float, now: tuple[float, float, float]
) -> float:
    """The share that the sums of a pair count after an attempt, in (0, 1].

    Args:
        attempts, tried, collected, active_s: the sums before it.
        now: tried and collected pages of the attempt, and its active seconds.
    """
    n, k, seconds = now
    if n <= 0 or tried <= 0:
        return 1.0
    effect, before = design_effect(n), design_effect(tried / max(attempts, 1e-9))
    stored, missed = min(k, n) / effect, max(0.0, n - k) / effect
    a, b = min(collected, tried) / before, max(0.0, tried - collected) / before
    changed = _pages(stored, missed, _STORED, _MISSED) - _pages(stored, missed, _STORED + a, _MISSED + b)
    if seconds > 0 and active_s > 0:
        usual_s = _PAGES * active_s / tried
        pages, took_s = n / effect, seconds / effect
        changed += _seconds(pages, took_s, _PAGES, usual_s)
        changed -= _seconds(pages, took_s, _PAGES + tried / before, usual_s + active_s / before)
    odds = CHANGES / (1.0 - CHANGES)
    return 1.0 / (1.0 + odds * exp(max(-_LONG, min(_LONG, changed))))


def _pages(stored: float, missed: float, a: float, b: float) -> float:
    """Logarithm of the likelihood of an attempt's pages, after a stored and b missed ones."""
    return _log_beta(a + stored, b + missed) - _log_beta(a, b)


def _seconds(pages: float, took_s: float, c: float, d: float) -> float:
    """Logarithm of the likelihood of an attempt's seconds, after c pages that took d seconds."""
    return lgamma(c + pages) - lgamma(c) + c * log(d) - (c + pages) * log(d + took_s)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
