"""Particle swarm as published (2019 balance paper, equations 7-13), and its answer made whole.

30 particles in M dimensions, all started at floor(N / M), velocities uniform in [0, 1]. The fitness (11) of a
particle is

    variance of f_i(n_i) + (sum n_i - N)^2 + (sum (|n_i| - n_i))^2

and then V = w V + c1 r1 (pbest - X) + c2 r2 (gbest - X) (12), X = X + ceil(V) (13), with w = 0.8, c1 = c2 = 2,
r1 and r2 uniform in [0, 1]. The paper's text keeps the larger fitness; it minimises, so the smaller is kept
here. It leaves some things open: r1 and r2 are drawn for each particle and dimension, f_i of a negative n_i is that of
0, and the bests change after every iteration.

Nothing in (12) bounds a velocity, and w = 0.8 with c1 + c2 = 4 lies outside the region where particles come to
rest (c1 + c2 < 24 (1 - w^2) / (7 - 5 w) = 2.88; Poli 2009): they swing on, and the best creeps towards the
optimum by lucky hits (`reviewloop bench balance` shows it by number of iterations).
The penalties are soft too: the best particle may hold other than N URLs, or less than none on
a node. So the result reports whether it is feasible, and includes a repaired allocation.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from splitter.errors import InputError

from tasks.scheduling.balance.curves import Counts, Curves, Floats, even

PARTICLES = 30
INERTIA = 0.8
PULL = 2.0
"""c1 and c2."""
ITERATIONS = 1000
"""The paper does not say how many. On its own five nodes and 500 URLs every seed's best was an allocation after
these, that of 16 seeds of 20 after 300."""


@dataclass(frozen=True, slots=True)
class SwarmResult:
    """The swarm's result.

    Attributes:
        published: the best particle as it is: integers that may be negative or sum to other than N.
        feasible: it is an allocation: none negative, N in sum.
        fitness: of the best particle (11), in s^2.
        allocation: the best particle, repaired if it was not feasible.
    """

    published: tuple[int, ...]
    feasible: bool
    fitness: float
    allocation: Counts


def swarm(curves: Curves, total: int, rng: np.random.Generator, iterations: int = ITERATIONS) -> SwarmResult:
    """Divide `total` URLs over M >= 1 nodes. Raises InputError if there is no node."""
    if not len(curves):
        raise InputError("there is no node to divide the URLs over; give at least one")
    shape = (PARTICLES, len(curves))
    place = np.full(shape, float(total // len(curves)))
    speed = rng.random(shape)
    own, own_fitness = place.copy(), fitness(curves, total, place)
    best, best_fitness = own[0].copy(), float(own_fitness[0])
    for _ in range(iterations):
        r1, r2 = rng.random(shape), rng.random(shape)
        speed = INERTIA * speed + PULL * r1 * (own - place) + PULL * r2 * (best - place)
        place = place + np.ceil(speed)
        now = fitness(curves, total, place)
        better = now < own_fitness
        own[better], own_fitness[better] = place[better], now[better]
        leader = int(np.argmin(own_fitness))
        if own_fitness[leader] < best_fitness:
            best, best_fitness = own[leader].copy(), float(own_fitness[leader])
    found = best.astype(np.int64)
    feasible = bool((found >= 0).all() and found.sum() == total)
    return SwarmResult(
        tuple(found.tolist()), feasible, best_fitness, found if feasible else repair(found, total)
    )


def fitness(curves: Curves, total: int, places: Floats) -> Floats:
    """Equation (11) of particles, shape (..., M), in s^2."""
    missed = places.sum(-1) - total
    negative = (np.abs(places) - places).sum(-1)
    return np.asarray(curves.seconds(places).var(-1) + missed**2 + negative**2, dtype=np.float64)


def repair(places: Counts, total: int) -> Counts:
    """The allocation nearest in proportion: negatives to 0, scaled to `total`, whole URLs by largest remainder."""
    kept = np.maximum(places, 0).astype(np.float64)
    if not kept.any():
        return even(len(places), total)
    shares = kept * (total / kept.sum())
    whole: Counts = np.floor(shares).astype(np.int64)
    missing = total - int(whole.sum())
    order = np.argsort(whole - shares, kind="stable")
    whole[order[: max(missing, 0)]] += 1
    # Rounding of the scale can give one URL too many.
    whole[np.argmax(whole)] -= max(-missing, 0)
    return whole
