"""The matrix of sites and nodes, and a pair's own page: history, breakers, the last decision and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from fastapi import APIRouter
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.responses import Response

from app.reports import charts
from app.views.words import translate
from app.web.base.context import Context, Here, Page
from app.web.base.query import Text
from app.web.base.rendering import length, number, percent
from app.web.pages.node_ratings import FEW, FEWEST_ATTEMPTS, TOO_FEW, Verdict, verdicts
from tasks.domain.pair_stats import MEMORY, AttemptOutcome, AttemptResult, PairStats
from tasks.store.queries import pairs
from tasks.store.queries.pairs import AttemptSums, PairAttempt, PairRow
from tasks.store.queue import hosts, nodes
from tasks.store.sql.transaction import Transaction

router = APIRouter()

_SITES_A_PAGE = 40
_ATTEMPTS = 300
_ATTEMPTS_LISTED = 30
_STEPS = 10
Measure = Literal["completion", "efficiency", "requests"]
MEASURES = {
    "completion": "Completion rate",
    "efficiency": "Efficiency (seconds per page)",
    "requests": "Requests per page",
}


@dataclass(frozen=True, slots=True)
class Matrix:
    """All pairs with closed attempts: their sums, and how they and their sites did lately."""

    sums: Mapping[tuple[str, str], PairRow]
    recent: Mapping[tuple[str, str], AttemptSums]
    sites: Mapping[str, AttemptSums]
    nodes: Sequence[str]


def read_matrix(context: Context) -> Matrix:
    """The pairs now."""

    def read(tx: Transaction) -> Matrix:
        sums = {(row.site, row.node): row for row in pairs.list_pairs(tx)}
        named = sorted({node for _, node in sums} | {row.name for row in nodes.list_nodes(tx)})
        recent = pairs.list_recent_attempts(tx)
        by_pair = pairs.sums_by(recent, lambda one: (one.site, one.node))
        return Matrix(sums, by_pair, pairs.sums_by(recent, lambda one: one.site), named)

    return context.read("matrix", read)


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of the heat map.

    Attributes:
        step: 0 to 10, stronger is better; None: not known.
        rank: of the nodes at a site, the highest is the best; None: it stored nothing.
        why: what most of its failures were, where it stored less than half; empty: else.
    """

    text: str
    count: str
    step: int | None
    rank: tuple[float, float] | None = None
    why: str = ""


@router.get("/matrix")
def matrix(page: Here, measure: Measure = "completion", after: Text = "", q: Text = "") -> Response:
    """Completion rate, efficiency or requests of each pair as a heat map, with what it says in words."""
    told = read_matrix(page.context)
    named = sorted({site for site, _ in told.sums if q.lower() in site})
    sites = [site for site in named if site > after][:_SITES_A_PAGE]
    more = sites[-1] if sites and sites[-1] != named[-1] else ""
    found = {site: verdicts(site, told.sums, told.recent) for site in sites}
    judged = {site: [one for one in of if one.phrase != TOO_FEW] for site, of in found.items()}
    return page.html(
        "matrix.html",
        live_s=5,
        measure=measure,
        measures=MEASURES,
        rows=[_row(told, measure, site) for site in sites],
        nodes=told.nodes,
        said=[(site, _tell_verdicts(of)) for site, of in judged.items() if of],
        few=sum(map(len, found.values())) - sum(map(len, judged.values())),
        fewest=FEWEST_ATTEMPTS,
        more=more,
        after=after,
        q=q,
        newest=pairs.NEWEST_ATTEMPTS,
    )


def words(of_site: Sequence[Verdict]) -> list[tuple[bool | None, str]]:
    """Return verdicts in the reader's language, each with whether it is good. Nodes with too few attempts share one."""
    told = _tell_verdicts([one for one in of_site if one.phrase != TOO_FEW])
    few = ", ".join(one.node for one in of_site if one.phrase == TOO_FEW)
    if few:
        told.append((None, translate(TOO_FEW, node=few)))
    return told


def _tell_verdicts(of_site: Sequence[Verdict]) -> list[tuple[bool | None, str]]:
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


def _row(told: Matrix, measure: str, site: str) -> tuple[str, dict[str, Cell | None], str]:
    """A site, its cells by node, and the best node there; empty: fewer than two have tried it."""
    cells = {node: _cell(told, measure, site, node) for node in told.nodes}
    ranks = {node: cell.rank for node, cell in cells.items() if cell is not None and cell.rank is not None}
    several = sum(cell is not None for cell in cells.values()) > 1
    return site, cells, max(ranks, key=lambda node: ranks[node]) if ranks and several else ""


