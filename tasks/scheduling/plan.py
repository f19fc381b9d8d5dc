"""A plan: what every (site, node) is expected to yield, and which sites each node should serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling.posterior import Belief, Posterior

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A division of slots over sites, with what was believed when it was made.

    Attributes:
        made_at_s: when.
        lasts_s: until the next plan; 0 if it was not solved, so that each decision looks for the solver again.
        version: of the ready queue it was made for.
        sites, nodes: place of each name on the two axes of what follows.
        belief: drawn from the posteriors.
        believed: the posteriors.
        shares: by node, its planned sites with the share of its planned time that each gets.
        rates: pages per second of a slot of each pair; 0 where the node may not. (sites, nodes)
        requesting: share of its time that an attempt does not wait for its address' next send time. (sites, nodes)
        best_rate: of each site. (sites,)
        best_pace: the best rate of each site by the clock, waiting included. (sites,)
        wait_s: seconds until the last page that waits of a site is begun, if the plan is followed. (sites,)
        slots: of each node.
        scarcity: how much the best yield elsewhere counts against giving a node a subtask.
        tried: pages tried when it was made (`Knowledge.pages_tried`).
        permit_worth: by site, pages that one more permit of its hosts would add: 0 where slots rule. (sites,)
        slot_worth: pages that one more second of a node's slot would add. (nodes,)
    """

    made_at_s: float
    lasts_s: float
    version: int
    sites: Mapping[str, int]
    nodes: Mapping[str, int]
    belief: Belief
    believed: Posterior
    shares: Mapping[str, Mapping[str, float]]
    rates: Array
    requesting: Array
    best_rate: Array
    best_pace: Array
    wait_s: Array
    slots: Array
    scarcity: float
    tried: float
    permit_worth: Array
    slot_worth: Array

    @property
    def is_solved(self) -> bool:
        """Return False if the solver was not loaded: then no node has planned sites."""
        return self.lasts_s > 0

    def includes(self, site: str, node: str) -> bool:
        """Whether both were there when it was made."""
        return site in self.sites and node in self.nodes
