"""A plan: the expected yield of every (site, node), and the sites that each node should serve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.scheduling.posterior import Belief, Posterior

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A division of slots over sites, with the estimates that it was made from.

    Attributes:
        made_at_s: time at which it was made.
        lasts_s: seconds until the next plan.
        version: version of the ready queue that it was made for.
        sites, nodes: places of the names on the two axes of the arrays below.
        belief: values drawn from the posteriors.
        believed: the posteriors.
        shares: planned sites by node, each with its share of the node's planned time.
        rates: pages per second of a slot of each pair; 0 if the node may not crawl the site. (sites, nodes)
        requesting: share of its time that an attempt does not wait for its address' next send time. (sites, nodes)
        best_rate: best rate of each site. (sites,)
        best_pace: best rate of each site including waiting times. (sites,)
        wait_s: seconds until the last waiting page of a site is begun if the plan is followed. (sites,)
        slots: slots of each node.
        scarcity: weight of the best yield elsewhere against giving a node a subtask.
        tried: pages tried when it was made (`Knowledge.pages_tried`).
        permit_worth: pages that one more permit of a site's hosts would add; 0 if slots are the limit. (sites,)
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

    def includes(self, site: str, node: str) -> bool:
        """Return True if the plan knows both names."""
        return site in self.sites and node in self.nodes
