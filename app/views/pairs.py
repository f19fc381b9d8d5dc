"""Views of pairs (site, node): how well a node crawls a site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.views.fields import extend_row
from app.views.permit_worth import PermitWorth, permit_worths
from app.views.words import describe_reason
from tasks.store.content import links
from tasks.store.content.links import RefusalCount
from tasks.store.queries import pairs
from tasks.store.queries.pairs import AttemptSums, PairRow
from tasks.store.sql.transaction import Transaction

PAIR_FIELDS = (
    "product site node completion efficiency_s offered tried collected attempts failed silent active_s wait_s "
    "rtt_ms"
)
PERMIT_FIELDS = "product site node requests requests_per_page page_chance permit_worth slot_worth"
PAIR_ATTEMPT_FIELDS = (
    "subtask_id product allocated_at end offered tried collected requests active_s wait_s quota errors"
)
CANDIDATE_FIELDS = "node completion efficiency_s attempts score why>"
REFUSED_FIELDS = "site product reason pages n"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairView(PairRow):
    """The results of a node at a site, with what permits and slots are worth there.

    Attributes:
        outcomes, reasons: number of the newest attempts by outcome, and by reason of failure.
        page_chance, permit_worth, slot_worth: as in `PermitWorth`; `None` if the results are those for one product.
    """

    outcomes: Mapping[str, int]
    reasons: Mapping[str, int]
    page_chance: float | None
    permit_worth: float | None
    slot_worth: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PairsView:
    """Pairs (site, node) with finished attempts, and counts of records that were not stored as reviews."""

    pairs: Sequence[PairView]
    refused: Sequence[RefusalCount]


def get_pairs_view(
    tx: Transaction, site: str | None = None, node: str | None = None, *, products: bool = False
) -> PairsView:
    """Return the results of each (site, node) with finished attempts.

    Args:
        site, node: limit the result to this site or node; `None` for all.
        products: True for a separate row per product.
    """
    if products:
        rows = pairs.list_product_pairs(tx, site, node)
    else:
        every = pairs.list_pairs(tx)
        rows = [row for row in every if site in (None, row.site) and node in (None, row.node)]
    recent = pairs.sums_by(pairs.list_recent_attempts(tx), lambda one: (one.site, one.node))
    worths = permit_worths(tx) if rows and not products else {}
    return PairsView(
        pairs=[_view_pair(row, recent, worths) for row in rows],
        refused=links.refusal_counts(tx, site=site),
    )


def list_candidates(candidates: Iterable[Mapping[str, Any]], chosen: str | None) -> list[Mapping[str, Any]]:
    """Return the candidates of a decision as rows of `CANDIDATE_FIELDS`.

    An arrow follows the name of the chosen node.
    """
    return [
        {
            **one,
            "node": f"{one['node']} ←" if one["node"] == chosen else one["node"],
            "why": describe_reason(one),
        }
        for one in candidates
    ]


def _view_pair(
    row: PairRow,
    recent: Mapping[tuple[str, str], AttemptSums],
    worths: Mapping[tuple[str, str], PermitWorth],
) -> PairView:
    key = row.site, row.node
    sums, worth = recent.get(key, AttemptSums()), worths.get(key, PermitWorth())
    return extend_row(
        PairView,
        row,
        outcomes=sums.outcomes,
        reasons=sums.reasons,
        page_chance=worth.page_chance,
        permit_worth=worth.permit_worth,
        slot_worth=worth.slot_worth,
    )