def _cell(told: Matrix, measure: str, site: str, node: str) -> Cell | None:
    of = told.sums.get((site, node))
    if of is None:
        return None
    cell, value = _measured(told, measure, site, node, of)
    rank = (round(value, 2), of.collected) if value is not None and of.collected else None
    return replace(cell, rank=rank, why=_why(told, site, node, of))


def _why(told: Matrix, site: str, node: str, of: PairRow) -> str:
    reasons = told.recent.get((site, node), AttemptSums()).reasons
    if not reasons or (of.completion is not None and of.completion >= FEW):
        return ""
    return translate(max(reasons, key=lambda name: (reasons[name], name)))


def _measured(told: Matrix, measure: str, site: str, node: str, of: PairRow) -> tuple[Cell, float | None]:
    """A cell and what it shows as a number, more is better."""
    if measure == "completion":
        step = None if of.completion is None else round(of.completion * _STEPS)
        return Cell(percent(of.completion), f"{of.collected:,.0f}/{of.offered:,.0f}", step), of.completion
    if measure == "efficiency":
        best = _best(told, site, lambda key: told.sums[key].efficiency_s)
        value = of.efficiency_s
        return Cell(length(value), f"{of.collected:,.0f}", _step(best, value)), _less(value)
    recent = told.recent.get((site, node), AttemptSums())
    best = _best(told, site, lambda key: told.recent.get(key, AttemptSums()).requests_per_page)
    value = recent.requests_per_page
    return Cell(number(value, 1), f"{recent.requests:,}", _step(best, value)), _less(value)


def _less(value: float | None) -> float | None:
    return None if value is None else -value


def _best(told: Matrix, site: str, of: Any) -> float | None:
    return min(
        (value for key in told.sums if key[0] == site and (value := of(key)) is not None), default=None
    )


def _step(best: float | None, value: float | None) -> int | None:
    """The best of a site is 10, what takes twice as much 5; not known where it gave nothing."""
    return None if value is None or best is None else round(_STEPS * (best / value if value else 1.0))


@router.get("/pairs/{site}/{node:path}")
def pair(page: Here, site: str, node: str) -> Response:
    """How a node did at a site, attempt by attempt, and why it was given work there last."""
    told = read_matrix(page.context)

    def read(tx: Transaction) -> dict[str, Any]:
        rests = [one for one in hosts.list_rests(tx) if one.node == node]
        of_site = {*page.context.hosts.of_site(site)} if site in page.context.catalog.sites else {site}
        return {
            "attempts": pairs.list_pair_attempts(tx, site, node, _ATTEMPTS),
            "decision": pairs.get_last_decision(tx, site, node),
            "breakers": [one for one in rests if one.host in of_site],
            "now": tx.now,
        }

    found = page.context.read(("pair", site, node), read)
    sums = told.sums.get((site, node))
    if sums is None and not found["attempts"] and found["decision"] is None:
        raise HTTPException(404, translate("{node} has not tried {site} yet.", node=node, site=site))
    completion, efficiency = histories(found["attempts"])
    return page.html(
        "pair.html",
        live_s=5,
        site=site,
        node=node,
        sums=sums or PairRow(site=site, node=node),
        recent=told.recent.get((site, node), AttemptSums()),
        said=words(verdicts(site, told.sums, told.recent)),
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
        decision=found["decision"],
        limits=_limits(page, site),
        now=found["now"],
    )


History = list[tuple[int, float | None, float | None]]
"""(number of the attempt, the faded rate after it, its own rate)."""


def histories(attempts: Sequence[PairAttempt]) -> tuple[History, History]:
    """Completion rate in % and efficiency in seconds after each attempt (2014 product paper, figure 4).

    The faded rate is the one that decisions rest on: of the last `MEMORY` attempts or so.
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
        completion.append((n, _hundred(faded.completion), _hundred(alone.completion)))
        efficiency.append((n, faded.efficiency_s, alone.efficiency_s))
    return completion, efficiency


def _hundred(share: float | None) -> float | None:
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


def _limits(page: Page, site: str) -> list[tuple[str, float, float]]:
    """Limits of the hosts that a site's work asks: (host, requests a second of an address, of all)."""
    context = page.context
    if site not in context.catalog.sites:
        return []
    found = [(host, context.hosts.limits(host)) for host in dict.fromkeys(context.hosts.of_site(site))]
    return [(host, one.per_address_per_s, one.total_per_s) for host, one in found]
