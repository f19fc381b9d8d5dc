"""Distance of a site from a node: one delay out of repeated response times (`RoundTrip` averages it over attempts).

Repeated measurements give the mode-of-buckets mean of the 2010 paper. A bucket width is picked from the spread of
the values; a value's bucket is the integer quotient of value and width; the answer is the mean of all values in the
three fullest buckets, (sum m1 + sum m2 + sum m3) / (n + p + q).

The paper does not say how the width follows from the spread. Here it is half the median absolute deviation from the
median: the one spread of those tried (range, standard deviation, quartiles) that an outlier does not widen, and with
it about 30 % of five values are left out, with a whole one about 20 %: the two shares the paper prints.
Among equally full buckets the one of smaller delays counts as fuller, because disturbances only add to a delay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median

from splitter.errors import InputError


def remove_noise(values_ms: Sequence[float], width_deviations: float = 0.5) -> float:
    """Return the delay behind repeated measurements.

    If more than half of the values are equal there is no spread to take a width from: that value is the answer.

    Args:
        values_ms: at least one, each positive; their order does not matter.
        width_deviations: bucket width, in median absolute deviations.

    Returns:
        Milliseconds, within the range of the values.

    Raises:
        InputError: no value, or one that is no positive number.
    """
    if not values_ms:
        raise InputError("no delay was measured: at least one is needed")
    if not all(0.0 < value < math.inf for value in values_ms):
        raise InputError(
            "delays are positive milliseconds, not {least!r} to {most!r}",
            least=min(values_ms),
            most=max(values_ms),
        )
    kept = _fullest(sorted(values_ms), width_deviations)
    # The mean of equal numbers may be off by a rounding.
    return min(max(fmean(kept), kept[0]), kept[-1])


def _fullest(ascending: list[float], width_deviations: float) -> list[float]:
    """The values in the three fullest buckets, ascending."""
    middle = median(ascending)
    width = width_deviations * median([abs(value - middle) for value in ascending])
    # Narrower, and quotients would be too large for a float to hold exactly.
    if width <= middle * 1e-12:
        return [middle]
    buckets: dict[float, list[float]] = {}
    for value in ascending:
        buckets.setdefault(value // width, []).append(value)
    fullest = sorted(buckets, key=lambda bucket: (-len(buckets[bucket]), bucket))[:3]
    return [value for bucket in sorted(fullest) for value in buckets[bucket]]
