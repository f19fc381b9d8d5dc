"""Compute how much a send permit is worth for each (site, node), from its results and the plan's shadow prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tasks.store.queries import pairs
from tasks.store.queue import attempts
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from tasks.scheduling.statistics import Knowledge


@dataclass(frozen=True, slots=True, kw_only=True)
class PermitWorth:
    """Values of permits and slots for a node at a site; each is `None` if it is unknown.

    Attributes:
        page_chance: expected number of pages per request (posterior mean).
        permit_worth: number of pages that one more send permit of the site's hosts would add, by the last plan.
        slot_worth: number of pages that one more second of a slot of the node would add, by the last plan.
    """

    page_chance: float | None = None
    permit_worth: float | None = None
    slot_worth: float | None = None


def permit_worths(tx: Transaction) -> Mapping[tuple[str, str], PermitWorth]:
    """Return the values for every (site, node).

    Pairs without attempts are estimated from the results of site and node.
    """
    from tasks.scheduling.posterior import posterior  # it brings numpy

    now_s = tx.now.timestamp()
    knowledge = _knowledge(tx)
    chances = posterior(knowledge, now_s, knowledge.sites, knowledge.nodes).mean().page_chance
    prices = [one for one in pairs.list_last_prices(tx) if one[2] is not None]
    permit = {site: price for site, _, price, _ in prices}
    slot = {node: price for _, node, _, price in prices}
    return {
        (site, node): PermitWorth(
            page_chance=float(chances[knowledge.sites[site], knowledge.nodes[node]]),
            permit_worth=permit.get(site),
            slot_worth=slot.get(node),
        )
        for site in knowledge.sites
        for node in knowledge.nodes
    }


def _knowledge(tx: Transaction) -> Knowledge:
    """Return the results of all (site, node), including running attempts, as the scheduler would use them now."""
    from tasks.scheduling.statistics import Knowledge  # loads numpy

    known = Knowledge()
    for row in attempts.list_changed(tx, None):
        age_s = (tx.now - row.faded_at).total_seconds()
        known.put(row.site, row.node, row.fade(age_s), tx.now.timestamp())
    known.set_running(attempts.list_running(tx))
    return known
