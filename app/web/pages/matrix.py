"""The matrix of sites and nodes, and the page of one (site, node): history, breakers, and why it got its last work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from fastapi import APIRouter
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.reports import charts
from app.views.fields import format_value, label
from app.views.nodes import REST_FIELDS
from app.views.pairs import (
    CANDIDATE_FIELDS,
    PAIR_ATTEMPT_FIELDS,
    PAIR_FIELDS,
    PERMIT_FIELDS,
    PairsView,
    PairView,
    get_pairs_view,
    list_candidates,
)
from app.views.words import join_words, translate
from app.web.base.context import Here, PageRequest, WebContext
from app.web.base.query import Text
from app.web.base.rendering import length, number, percent
from app.web.pages.node_ratings import (
    FEW,
    FEWEST_ATTEMPTS,
    TOO_FEW,
    NodeVerdict,
    find_main_reason,
    list_verdicts,
)
from tasks.domain.pair_stats import MEMORY, AttemptOutcome, AttemptResult, PairStats
from tasks.store.queries import pairs
from tasks.store.queries.pairs import PairAttempt
from tasks.store.queue import hosts, nodes
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_SITES_A_PAGE = 40
_ATTEMPTS = 300
_ATTEMPTS_LISTED = 30
_STEPS = 10
Measure = Literal["completion", "efficiency", "requests"]


class Shown(NamedTuple):
    """Content of the matrix's cells: a field with its value, and a text with the counts behind the value."""

    field: str
    counts: str


MEASURES: Mapping[Measure, Shown] = {
    "completion": Shown("completion", "{pair.collected:,.0f}/{pair.offered:,.0f}"),
    "efficiency": Shown("efficiency_s", "{pair.collected:,.0f}"),
    "requests": Shown("requests_per_page", "{pair.requests:,}"),
}


