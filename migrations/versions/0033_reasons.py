"""Reasons for people as data, in the place of English sentences"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from string import Formatter
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_AT_ONCE = 5_000
_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")

# The sentences of 0.11.0 and older. A name in braces is a parameter; one with a type is a number.
_SENTENCES = {
    "host_silent": ["{host} does not answer"],
    "host_busy": ["{host} is asked as often as it may be"],
    "host_rests": ["{host} rests ({cause})"],
    "permit_too_far": ["{host} can be asked in {wait_s:float} s only"],
    "quota_used": ["quota of {quota:int} used up"],
    "budget_used": ["budget used up"],
    "few_pages": ["few of its requests gave a page: another node makes more of them"],
    "node_drained": ["the node is drained"],
    "node_removed": ["its node was removed"],
    "node_stopped": ["its node had stopped in order"],
    "not_started": ["a live node did not start it in time"],
    "run_stops": ["the runner stops"],
    "run_killed": ["its run was killed"],
    "worker_stops": ["the worker stops"],
    "worker_killed": ["its process was killed"],
    "entry_differs": ["{node} can't crawl {site}: its catalog has another entry of it, or none"],
    "node_lacks_browser": ["{node} can't crawl {site}: it has no browser"],
    "rebalanced": [
        "rebalanced: {giver} has {waiting:int} not begun at {per_s:float} attempts/s and would begin this one in "
        "{giver_s:float} s, {taker} in {taker_s:float} s"
    ],
    "product_removed": ["the product was removed"],
    "product_changed": ["the product was changed"],
    "import_undone": ["its import was undone"],
    "incurable": ["{failure}: no other node could cure it"],
    "recall_off": ["{failure} on {node}; recall is switched off"],
    "nobody_answered": ["{failure}: nobody answered {attempts:int} attempts in a row"],
    "recalls_used": ["{failure} on {node} after {recalls:int} recalls in this round"],
    "site_gone": ["{catalog} has no site {site} (any more)"],
    "host_answers_nobody": ["{host} answers no node, however often it is asked"],
    "person_set_quota": ["a person set the quota; {_}"],
    "site_defaults": ["defaults of the site"],
    "best_quota": [
        "{hits:int} hits at a time give most pages a second where a page takes {page_s:float} s and {hazard:share} of "
        "pages begin a block or an outage (from {attempts:float} attempts)"
    ],
    "no_hit": ["no hit with {words}: asked anew without {dropped}"],
    "split_by_time": [
        "{hits:int} hits, the engine lists {most:int}: by {unit} into {parts:int} parts",
        "more than {hits:int} hits, the engine lists {most:int}: by {unit} into {parts:int} parts",
    ],
    "span_too_short": [
        "{hits:int} hits, the engine lists {most:int}: no shorter range than one {unit} can be asked for",
        "more than {hits:int} hits, the engine lists {most:int}: no shorter range than one {unit} can be asked for",
    ],
    "most_parts": [
        "{hits:int} hits, the engine lists {most:int}: the task has {parts:int} parts already, which is the most",
        "more than {hits:int} hits, the engine lists {most:int}: the task has {parts:int} parts already, which is "
        "the most",
    ],
    "no_network": ["no network: no host name could be looked up"],
    "name_unknown": ["{host} is no known name"],
    "name_unanswered": ["{host} could not be looked up"],
    "robots_refuse": ["robots.txt of {host} refuses {path}"],
    "sign_in_needed": ["{name} asks to sign in"],
    "no_node_has_browser": ["its pages need a browser, and no node has one"],
    "browser_needed": ["its pages need a browser: {lacks}"],
    "engine_unsupported": ["{engine} is not supported: {text}"],
    "engine_slow": ["{_}: {address} did not answer in {wait_s:float} s"],
    "engine_differs": ["{_}: what answers at {address} is no SearXNG"],
    "engine_gives_no_json": ["{_}: {address} refuses to answer in JSON (403)"],
    "engine_answers": ["{_}: {address} answers a search with {status:int}"],
    "engine_silent": ["{_}: {address} does not answer: {cause}"],
    "node_failed": ["{error:name}: {text}"],
}
_NEVER_S = 31_536_000.0


def _class_name(text: str) -> str:
    if not text.isidentifier():
        raise ValueError(text)
    return text


_VALUES: Mapping[str, Callable[[str], str | float]] = {
    "": str,
    "name": _class_name,
    "int": lambda text: int(text.replace(",", "")),
    "float": lambda text: min(float(text), _NEVER_S),
    "share": lambda text: float(text.removesuffix("%")) / 100,
}


def _parameters(sentence: str, text: str) -> dict[str, str | float] | None:
    """Return the parameters with which a sentence reads so; `None` if there are none."""
    found: dict[str, str | float] = {}
    name, form = None, ""
    for literal, next_name, next_form, _ in (*Formatter().parse(sentence), ("", None, "", None)):
        if name is None:
            value, literal_found = "", text.startswith(literal)
            text = text.removeprefix(literal)
        elif literal:
            value, separator, text = text.partition(literal)
            literal_found = bool(separator and value)
        else:
            value, literal_found, text = text, bool(text), ""
        if not literal_found:
            return None
        if name is not None and name != "_":
            try:
                found[name] = _VALUES[form](value)
            except ValueError:
                return None
        name, form = next_name, next_form or ""
    return None if text else found


def explanation(sentence: str) -> dict[str, Any]:
    """Return the reason and its parameters of a stored sentence; `other` for one that no version wrote."""
    for reason, forms in _SENTENCES.items():
        for form in forms:
            if (parameters := _parameters(form, sentence)) is not None:
                return {"reason": reason, "parameters": parameters}
    return {"reason": "other", "parameters": {"text": sentence}}


def _changed(detail: Mapping[str, Any], transition: str) -> dict[str, Any]:
    """Return the detail of an event with explanations for sentences."""
    new = dict(detail)
    for name in ("split", "relaxed", "full"):
        if isinstance(new.get(name), str):
            new[name] = {"because": explanation(new[name])}
    if isinstance(new.get("modification"), Mapping):
        new["modification"] = _changed(new["modification"], "")
    if isinstance(why := new.pop("why", None), str) and why:
        said = {"reason": "person_said", "parameters": {"text": why}}
        known = explanation(why)
        new["because"] = said if transition == "cancel" and known["reason"] == "other" else known
    return new


def upgrade() -> None:
    """Turn the sentences of events and of sites that could not be asked into reasons."""
    bind = op.get_bind()
    events = sa.table("events", sa.column("id"), sa.column("transition"), sa.column("detail", _JSON))
    for rows in _batches(bind, events):
        changes = [(number, detail, _changed(detail, transition)) for number, transition, detail in rows]
        changed = [{"number": number, "new": new} for number, old, new in changes if new != old]
        if changed:
            update = events.update().where(events.c.id == sa.bindparam("number"))
            bind.execute(update.values(detail=sa.bindparam("new", type_=_JSON)), changed)
    _change_unplanned_sites(bind)


def _batches(bind: sa.Connection, events: sa.TableClause) -> Iterator[list[Any]]:
    last = 0
    while True:
        query = sa.select(events.c.id, events.c.transition, events.c.detail)
        with_detail = events.c.detail.is_not(None) & (events.c.id > last)
        rows = bind.execute(query.where(with_detail).order_by(events.c.id).limit(_AT_ONCE)).all()
        if not rows:
            return
        last = rows[-1][0]
        yield [row for row in rows if isinstance(row[2], Mapping)]


def _change_unplanned_sites(bind: sa.Connection) -> None:
    empty = json.dumps({"reason": "other", "parameters": {"text": ""}})
    op.add_column(
        "unplanned_sites", sa.Column("because", _JSON, nullable=False, server_default=sa.text(f"'{empty}'"))
    )
    sites = sa.table("unplanned_sites", sa.column("why"), sa.column("because", _JSON))
    for (why,) in bind.execute(sa.select(sites.c.why).distinct()).all():
        bind.execute(sites.update().where(sites.c.why == why).values(because=explanation(why)))
    with op.batch_alter_table("unplanned_sites") as batch:
        batch.drop_column("why")
        batch.alter_column("because", server_default=None)
