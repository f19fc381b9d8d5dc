"""`reviewloop explain`: the history of a subtask, with the data behind each decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from app.cli.command import App, command
from app.cli.render import Part, table, text
from app.files.harmless import shown
from app.views.durations import seconds
from app.views.fields import STYLE_OF, format_counts, format_moment
from app.views.pairs import CANDIDATE_FIELDS, list_candidates
from app.views.words import describe, describe_reason, join_words, name_text, plural, translate
from splitter.errors import Message
from tasks.domain.errors import UnknownSubtask
from tasks.domain.failures import SUGGESTIONS
from tasks.domain.host_wait import HostWait
from tasks.domain.page_floor import PageFloor
from tasks.domain.reasons import add_sentences
from tasks.domain.states import State
from tasks.scheduling.decision import Ruling, as_detail
from tasks.store.content import links
from tasks.store.content.links import RefusalCount
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.subtask import AttemptRow, EventRow, TargetRow
from tasks.store.sql.database import Store

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

Row = Mapping[str, Any]

_INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainView:
    """A subtask with its history.

    Attributes:
        refused: number of records of the subtask's product and site that were not stored as reviews, by reason.
        would_be_decided_now: the decision that allocation would make now; `None` if the subtask does not wait.
    """

    subtask: Row
    events: Sequence[EventRow]
    attempts: Sequence[AttemptRow]
    targets: Sequence[TargetRow]
    refused: Sequence[RefusalCount]
    would_be_decided_now: Row | None


@command(None, "explain", sites=True)
@click.argument("subtask", type=int)
def explain(app: App, subtask: int) -> ExplainView:
    """Show the reasons for each step of a subtask.

    Show each decision with its candidates and the figures behind it. Allocation: every node with its
    completion rate, efficiency and score. Modification: quota and budget, and why. Recall: why, after how
    long, which nodes to avoid. Wake: the hits left, and the follow-up subtask.

    \b
    Example:
      reviewloop explain 17
    """
    with app.store.read() as tx:
        row = subtask_queries.get_subtask(tx, subtask)
        if row is None:
            raise UnknownSubtask("there is no subtask {subtask}", subtask=subtask)
        events = subtask_queries.list_events(tx, subtask)
        attempts = subtask_queries.list_attempts(tx, subtask)
        targets = subtask_queries.list_targets(tx, subtask)
        refused = links.refusal_counts(tx, site=row["site"], product_id=row["product_id"])
    waits = row["state"] == State.WAIT
    return ExplainView(
        subtask=row,
        events=events,
        attempts=attempts,
        targets=targets,
        refused=refused,
        would_be_decided_now=_preview(app.settings, app.store, subtask) if waits else None,
    )


def _preview(settings: Settings, store: Store, subtask_id: int) -> dict[str, Any]:
    """Return the decision that allocation would make now about a waiting subtask, including its random choices."""
    from app.run import sweep_wiring
    from tasks.jobs.sweeps import preview

    context = sweep_wiring.context(settings, settings.catalog())
    with store.read() as tx:
        decision = preview(tx, context)
    for assignment in decision.assignments:
        if assignment.subtask.id == subtask_id:
            return {
                "node": assignment.node,
                "why": Message("allocation would give it to {node}", node=assignment.node),
                "candidates": [add_sentences(as_detail(one)) for one in assignment.candidates],
                "prices": asdict(assignment.prices) if assignment.prices is not None else None,
                "floor": asdict(assignment.floor) if assignment.floor.least_share else None,
            }
    for waiting in decision.waiting:
        if subtask_id in waiting.subtask_ids:
            return {"node": None, "why": Message("it waits: {why}", why=waiting.why), "candidates": ()}
    why = Message("it is held back, or too far behind in WAIT to be looked at")
    return {"node": None, "why": why, "candidates": ()}


@text.register
def _(view: ExplainView) -> Iterator[Part]:
    yield from _list_head_parts(view.subtask, view.targets)
    if view.refused:
        yield translate(
            "Of this product's pages on this site, not stored as reviews: {counts}.",
            counts=format_counts({one.reason: one.n for one in view.refused}),
        )
    if view.subtask["log_dropped"]:
        note = translate("It ended so long ago that its event log was dropped (REVIEWLOOP_KEEP_LOG_DAYS).")
        yield Text(note, style="dim")
    attempts = {attempt.id: attempt for attempt in view.attempts}
    for event in view.events:
        after_s = (event.at - view.events[0].at).total_seconds()
        yield _describe_event(event, after_s)
        if event.detail is not None and event.transition in _DETAILS:
            yield from _DETAILS[event.transition](event.detail, event, attempts.get(event.attempt_id or 0))
    now = view.would_be_decided_now
    if now is not None:
        yield Text("\n" + translate("Now: {why}", why=describe(now["why"])), style="bold cyan")
        if now["candidates"]:
            yield table(list_candidates(now["candidates"], None), CANDIDATE_FIELDS)
        yield from _list_ruling_parts(now)


def _list_head_parts(row: Row, targets: Sequence[TargetRow]) -> Iterator[Part]:
    title = translate(
        "Subtask {n}: {product} on {site}, by {engine}, {kind}, chunk {chunk}",
        n=row["id"],
        product=shown(row["product"]),
        site=row["site"],
        engine=row["engine"],
        kind=translate(row["kind"]),
        chunk=row["chunk"],
    )
    yield Text.assemble((title, "bold"), "  ", (translate(row["state"]), STYLE_OF[row["state"]]))
    states = Counter(f"{target.state} {target.kind}" for target in targets)
    counts = join_words(
        translate("{n:,} {name}", n=n, name=" ".join(map(translate, name.split())).replace("_", " "))
        for name, n in sorted(states.items())
    )
    yield translate(
        "Round {round}, attempts: {attempts}, recalls: {recalls}, found: {found}, targets: {targets}",
        round=row["round"],
        attempts=row["attempts"],
        recalls=row["recalls"],
        found=_describe_found(row),
        targets=counts or translate("none yet"),
    )
    if row["parent_id"]:
        yield translate("It follows subtask {n}.", n=row["parent_id"])
    if row["assigned_node"]:
        yield translate("A person asked for {node}.", node=row["assigned_node"])
    if row["assigned_quota"]:
        yield translate("A person set its quota: {n:,} hits an attempt.", n=row["assigned_quota"])
    if row["not_before"] and row["state"] == State.WAIT:
        yield translate("Delayed until {time}.", time=format_moment(row["not_before"]))
        if row["wait_host"]:
            yield f"{_INDENT}{HostWait(row['wait_host'], row['wait_reason'])}"
    if row["idle_releases"]:
        yield translate("Attempts in a row without an answer: {n}.", n=row["idle_releases"])


def _describe_found(row: Row) -> str:
    if row["found"] is None:
        return translate("unknown")
    found = translate("{name} ({why})", name=f"{row['found']:,}", why=translate(row["found_provenance"]))
    if row["found_reported"] in (None, row["found"]):
        return found
    return translate("{found}, the engine reports {n:,}", found=found, n=row["found_reported"])


def _describe_event(event: EventRow, after_s: float) -> Text:
    head = Text.assemble(
        (f"\n{format_moment(event.at)} ", "dim"),
        (f"+{seconds(after_s)}  ", "dim"),
        (translate(event.transition).replace("_", " "), "bold"),
        f"  {translate(event.from_state or '-')} → ",
        (translate(event.to_state), STYLE_OF[event.to_state]),
    )
    if event.node:
        head.append(f"  {event.node}")
    if event.reason:
        head.append(f"  {translate(event.reason)}", style="red")
    return head


def _list_created(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    if "follows" in detail:
        yield _INDENT + translate(
            "carries on what subtask {subtask} left: {n} hits to do",
            subtask=detail["follows"],
            n=detail["left"],
        )
    else:
        yield _INDENT + translate(
            "chunk {chunk} of {chunks}, result pages to fetch: {n}",
            chunk=detail["chunk"],
            chunks=detail["of"],
            n=detail["result_pages"],
        )
    if "span" in detail:
        begin, end = detail["span"]
        yield _INDENT + translate(
            "only what is from {begin} up to {end}: the whole query has more hits than can be listed",
            begin=begin,
            end=end,
        )
    if "dropped" in detail:
        yield _INDENT + translate(
            "for {words}, without {dropped}",
            words=shown(" ".join(detail["keywords"])),
            dropped=shown(join_words(detail["dropped"])),
        )


def _list_allocated(detail: Row, event: EventRow, attempt: AttemptRow | None) -> Iterator[Part]:
    strategy = translate("by strategy {strategy}", strategy=detail["strategy"])
    if attempt:
        strategy = translate("attempt {n}, {strategy}", n=attempt.no, strategy=strategy)
    yield _INDENT + strategy
    yield table(list_candidates(detail["candidates"], event.node), CANDIDATE_FIELDS)
    if detail["forgiven"]:
        yield _INDENT + translate(
            "forgiven: {node} failed it before, and no other node is left", node=detail["forgiven"]
        )
    yield from _list_ruling_parts(detail)
    limits = detail["modification"]
    yield _INDENT + translate(
        "quota {quota} hits, budget {budget_s:.0f} s: {why}",
        quota=limits["quota"],
        budget_s=limits["budget_s"],
        why=shown(describe_reason(limits)),
    )


def _list_ruling_parts(decided: Row) -> Iterator[Part]:
    """Yield lines about a decision by a plan: the constraint that limits it, and when the attempt ends early."""
    prices, floor = decided.get("prices"), decided.get("floor")
    if prices is not None:
        yield _INDENT + translate(
            "ruled by {constraint}: a permit is worth {permit:.2g} pages, a second of a slot {slot:.2g}; a request "
            "here gives {pages:.2g}",
            constraint=translate(_RULINGS[prices["ruled"]]),
            permit=prices["permit"],
            slot=prices["slot"],
            pages=prices["page_chance"],
        )
    if floor is not None:
        yield _INDENT + translate(
            "floor: {pages:.2g} pages a request, as another node would make; ends early if it is {slack:.2g} pages "
            "behind that ({n} tries without a page)",
            pages=floor["least_share"],
            slack=floor["slack"],
            n=PageFloor(**floor).tries_without_page,
        )


_RULINGS = {
    Ruling.PERMITS: "the host's permits",
    Ruling.SLOTS: "slots",
    Ruling.NEITHER: "neither permits nor slots",
}


def _list_ended(detail: Row, event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    if "offered" in detail:
        yield _INDENT + translate(
            "offered {offered}, tried {tried}, collected {collected}, known {known}; requests {requests}, "
            "{bytes:,} bytes, active {active}, waited {waited}",
            offered=detail["offered"],
            tried=detail["tried"],
            collected=detail["collected"],
            known=detail["known"],
            requests=detail["requests"],
            bytes=detail["bytes"],
            active=seconds(detail["active_s"]),
            waited=seconds(detail["wait_s"]),
        )
    if detail.get("errors"):
        errors = translate("errors: {counts}", counts=format_counts(detail["errors"]))
        yield Text(_INDENT + errors, style="red")
    if event.transition == "silent":
        yield _INDENT + translate("no sign of life for {length}", length=seconds(detail["silent_s"]))
    if "why" in detail:
        yield _INDENT + shown(describe_reason(detail))
    if detail.get("delay_s"):
        yield _INDENT + translate(
            "no node may ask before: it may go again in {length}", length=seconds(detail["delay_s"])
        )


def _list_recalled(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    yield _INDENT + translate(
        "recall {n}: may go again in {length}", n=detail["recall"], length=seconds(detail["delay_s"])
    )
    if detail["avoid"]:
        yield _INDENT + translate("nodes to avoid: {nodes}", nodes=join_words(detail["avoid"]))


def _list_given_up(detail: Row, event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    yield _INDENT + shown(describe_reason(detail))
    suggestion = translate(SUGGESTIONS.get(event.reason or "", ""))
    if suggestion:
        yield Text(_INDENT + translate("Suggested: {suggestion}", suggestion=suggestion), style="yellow")


def _list_woken(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    if detail["follow_up"]:
        yield _INDENT + plural(
            "{n} hit left over: subtask {subtask} carries on",
            "{n} hits left over: subtask {subtask} carries on",
            detail["left"],
            subtask=detail["follow_up"],
        )
        (old_quota, quota), (old_s, budget_s) = detail["quota"], detail["budget_s"]
        yield _INDENT + translate(
            "quota {old_quota} → {quota}, budget {old_s:.0f} → {budget_s:.0f} s: {why}",
            old_quota=old_quota,
            quota=quota,
            old_s=old_s,
            budget_s=budget_s,
            why=shown(describe_reason(detail["modification"])),
        )
    else:
        yield _INDENT + translate("nothing left over")
    for name in ("split", "relaxed", "full"):
        if name in detail:
            yield _INDENT + name_text(translate(name), shown(describe_reason(detail[name])))
    if detail["next_chunk"]:
        yield _INDENT + translate(
            "the last result page showed more: subtask {n} is the next chunk", n=detail["next_chunk"]
        )


def _list_retried(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Iterator[Part]:
    yield _INDENT + translate(
        "a person: round {round}, {n} hits to do", round=detail["round"], n=detail["left"]
    )
    if detail["assigned_node"]:
        yield _INDENT + translate("on {node} only", node=detail["assigned_node"])
    if "assigned_quota" in detail:
        yield _INDENT + translate("at most {n:,} hits an attempt", n=detail["assigned_quota"])


_DETAILS: Mapping[str, Callable[[Row, EventRow, AttemptRow | None], Iterator[Part]]] = {
    "create": _list_created,
    "allocate": _list_allocated,
    **dict.fromkeys(("succeed", "fail", "silent", "release", "cancel"), _list_ended),
    "recall": _list_recalled,
    "give_up": _list_given_up,
    "wake": _list_woken,
    "retry": _list_retried,
}
"""Functions that yield the lines below an event, by its transition."""
