r"""The exact minimum of the longest run time over integer splits, for nondecreasing curves.

The paper (2019 balance, equations 7-10) minimises the variance of the run times, as a stand-in for the real
aim: an early end. A split can have less variance and end later: f_1 = 0, 4, 4 s and f_2 = 0, 5, 9
s for n = 0, 1, 2 and N = 2: 1 + 1 has a variance of 0.25 s^2 and ends at 5 s, 2 + 0 has 4 s^2 and ends at 4 s.
So the makespan is solved here, and both figures are reported of every split (`curves.AllocationResult`).

Problem. f_i nondecreasing over the integers 0..N, n_i >= 0, sum n_i = N; minimise max_i f_i(n_i).

The time of an idle node is left out: f_i(0) is set to 0, and T is at least 0. With idle times the makespan of
any split is at least max_i f_i(0), since no f_i falls, and the split found here reaches the larger of that and
its own makespan: still the minimum.

Let u_i(T) = max {n in 0..N: f_i(n) <= T} and C(T) = sum_i u_i(T).

Claim. T is attainable (some split has makespan <= T) if and only if C(T) >= N. If a split has makespan <= T,
then n_i <= u_i(T) by definition, so N = sum n_i <= C(T). If C(T) >= N, begin with u(T) and take URLs away,
wherever, until N are left: f_i does not fall with n, so no run time rises, and the makespan stays <= T.

So the optimum T* is the smallest T with C(T) >= N. C is a step function whose steps lie at values of the f_i:
T* is one of finitely many numbers. Bisection keeps low < T* <= high, with high always a value some f_i takes.
After each probe of a middle t the ends jump to such values: if C(t) >= N, high becomes max_i f_i(u_i(t)) <= t
(the same u, so the same C); else low becomes t, and the next value above t, min_i f_i(u_i(t) + 1), is the
smallest candidate left: if it suffices, it is T*. All comparisons are between floating-point values of the f_i
themselves, so T* is exact with respect to the curves as computed.

The choice among optimal splits. Let A be the nodes whose run time at u(T*) equals T*, p_i the smallest n with
f_i(n) = T* for i in A, and S = sum_{A} p_i + sum_{not A} u_i(T*) - N.
- S <= 0 (or T* = 0, so that p_i = 0): every node of A stays at T* and gets between p_i and u_i. All run times are
  as at u(T*): the nodes outside A run as long as they can without ending after T*.
- S > 0: then S < |A|, or T* would not be the smallest (all of A at p_i - 1 makes C of the value below T*, which
  is < N). S nodes of A go one step down to v_i = f_i(p_i - 1). For a constant c the best S nodes by
  sum (f - c)^2 are those with v_i closest to c, a window in the order of the v_i; the variance is the minimum
  over c; so the best window is the best choice of all.

Guaranteed: minimum makespan. And, with idle nodes taking 0 s, the least variance of those minimum makespan
splits that fill nodes below T* up to u_i(T*) and reduce a node of A by at most one step; another split
may have less. If no two curves tie at T* and none is flat there, the optimal split is the only one.
"""

from __future__ import annotations

import numpy as np
from splitter.errors import InputError

from tasks.scheduling.balance.curves import Counts, Curves, Floats, even


def exact(curves: Curves, total: int) -> Counts:
    """Return the split with the smallest makespan; ties follow the module's rule.

    Args:
        curves: of M >= 1 nodes.
        total: N >= 0.

    Returns:
        n_i, shape (M,).

    Raises:
        InputError: there is no node.
    """
    if not len(curves):
        raise InputError("there is no node to divide the URLs over; give at least one")
    busy = curves.drop_idle()
    return _optimal_split(busy, total, _smallest_makespan(busy, total))


def _max_counts(curves: Curves, limit_s: float, total: int) -> Counts:
    """u(T): the most URLs in 0..total that each node does within `limit_s`, if it needs no time for none."""
    # Apart from rounding, the answer is next to the straight line's; each end is checked all the same.
    guess = np.clip(curves.urls(limit_s), 0.0, float(total)).astype(np.int64)
    low, high = np.maximum(guess - 1, 0), np.minimum(guess + 2, total + 1)
    low = np.where(curves.seconds(low) <= limit_s, low, 0)
    high = np.where((high <= total) & (curves.seconds(high) <= limit_s), total + 1, high)
    while (open_ := high - low > 1).any():
        middle = (low + high) // 2
        fits = curves.seconds(middle) <= limit_s
        low, high = np.where(open_ & fits, middle, low), np.where(open_ & ~fits, middle, high)
    return low


def _smallest_makespan(curves: Curves, total: int) -> float:
    """T*."""
    low = 0.0
    if _max_counts(curves, low, total).sum() >= total:
        return low
    high = float(curves.seconds(even(len(curves), total)).max())
    while (limit := low + (high - low) / 2) < high:
        most = _max_counts(curves, limit, total)
        if most.sum() >= total:
            high = float(curves.seconds(most).max())
            continue
        following = float(curves.seconds(most + 1)[most < total].min())
        if following >= high or _max_counts(curves, following, total).sum() >= total:
            return min(following, high)
        low = following
    return high


def _optimal_split(curves: Curves, total: int, makespan_s: float) -> Counts:
    """A split of that makespan, by the module's rule."""
    most = _max_counts(curves, makespan_s, total)
    if makespan_s == 0:
        return _fill(np.zeros_like(most), most, total)
    seconds = curves.seconds(most)
    latest = seconds == makespan_s
    below = _max_counts(curves, float(np.nextafter(makespan_s, -np.inf)), total)
    least = np.where(latest, below + 1, most)
    spare = int(least.sum()) - total
    if spare <= 0:
        return _fill(least, most, -spare)
    ready = np.flatnonzero(latest)
    lowered = curves.seconds(least - 1)[ready]
    least[ready[_best_window(seconds, lowered, makespan_s, spare)]] -= 1
    return least


def _fill(least: Counts, most: Counts, missing: int) -> Counts:
    """Give `missing` more URLs to the nodes, up to `most`, the first nodes first."""
    room = most - least
    before = np.cumsum(room) - room
    return np.asarray(least + np.clip(missing - before, 0, room), dtype=np.int64)


def _best_window(seconds: Floats, lowered: Floats, makespan_s: float, spare: int) -> Counts:
    """Return places of `spare` values of `lowered` that, in place of makespans, give `seconds` the least variance."""
    order = np.argsort(lowered, kind="stable")
    # Moments about the mean: sums of squares of large times would drown their differences.
    mean = float(seconds.mean())
    down, stay = lowered[order] - mean, makespan_s - mean
    first = _window_sums(down - stay, spare) + (seconds - mean).sum()
    second = _window_sums(down**2 - stay**2, spare) + ((seconds - mean) ** 2).sum()
    begin = int(np.argmin(second / seconds.size - (first / seconds.size) ** 2))
    return np.asarray(order[begin : begin + spare], dtype=np.int64)


def _window_sums(values: Floats, width: int) -> Floats:
    sums = np.concatenate(([0.0], np.cumsum(values)))
    return np.asarray(sums[width:] - sums[:-width], dtype=np.float64)
