"""`reviewloop explain`: the story of a subtask, with the data behind every decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from app.cli.options import db_option, json_option, settings_of, sites_option, store_there
from app.cli.output import clock, percent, print_json, printed, seconds, shown, table
from app.cli.tables import COLORS
from app.config import Settings
from tasks.domain.errors import UnknownSubtask
from tasks.domain.states import State
from tasks.store import page_links, reports
from tasks.store.database import Store, read_now

Row = Mapping[str, Any]


@click.command()
@click.argument("subtask", type=int)
@db_option
@sites_option
@json_option
def explain(subtask: int, db: str | None, sites: str | None, as_json: bool) -> None:
    """Show why a subtask went where it went.

    Each decision with its candidates and the figures it rests on.
    Allocation: every node with its completion rate, efficiency and score. Modification: quota and budget, and why.
    Recall: why, after how long, which nodes to avoid. Wake: what was left, and the subtask that follows.

    \b
    Example:
      reviewloop explain 17
    """
    settings = settings_of(db, sites)
    with store_there(settings) as store:
        with store.read() as conn:
            row = reports.subtask(conn, subtask)
            if row is None:
                raise UnknownSubtask(f"there is no subtask {subtask}")
            events = reports.events_of(conn, subtask)
            attempts = reports.attempts_of(conn, subtask)
            targets = reports.targets_of(conn, subtask)
            refused = page_links.refusal_counts(conn, site=row["site"], product_id=row["product_id"])
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
        told = ", ".join(f"{one.n} {one.reason.replace('_', ' ')} on {one.pages} pages" for one in refused)
        out.print(f"Of this product's pages on this site, not stored as reviews: {told}.", soft_wrap=True)
    numbers = {attempt["id"]: attempt for attempt in attempts}
    for event in events:
        _print_event(out, event, events[0]["at"], numbers)
    if now_would is not None:
        out.print(f"\nNow      {now_would['why']}", style="bold cyan", soft_wrap=True)
        if now_would["candidates"]:
            out.print(_candidates(now_would["candidates"], None))


def _preview(settings: Settings, store: Store, subtask_id: int) -> dict[str, Any]:
    """What allocation would decide about a waiting subtask at this moment (chance included)."""
    from app import wiring
    from tasks.jobs.sweeps import preview

    context = wiring.context(settings, settings.catalog())
    with store.read() as conn:
        decision = preview(conn, read_now(conn), context)
    for assignment in decision.assignments:
        if assignment.subtask.id == subtask_id:
            why = f"allocation would give it to {assignment.node}"
            return {"node": assignment.node, "why": why, "candidates": assignment.candidates}
    for waiting in decision.waiting:
        if subtask_id in waiting.subtask_ids:
            return {"node": None, "why": f"it waits: {waiting.why}", "candidates": ()}
    return {
        "node": None,
        "why": "it is held back, or too far behind in WAIT to be looked at",
        "candidates": (),
    }


def _print_head(out: Console, row: Row, targets: Sequence[Row]) -> None:
    out.print(
        Text(f"Subtask {row['id']}  ", style="bold")
        + f"{shown(row['product'])} on {row['site']} (by {row['engine']}, {row['kind']}), chunk {row['chunk']}  "
        + Text(row["state"], style=COLORS[row["state"]]),
        soft_wrap=True,
    )
    states: dict[str, int] = {}
    for target in targets:
        name = f"{target['state'].replace('_', ' ')} {'result page' if target['kind'] == 'result' else 'hit'}"
        states[name] = states.get(name, 0) + 1
    told = ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for name, n in sorted(states.items()))
    found = "unknown" if row["found"] is None else f"{row['found']:,} ({row['found_provenance']})"
    if row["found_reported"] not in (None, row["found"]):
        found += f", the engine reports {row['found_reported']:,}"
    parent = f"; follows subtask {row['parent_id']}" if row["parent_id"] else ""
    out.print(
        f"Round {row['round']}, {row['attempts']} attempts, {row['recalls']} recalls; found: {found}; "
        f"targets: {told or 'none'}{parent}",
        soft_wrap=True,
    )
    if row["assigned_node"]:
        out.print(f"A person asked for {row['assigned_node']}.")
    if row["not_before"] and row["state"] == State.WAIT:
        out.print(f"Held back until {clock(row['not_before'])} UTC.")


def _print_event(out: Console, event: Row, begin: datetime, attempts: Mapping[int, Row]) -> None:
    after = (event["at"] - begin).total_seconds()
    style = COLORS[event["to_state"]]
    head = Text.assemble(
        (f"\n{clock(event['at'])} ", "dim"),
        (f"+{seconds(after)}  ", "dim"),
        (event["transition"].replace("_", " "), "bold"),
        f"  {event['from_state'] or '-'} → ",
        (event["to_state"], style),
    )
    if event["node"]:
        head.append(f"  {event['node']}")
    if event["reason"]:
        head.append(f"  {event['reason']}", style="red")
    out.print(head, soft_wrap=True)
    tell = _TELL.get(event["transition"])
    if tell is not None and event["detail"] is not None:
        tell(out, event["detail"], event, attempts)


def _tell_create(out: Console, detail: Row, _event: Row, _attempts: Mapping[int, Row]) -> None:
    if "follows" in detail:
        out.print(f"  carries on what subtask {detail['follows']} left: {detail['left']} hits to do")
    else:
        out.print(
            f"  chunk {detail['chunk']} of {detail['of']}, {detail['result_pages']} result pages to ask"
        )
    if "span" in detail:
        begin, end = detail["span"]
        out.print(f"  what is from {begin} up to {end}: the undivided query holds too much")
    if "dropped" in detail:
        words = shown(" ".join(detail["keywords"]))
        out.print(f"  for {words}, without {shown(', '.join(detail['dropped']))}", soft_wrap=True)


def _tell_allocate(out: Console, detail: Row, event: Row, attempts: Mapping[int, Row]) -> None:
    attempt = attempts.get(event["attempt_id"])
    number = f"attempt {attempt['no']}, " if attempt else ""
    out.print(f"  {number}by strategy {detail['strategy']}", soft_wrap=True)
    out.print(_candidates(detail["candidates"], event["node"]))
    if detail["forgiven"]:
        out.print(f"  forgiven: {detail['forgiven']} failed it before, and nobody else is left")
    limits = detail["modification"]
    out.print(
        f"  quota {limits['quota']} hits, budget {limits['budget_s']:.0f} s: {limits['why']}", soft_wrap=True
    )


def _candidates(candidates: Sequence[Any], chosen: str | None) -> Any:
    def of(candidate: Any, name: str) -> Any:
        return candidate[name] if isinstance(candidate, Mapping) else getattr(candidate, name)

    def mark(candidate: Any) -> Text:
        name = of(candidate, "node")
        if name == chosen:
            return Text(f"{name} ←", style="bold green")
        return Text(name, style="" if of(candidate, "eligible") else "dim")

    return table(
        ("node", "completion", "per page", "attempts", "score", "why>"),
        (
            (
                mark(one),
                percent(of(one, "completion")),
                seconds(of(one, "efficiency_s")),
                round(of(one, "attempts"), 2),
                of(one, "score"),
                of(one, "why"),
            )
            for one in candidates
        ),
    )


def _tell_end(out: Console, detail: Row, event: Row, _attempts: Mapping[int, Row]) -> None:
    if "offered" in detail:
        out.print(
            f"  offered {detail['offered']}, tried {detail['tried']}, collected {detail['collected']}, known "
            f"{detail['known']}; {detail['requests']} requests, {detail['bytes']:,} bytes, "
            f"active {seconds(detail['active_s'])}, waited {seconds(detail['wait_s'])}",
            soft_wrap=True,
        )
    if detail.get("errors"):
        told = ", ".join(f"{n} × {name}" for name, n in detail["errors"].items())
        out.print(f"  errors: {told}", style="red", soft_wrap=True)
    if event["transition"] == "silent":
        out.print(f"  no sign of life for {seconds(detail['silent_s'])}")
    for key in ("note", "why"):
        if detail.get(key):
            out.print(f"  {shown(str(detail[key]))}", soft_wrap=True)


def _tell_recall(out: Console, detail: Row, _event: Row, _attempts: Mapping[int, Row]) -> None:
    out.print(
        f"  recall {detail['recall']}: may go again in {seconds(detail['delay_s'])}, rather not to "
        f"{', '.join(detail['avoid']) or 'nobody'}",
        soft_wrap=True,
    )


def _tell_give_up(out: Console, detail: Row, _event: Row, _attempts: Mapping[int, Row]) -> None:
    out.print(f"  {detail['why']}", soft_wrap=True)
    out.print(f"  suggested: {detail['suggestion']}", style="yellow", soft_wrap=True)


def _tell_wake(out: Console, detail: Row, _event: Row, _attempts: Mapping[int, Row]) -> None:
    if detail["follow_up"]:
        out.print(f"  {detail['left']} hits left over: subtask {detail['follow_up']} carries on")
        (old_quota, quota), (old_s, budget_s) = detail["quota"], detail["budget_s"]
        why = detail["modification"]["why"]
        out.print(
            f"  quota {old_quota} → {quota}, budget {old_s:.0f} → {budget_s:.0f} s: {why}", soft_wrap=True
        )
    else:
        out.print("  nothing left over")
    for what in ("split", "relaxed", "full"):
        if what in detail:
            out.print(f"  {what}: {shown(detail[what])}", soft_wrap=True)
    if detail["next_chunk"]:
        out.print(f"  the last result page showed more: subtask {detail['next_chunk']} is the next chunk")


def _tell_retry(out: Console, detail: Row, _event: Row, _attempts: Mapping[int, Row]) -> None:
    where = f" on {detail['assigned_node']} only" if detail["assigned_node"] else ""
    out.print(f"  a person: round {detail['round']}, {detail['left']} hits to do{where}")


_TELL: Mapping[str, Callable[[Console, Row, Row, Mapping[int, Row]], None]] = {
    "create": _tell_create,
    "allocate": _tell_allocate,
    "succeed": _tell_end,
    "fail": _tell_end,
    "silent": _tell_end,
    "release": _tell_end,
    "cancel": _tell_end,
    "recall": _tell_recall,
    "give_up": _tell_give_up,
    "wake": _tell_wake,
    "retry": _tell_retry,
}
