"""`reviewloop explain`: the story of a subtask, with the data behind every decision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.options import db_option, json_option, settings_of, sites_option, store_there
from app.cli.output import clock, percent, print_json, printed, table
from app.files.harmless import shown
from app.views.durations import seconds
from app.views.fields import STYLE_OF
from tasks.domain.errors import UnknownSubtask
from tasks.domain.failures import SUGGESTIONS
from tasks.domain.host_wait import HostWait
from tasks.domain.page_floor import PageFloor
from tasks.domain.states import State
from tasks.scheduling.decision import Ruling
from tasks.store.content import links
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.subtask import AttemptRow, EventRow, TargetRow
from tasks.store.sql.database import Store

if TYPE_CHECKING:
    from app.run.setting_fields import Settings

Row = Mapping[str, Any]
Lines = Iterator[str | Text | Table]


@click.command()
@click.argument("subtask", type=int)
@db_option
@sites_option
@json_option
def explain(subtask: int, db: str | None, sites: str | None, as_json: bool) -> None:
    """Show the reasons for the way that a subtask took.

    Show each decision with its candidates and the figures behind it. Allocation: every node with its
    completion rate, efficiency and score. Modification: quota and budget, and why. Recall: why, after how
    long, which nodes to avoid. Wake: what was left, and the subtask that follows.

    \b
    Example:
      reviewloop explain 17
    """
    settings = settings_of(db, sites)
    with store_there(settings) as store:
        with store.read() as tx:
            row = subtask_queries.get_subtask(tx, subtask)
            if row is None:
                raise UnknownSubtask("there is no subtask {subtask}", subtask=subtask)
            events = subtask_queries.list_events(tx, subtask)
            attempts = subtask_queries.list_attempts(tx, subtask)
            targets = subtask_queries.list_targets(tx, subtask)
            refused = links.refusal_counts(tx, site=row["site"], product_id=row["product_id"])
        now_would = _preview(settings, store, subtask) if row["state"] == State.WAIT else None
    if as_json:
        print_json(
            {
                "subtask": row,
                "events": events,
                "attempts": attempts,
                "targets": targets,
                "refused": [asdict(reason) for reason in refused],
                "would_be_decided_now": now_would,
            }
        )
        return
    out = printed()
    _print_head(out, row, targets)
    if refused:
        reasons = ", ".join(f"{one.n} {one.reason.replace('_', ' ')} on {one.pages} pages" for one in refused)
        out.print(f"Of this product's pages on this site, not stored as reviews: {reasons}.")
    numbers = {attempt.id: attempt for attempt in attempts}
    if row["log_dropped"]:
        out.print(
            "It ended so long ago that its event log was dropped (REVIEWLOOP_KEEP_LOG_DAYS).", style="dim"
        )
    for event in events:
        _print_event(out, event, events[0].at, numbers)
    if now_would is not None:
        out.print(f"\nNow      {now_would['why']}", style="bold cyan")
        if now_would["candidates"]:
            out.print(_candidates(now_would["candidates"], None))
        for line in _ruled(now_would):
            out.print(line)


def _preview(settings: Settings, store: Store, subtask_id: int) -> dict[str, Any]:
    """The decision that allocation would make about a waiting subtask at this moment (chance included)."""
    from app.run import sweep_wiring
    from tasks.jobs.sweeps import preview

    context = sweep_wiring.context(settings, settings.catalog())
    with store.read() as tx:
        decision = preview(tx, context)
    for assignment in decision.assignments:
        if assignment.subtask.id == subtask_id:
            why = f"allocation would give it to {assignment.node}"
            return {
                "node": assignment.node,
                "why": why,
                "candidates": assignment.candidates,
                "prices": asdict(assignment.prices) if assignment.prices is not None else None,
                "floor": asdict(assignment.floor) if assignment.floor.least_share else None,
            }
    for waiting in decision.waiting:
        if subtask_id in waiting.subtask_ids:
            return {"node": None, "why": f"it waits: {waiting.why}", "candidates": ()}
    return {
        "node": None,
        "why": "it is held back, or too far behind in WAIT to be looked at",
        "candidates": (),
    }


def _print_head(out: Console, row: Row, targets: Sequence[TargetRow]) -> None:
    out.print(
        Text(f"Subtask {row['id']}  ", style="bold")
        + f"{shown(row['product'])} on {row['site']} (by {row['engine']}, {row['kind']}), chunk {row['chunk']}  "
        + Text(row["state"], style=STYLE_OF[row["state"]])
    )
    states = Counter(
        f"{target.state.replace('_', ' ')} {'result page' if target.kind == 'result' else 'hit'}"
        for target in targets
    )
    counts = ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in sorted(states.items()))
    found = "unknown" if row["found"] is None else f"{row['found']:,} ({row['found_provenance']})"
    if row["found_reported"] not in (None, row["found"]):
        found += f", the engine reports {row['found_reported']:,}"
    parent = f"; follows subtask {row['parent_id']}" if row["parent_id"] else ""
    out.print(
        f"Round {row['round']}, {row['attempts']} attempts, {row['recalls']} recalls; found: {found}; "
        f"targets: {counts or 'none'}{parent}"
    )
    if row["assigned_node"]:
        out.print(f"A person asked for {row['assigned_node']}.")
    if row["assigned_quota"]:
        out.print(f"A person set its quota: {row['assigned_quota']:,} hits an attempt.")
    if row["not_before"] and row["state"] == State.WAIT:
        why = f": {HostWait(row['wait_host'], row['wait_reason'])}" if row["wait_host"] else ""
        out.print(f"Held back until {clock(row['not_before'])}{why}.")
    if row["idle_releases"]:
        out.print(f"Attempts in a row that nobody answered: {row['idle_releases']}.")


def _print_event(out: Console, event: EventRow, begin: datetime, attempts: Mapping[int, AttemptRow]) -> None:
    after = (event.at - begin).total_seconds()
    style = STYLE_OF[event.to_state]
    head = Text.assemble(
        (f"\n{clock(event.at)} ", "dim"),
        (f"+{seconds(after)}  ", "dim"),
        (event.transition.replace("_", " "), "bold"),
        f"  {event.from_state or '-'} → ",
        (event.to_state, style),
    )
    if event.node:
        head.append(f"  {event.node}")
    if event.reason:
        head.append(f"  {event.reason}", style="red")
    out.print(head)
    if event.detail is not None and event.transition in _DETAILS:
        for line in _DETAILS[event.transition](event.detail, event, attempts.get(event.attempt_id or 0)):
            out.print(line)


def _created(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Lines:
    if "follows" in detail:
        yield f"  carries on what subtask {detail['follows']} left: {detail['left']} hits to do"
    else:
        yield f"  chunk {detail['chunk']} of {detail['of']}, {detail['result_pages']} result pages to fetch"
    if "span" in detail:
        begin, end = detail["span"]
        yield f"  only what is from {begin} up to {end}: the whole query has more hits than can be listed"
    if "dropped" in detail:
        words = shown(" ".join(detail["keywords"]))
        yield f"  for {words}, without {shown(', '.join(detail['dropped']))}"


def _allocated(detail: Row, event: EventRow, attempt: AttemptRow | None) -> Lines:
    number = f"attempt {attempt.no}, " if attempt else ""
    yield f"  {number}by strategy {detail['strategy']}"
    yield _candidates(detail["candidates"], event.node)
    if detail["forgiven"]:
        yield f"  forgiven: {detail['forgiven']} failed it before, and nobody else is left"
    yield from _ruled(detail)
    limits = detail["modification"]
    yield f"  quota {limits['quota']} hits, budget {limits['budget_s']:.0f} s: {limits['why']}"


def _ruled(decided: Row) -> Lines:
    """The constraint that ruled a decision, and when its attempt ends early; nothing where the strategy has no plan."""
    prices, floor = decided.get("prices"), decided.get("floor")
    if prices is not None:
        worth = f"a permit is worth {prices['permit']:.2g} pages, a second of a slot {prices['slot']:.2g}"
        yield f"  ruled by {_RULINGS[prices['ruled']]}: {worth}; a request here gives {prices['page_chance']:.2g}"
    if floor is not None:
        tries = PageFloor(**floor).tries_without_page
        yield (
            f"  floor: {floor['least_share']:.2g} pages of a request, as another node would make; ends early where it "
            f"is {floor['slack']:.2g} pages behind that ({tries} tries without a page)"
        )


_RULINGS = {
    Ruling.PERMITS: "the host's permits",
    Ruling.SLOTS: "slots",
    Ruling.NEITHER: "neither permits nor slots",
}


def _candidates(candidates: Sequence[Any], chosen: str | None) -> Table:
    def field(candidate: Any, name: str) -> Any:
        return candidate[name] if isinstance(candidate, Mapping) else getattr(candidate, name)

    def mark(candidate: Any) -> Text:
        name = field(candidate, "node")
        if name == chosen:
            return Text(f"{name} ←", style="bold green")
        return Text(name, style="" if field(candidate, "eligible") else "dim")

    return table(
        ("node", "completion", "per page", "attempts", "score", "why>"),
        (
            (
                mark(one),
                percent(field(one, "completion")),
                seconds(field(one, "efficiency_s")),
                round(field(one, "attempts"), 2),
                field(one, "score"),
                field(one, "why"),
            )
            for one in candidates
        ),
    )


def _ended(detail: Row, event: EventRow, _attempt: AttemptRow | None) -> Lines:
    if "offered" in detail:
        yield (
            f"  offered {detail['offered']}, tried {detail['tried']}, collected {detail['collected']}, known "
            f"{detail['known']}; {detail['requests']} requests, {detail['bytes']:,} bytes, "
            f"active {seconds(detail['active_s'])}, waited {seconds(detail['wait_s'])}"
        )
    if detail.get("errors"):
        errors = ", ".join(f"{n} × {name}" for name, n in detail["errors"].items())
        yield Text(f"  errors: {errors}", style="red")
    if event.transition == "silent":
        yield f"  no sign of life for {seconds(detail['silent_s'])}"
    if "why" in detail:
        yield f"  {shown(detail['why'])}"
    if detail.get("delay_s"):
        yield f"  no node may ask before: it may go again in {seconds(detail['delay_s'])}"


def _recalled(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Lines:
    avoid = ", ".join(detail["avoid"]) or "nobody"
    yield f"  recall {detail['recall']}: may go again in {seconds(detail['delay_s'])}, rather not to {avoid}"


def _given_up(detail: Row, event: EventRow, _attempt: AttemptRow | None) -> Lines:
    yield f"  {detail['why']}"
    yield Text(f"  suggested: {SUGGESTIONS.get(event.reason or '', '')}", style="yellow")


def _woken(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Lines:
    if detail["follow_up"]:
        yield f"  {detail['left']} hits left over: subtask {detail['follow_up']} carries on"
        (old_quota, quota), (old_s, budget_s) = detail["quota"], detail["budget_s"]
        why = detail["modification"]["why"]
        yield f"  quota {old_quota} → {quota}, budget {old_s:.0f} → {budget_s:.0f} s: {why}"
    else:
        yield "  nothing left over"
    yield from (
        f"  {what}: {shown(detail[what]['why'])}" for what in ("split", "relaxed", "full") if what in detail
    )
    if detail["next_chunk"]:
        yield f"  the last result page showed more: subtask {detail['next_chunk']} is the next chunk"


def _retried(detail: Row, _event: EventRow, _attempt: AttemptRow | None) -> Lines:
    where = f" on {detail['assigned_node']} only" if detail["assigned_node"] else ""
    quota = f", at most {detail['assigned_quota']:,} an attempt" if "assigned_quota" in detail else ""
    yield f"  a person: round {detail['round']}, {detail['left']} hits to do{where}{quota}"


_DETAILS: Mapping[str, Callable[[Row, EventRow, AttemptRow | None], Lines]] = {
    "create": _created,
    "allocate": _allocated,
    **dict.fromkeys(("succeed", "fail", "silent", "release", "cancel"), _ended),
    "recall": _recalled,
    "give_up": _given_up,
    "wake": _woken,
    "retry": _retried,
}
"""Printers of the lines below an event, by its transition."""
