"""The nodes nearest to a site by estimated delay, and the 2010 paper's choice among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from random import Random

import numpy as np
from splitter.errors import InputError

from tasks.strategies.proximity.gnp import distances_ms
from tasks.strategies.proximity.matrix import Matrix

_NOTHING: Mapping[str, float] = {}


def nearest(
    site: Matrix, nodes: Mapping[str, Matrix], k: int, measured_ms: Mapping[str, float] = _NOTHING
) -> list[str]:
    """The k nodes nearest to a site, nearest first (names decide between equals).

    Args:
        site: (d,) its coordinates.
        nodes: (d,) coordinates by name; a node without a place (NaN) comes after all others.
        k: how many, at least 1; all of them where there are fewer.
        measured_ms: delays to the site by node, where there are some (landmarks'): used instead of the estimate.

    Raises:
        InputError: k is below 1.
    """
    if k < 1:
        raise InputError(f"the {k} nearest nodes: at least 1 is right")
    if not nodes:
        return []
    estimated = distances_ms(site[None, :], np.stack(list(nodes.values())))[0].tolist()
    distance = {name: measured_ms.get(name, ms) for name, ms in zip(nodes, estimated, strict=True)}
    return sorted(distance, key=lambda name: (isnan(distance[name]), distance[name], name))[:k]


def pick(near: Sequence[str], rng: Random) -> str:
    """One of the k nearest for one crawl, all equally likely: Top-1 where k = 1, else Top-k, which spreads the load."""
    return rng.choice(near)
