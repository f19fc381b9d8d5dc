"""Run time of a node over the number of URLs it gets: f(w, n) of the 2019 balance paper, by whatever model.

Every curve is piecewise linear over n >= 0, nondecreasing and not negative. n = 0 is an exception: a node that
gets nothing may take less than the curve's beginning (no setup). Many curves are evaluated at once (`Curves`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from splitter.errors import InputError, Message

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


_MOST = 1e100
"""Bound of any number in a curve. Multiplied by the URLs, squared and summed it is still a floating-point number."""


class CurveError(InputError):
    """Numbers that are no run-time curve."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A run-time curve. Made by `linear` and `piecewise`, which check what they are given.

    Attributes:
        points: (n, seconds), the first at n = 0, n rising, seconds not falling; straight in between.
        seconds_per_url: slope beyond the last point.
        idle_s: seconds at n = 0, no more than the first point's.
    """

    points: tuple[tuple[float, float], ...]
    seconds_per_url: float
    idle_s: float = 0.0


def linear(setup_s: float, seconds_per_url: float) -> Curve:
    """setup + n x seconds; nothing for n = 0. Raises CurveError."""
    _number("setup_s", setup_s)
    _number("seconds_per_url", seconds_per_url)
    return Curve(((0.0, setup_s),), seconds_per_url)


def piecewise(points: Iterable[Sequence[float]]) -> Curve:
    """Straight lines through (n, seconds). A point at n = 0 is what an idle node takes; without one that is 0 s.

    Raises:
        CurveError: with the place of the point that is to blame, counted from 0.
    """
    read: list[tuple[float, float]] = []
    for place, point in enumerate(points):
        if len(point) != 2:
            raise CurveError("point {place} has {n} numbers; write [n, seconds]", place=place, n=len(point))
        n, seconds = point
        _number(Message("n of point {place}", place=place), n)
        if n != int(n):
            raise CurveError("point {place}: n {n:g} is no whole number; URLs are", place=place, n=n)
        _number(Message("seconds of point {place}", place=place), seconds)
        if read and n <= read[-1][0]:
            raise CurveError(
                "point {place}: n {n:g} does not rise after {before:g}; sort points by n",
                place=place,
                n=n,
                before=read[-1][0],
            )
        if read and seconds < read[-1][1]:
            raise CurveError(
                "point {place}: {seconds:g} s falls below {before:g} s; more URLs never take less time",
                place=place,
                seconds=seconds,
                before=read[-1][1],
            )
        read.append((float(n), float(seconds)))
    if not read or read[-1][0] == 0:
        raise CurveError("there is no point with n above 0; give at least one [n, seconds]")
    if read[0][0] > 0:
        read.insert(0, (0.0, 0.0))
    (before, lower_s), (last, upper_s) = read[-2:]
    return Curve(tuple(read), (upper_s - lower_s) / (last - before), read[0][1])


class Curves:
    """Curves of M nodes, evaluated at once."""

    def __init__(self, curves: Sequence[Curve]):
        most = max((len(curve.points) for curve in curves), default=1)
        self._n = np.full((len(curves), most), np.inf)
        self._s = np.full((len(curves), most), np.inf)
        self._slope = np.zeros((len(curves), most))
        for row, curve in enumerate(curves):
            n, s = np.array(curve.points, dtype=np.float64).T
            self._n[row, : n.size] = n
            self._s[row, : n.size] = s
            self._slope[row, : n.size] = np.append(np.diff(s) / np.diff(n), curve.seconds_per_url)
        self._idle = np.array([curve.idle_s for curve in curves], dtype=np.float64)
        # Beyond a segment's own end rounding could lift it above the next one's beginning.
        self._ceiling = np.append(self._s[:, 1:], np.full((len(curves), 1), np.inf), axis=1)
        self._rows = np.arange(len(curves))

    def __len__(self) -> int:
        return len(self._rows)

    def drop_idle(self) -> Curves:
        """Return the curves with 0 s at n = 0."""
        same = copy(self)
        same._idle = np.zeros(len(self))
        return same

    def seconds(self, urls: Counts | Floats) -> Floats:
        """Run times. Nondecreasing in n in floating point too.

        Args:
            urls: shape (..., M); below 0 counts as 0.
        """
        n = np.maximum(urls, 0).astype(np.float64)
        segment = (n[..., None] >= self._n[:, 1:]).sum(-1)
        begin = self._s[self._rows, segment]
        rise = (n - self._n[self._rows, segment]) * self._slope[self._rows, segment]
        busy = np.minimum(begin + rise, self._ceiling[self._rows, segment])
        return np.where(n > 0, busy, self._idle)

    def urls(self, seconds: float) -> Floats:
        """Return about the most URLs that each node can do in `seconds`, not rounded; below 0 if it can't begin.

        The values of `seconds` at whole numbers next to it decide.
        """
        segment = np.maximum((self._s <= seconds).sum(-1) - 1, 0)
        slope = self._slope[self._rows, segment]
        beyond = (seconds - self._s[self._rows, segment]) / np.where(slope > 0.0, slope, 1.0)
        flat = np.where(seconds < self._s[self._rows, segment], -1.0, np.inf)
        return np.asarray(
            self._n[self._rows, segment] + np.where(slope > 0.0, beyond, flat), dtype=np.float64
        )


@dataclass(frozen=True, slots=True)
class AllocationResult:
    """URLs of each node and what follows, by the curves it was evaluated on.

    Attributes:
        allocation: n_i.
        predicted_s: run time of each node.
        makespan_s: the longest of them: when all is done.
        variance: of the run times, over all M nodes (2019 balance paper, equations 7-10), in s^2.
    """

    allocation: tuple[int, ...]
    predicted_s: tuple[float, ...]
    makespan_s: float
    variance: float


def evaluate(curves: Curves, allocation: Counts) -> AllocationResult:
    """Return the run times of an allocation, shape (M,)."""
    seconds = curves.seconds(allocation)
    return AllocationResult(
        tuple(allocation.tolist()), tuple(seconds.tolist()), float(seconds.max()), float(seconds.var())
    )


def even(nodes: int, total: int) -> Counts:
    """The even split (hashing, in the paper): floor(N / M), the remainder one each to the first nodes."""
    return total // nodes + (np.arange(nodes) < total % nodes).astype(np.int64)


def _number(what: Message | str, value: float) -> None:
    if not 0 <= value <= _MOST:
        raise CurveError(
            "{what} is {value}; give a number from 0 to {most:g}", what=what, value=value, most=_MOST
        )