def read_pairs(context: WebContext, site: str = "", node: str = "") -> PairsView:
    """Return the counts of each (site, node) with finished attempts: of all, of one site or of one node."""
    return context.read(("pairs", site, node), lambda tx: get_pairs_view(tx, site or None, node or None))


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the heat map: the results of one node at one site.

    Attributes:
        step: strength of the color from 0 to 10, 10 for the best; `None` if unknown.
        rank: value for comparing the nodes at a site, the highest is the best; `None` if the node stored nothing.
        why: the most frequent reason of failures if less than half of the hits were collected, else empty.
    """

    text: str
    count: str
    step: int | None
    rank: tuple[float, float] | None
    why: str


@router.get("/matrix")
def matrix(page: Here, measure: Measure = "completion", after: Text = "", q: Text = "") -> Response:
    """Show completion rate, efficiency or requests of each (site, node) as a heat map, with verdicts in words."""
    context = page.context
    every = {site: list(pairs) for site, pairs in groupby(read_pairs(context).pairs, attrgetter("site"))}
    running = context.read("node names", lambda tx: [row.name for row in nodes.list_nodes(tx)])
    names = sorted({pair.node for pairs in every.values() for pair in pairs}.union(running))
    named = [site for site in every if q.lower() in site]
    sites = [site for site in named if site > after][:_SITES_A_PAGE]
    more = sites[-1] if sites and sites[-1] != named[-1] else ""
    found = {site: list_verdicts(every[site]) for site in sites}
    judged = {site: [one for one in of if one.phrase != TOO_FEW] for site, of in found.items()}
    return page.html(
        "matrix.html",
        live_s=5,
        measure=measure,
        measures={name: label(one.field) for name, one in MEASURES.items()},
        rows=[_make_row(measure, site, every[site]) for site in sites],
        nodes=names,
        said=[(site, _tell_verdicts(of)) for site, of in judged.items() if of],
        few=sum(map(len, found.values())) - sum(map(len, judged.values())),
        fewest=FEWEST_ATTEMPTS,
        more=more,
        after=after,
        q=q,
    )


def words(of_site: Sequence[NodeVerdict]) -> list[tuple[bool | None, str]]:
    """Return (is good, text) for each verdict, in the reader's language.

    `is good` is `None` for neither. Nodes with too few attempts share one text.
    """
    told = _tell_verdicts([one for one in of_site if one.phrase != TOO_FEW])
    few = join_words(one.node for one in of_site if one.phrase == TOO_FEW)
    if few:
        told.append((None, translate(TOO_FEW, node=few)))
    return told


def _tell_verdicts(of_site: Sequence[NodeVerdict]) -> list[tuple[bool | None, str]]:
    return [
        (
            one.good,
            translate(
                one.phrase,
                node=one.node,
                share=percent(one.share),
                offered=number(one.offered),
                seconds=length(one.seconds),
                times=f"{one.times:.1f}",
                why=translate(" (mostly: {reason})", reason=translate(one.reason)) if one.reason else "",
            ),
        )
        for one in of_site
    ]


def _make_row(measure: Measure, site: str, pairs: Sequence[PairView]) -> tuple[str, dict[str, Cell], str]:
    """Return the site, its cells by node, and its best node (empty if fewer than two nodes tried the site)."""
    field = MEASURES[measure].field
    best = min((value for pair in pairs if (value := getattr(pair, field)) is not None), default=None)
    cells = {pair.node: _make_cell(measure, pair, best) for pair in pairs}
    ranks = {node: cell.rank for node, cell in cells.items() if cell.rank is not None}
    return site, cells, max(ranks, key=lambda node: ranks[node]) if ranks and len(cells) > 1 else ""


def _make_cell(measure: Measure, pair: PairView, best: float | None) -> Cell:
    """Return the cell for the results of one node at one site.

    Args:
        best: the smallest value of the site, which gets the strongest color; a value twice as large gets half of it.
            For completion rates, the rate itself is the strength of the color.
    """
    field, counts = MEASURES[measure]
    value = getattr(pair, field)
    step, rank = None, None
    if value is not None:
        share = value if measure == "completion" else (best or value) / value if value else 1.0
        step = round(_STEPS * share)
        rank = (round(value if measure == "completion" else -value, 2), pair.collected)
    is_poor = pair.completion is None or pair.completion < FEW
    return Cell(
        text=format_value(field, value) or "–",
        count=counts.format(pair=pair),
        step=step,
        rank=rank if pair.collected else None,
        why=translate(find_main_reason(pair)) if is_poor else "",
    )


@router.get("/pairs/{site}/{node:path}")
def pair(page: Here, site: str, node: str) -> Response:
    """Show the attempts of a node at a site, and why the scheduler last gave the node work there."""
    context = page.context

    def read(tx: Transaction) -> dict[str, Any]:
        rests = [one for one in hosts.list_rests(tx) if one.node == node]
        of_site = {*context.hosts.site_hosts(site)} if site in context.catalog.sites else {site}
        return {
            "attempts": pairs.list_pair_attempts(tx, site, node, _ATTEMPTS),
            "decision": pairs.get_last_decision(tx, site, node),
            "breakers": [one for one in rests if one.host in of_site],
            "now": tx.now,
        }

    found = context.read(("pair", site, node), read)
    own = read_pairs(context, site, node).pairs
    if not own and not found["attempts"] and found["decision"] is None:
        raise HTTPException(404, translate("{node} has not tried {site} yet.", node=node, site=site))
    decision = found["decision"]
    completion, efficiency = histories(found["attempts"])
    return page.html(
        "pair.html",
        live_s=5,
        site=site,
        node=node,
        own=own,
        fields=(PAIR_FIELDS, PERMIT_FIELDS, REST_FIELDS, CANDIDATE_FIELDS, PAIR_ATTEMPT_FIELDS),
        said=words(list_verdicts(read_pairs(context, site).pairs)),
        completion_chart=_chart(
            translate("Completion rate over attempts, in %"),
            translate("faded"),
            translate("single"),
            completion,
        ),
        efficiency_chart=_chart(
            translate("Efficiency over attempts, in seconds per page"),
            translate("faded"),
            translate("single"),
            efficiency,
        ),
        rows=found["attempts"][: -_ATTEMPTS_LISTED - 1 : -1],
        breakers=found["breakers"],
        decision=decision,
        candidates=[] if decision is None else list_candidates(decision.detail.get("candidates") or (), node),
        limits=_limits(page, site),
        now=found["now"],
    )


History = list[tuple[int, float | None, float | None]]
"""Tuples (number of the attempt, rate after it with older attempts faded, rate of the attempt)."""


def histories(attempts: Sequence[PairAttempt]) -> tuple[History, History]:
    """Return completion rate in % and efficiency in seconds after each attempt (2014 product paper, figure 4).

    Decisions use the faded rate, which depends on about the last `MEMORY` attempts.
    """
    completion: History = []
    efficiency: History = []
    faded = PairStats()
    for n, one in enumerate(attempts, 1):
        result = AttemptResult(
            site="",
            node="",
            outcome=AttemptOutcome(one.outcome),
            offered=one.offered,
            tried=one.tried,
            collected=one.collected,
            active_s=one.active_s,
            lost_s=one.lost_s,
        )
        faded = faded.with_attempt(result, MEMORY)
        alone = PairStats().with_attempt(result)
        completion.append((n, _to_percent(faded.completion), _to_percent(alone.completion)))
        efficiency.append((n, faded.efficiency_s, alone.efficiency_s))
    return completion, efficiency


def _to_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _chart(title: str, faded: str, single: str, history: History) -> Markup:
    return charts.lines(
        [
            charts.Line(faded, [(n, value) for n, value, _ in history]),
            charts.Line(single, [(n, value) for n, _, value in history]),
        ],
        title,
        width=720,
    )


def _limits(page: PageRequest, site: str) -> list[tuple[str, float, float]]:
    """Return the rate limits of a site's hosts: (host, requests per second of one address, of all addresses)."""
    context = page.context
    if site not in context.catalog.sites:
        return []
    found = [(host, context.hosts.limits(host)) for host in dict.fromkeys(context.hosts.site_hosts(site))]
    return [(host, one.per_address_per_s, one.total_per_s) for host, one in found]
