"""Reasons for people, stored as data with parameters. Their sentences are made only for output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from string import Formatter
from typing import Any

Value = str | int | float


class Reason(StrEnum):
    """Reasons, each with its English sentence. Names in braces are parameters."""

    sentence: str

    def __new__(cls, value: str, sentence: str) -> Reason:
        """Make a member with its stored text and its sentence."""
        reason = str.__new__(cls, value)
        reason._value_ = value
        reason.sentence = sentence
        return reason

    # The host of a subtask can't be asked.
    HOST_SILENT = "host_silent", "{host} does not answer"
    HOST_RESTS = "host_rests", "{host} rests ({cause})"
    HOST_BUSY = "host_busy", "{host} is asked as often as it may be"
    PERMIT_TOO_FAR = "permit_too_far", "{host} can be asked in {wait_s:.0f} s only"

    # An attempt ended before its work was done.
    QUOTA_USED = "quota_used", "quota of {quota} used up"
    BUDGET_USED = "budget_used", "budget used up"
    FEW_PAGES = "few_pages", "few of its requests gave a page: another node makes more of them"
    NODE_FAILED = "node_failed", "{error}: {text}"
    NODE_DRAINED = "node_drained", "the node is drained"
    NODE_REMOVED = "node_removed", "its node was removed"
    NODE_STOPPED = "node_stopped", "its node had stopped in order"
    NOT_STARTED = "not_started", "a live node did not start it in time"
    RUN_STOPS = "run_stops", "the runner stops"
    RUN_KILLED = "run_killed", "its run was killed"
    WORKER_STOPS = "worker_stops", "the worker stops"
    WORKER_KILLED = "worker_killed", "its process was killed"
    ENTRY_DIFFERS = (
        "entry_differs",
        "{node} can't crawl {site}: its catalog has another entry of it, or none",
    )
    NODE_LACKS_BROWSER = "node_lacks_browser", "{node} can't crawl {site}: it has no browser"
    REBALANCED = (
        "rebalanced",
        "rebalanced: {giver} has {waiting} not begun at {per_s:.2g} attempts/s and would begin this one in "
        "{giver_s:.3g} s, {taker} in {taker_s:.3g} s",
    )
    PRODUCT_REMOVED = "product_removed", "the product was removed"
    PRODUCT_CHANGED = "product_changed", "the product was changed"
    IMPORT_UNDONE = "import_undone", "its import was undone"
    PERSON_SAID = "person_said", "{text}"

    # A person has to look.
    INCURABLE = "incurable", "{failure}: no other node could cure it"
    RECALL_OFF = "recall_off", "{failure} on {node}; recall is switched off"
    NOBODY_ANSWERED = "nobody_answered", "{failure}: nobody answered {attempts} attempts in a row"
    RECALLS_USED = "recalls_used", "{failure} on {node} after {recalls} recalls in this round"
    SITE_GONE = "site_gone", "{catalog} has no site {site} (any more)"
    HOST_ANSWERS_NOBODY = "host_answers_nobody", "{host} answers no node, however often it is asked"

    # The quota of an attempt.
    SITE_DEFAULTS = "site_defaults", "defaults of the site"
    PERSON_SET_QUOTA = "person_set_quota", "a person set the quota"
    BEST_QUOTA = (
        "best_quota",
        "{hits} hits at a time give most pages a second where a page takes {page_s:.2f} s and {hazard:.2%} of pages "
        "begin a block or an outage (from {attempts:.1f} attempts)",
    )

    # A query is divided, or asked again.
    NO_HIT = "no_hit", "no hit for {words}: searched again without {dropped}"
    SPLIT_BY_TIME = (
        "split_by_time",
        "at least {hits:,} hits, the engine lists {most:,}: by {unit} into {parts} parts",
    )
    SPAN_TOO_SHORT = (
        "span_too_short",
        "at least {hits:,} hits, the engine lists {most:,}: no shorter range than one {unit} can be asked for",
    )
    MOST_PARTS = (
        "most_parts",
        "at least {hits:,} hits, the engine lists {most:,}: the task has {parts} parts already, which is the most",
    )

    # A site can't be asked.
    NO_NETWORK = "no_network", "no network: no host name could be looked up"
    NAME_UNKNOWN = "name_unknown", "{host} is no known name"
    NAME_UNANSWERED = "name_unanswered", "{host} could not be looked up"
    ROBOTS_REFUSE = "robots_refuse", "robots.txt of {host} refuses {path}"
    ROBOTS_ALLOW = "robots_allow", "robots.txt of both hosts allows it"
    ROBOTS_UNKNOWN = "robots_unknown", "robots.txt of {hosts} is not known"
    CATALOG_PERMITS = "catalog_permits", "by the catalog, whatever robots.txt says: {text}"
    SIGN_IN_NEEDED = "sign_in_needed", "{name} asks to sign in"
    BROWSER_NEEDED = "browser_needed", "its pages need a browser: {lacks}"
    NO_NODE_HAS_BROWSER = "no_node_has_browser", "its pages need a browser, and no node has one"
    ENGINE_UNSUPPORTED = "engine_unsupported", "{engine} is not supported: {text}"
    ENGINE_SILENT = "engine_silent", "{address} does not answer: {cause}"
    ENGINE_SLOW = "engine_slow", "{address} did not answer in {wait_s:g} s"
    ENGINE_DIFFERS = "engine_differs", "what answers at {address} is no SearXNG"
    ENGINE_GIVES_NO_JSON = "engine_gives_no_json", "{address} refuses to answer in JSON (403)"
    ENGINE_ANSWERS = "engine_answers", "{address} answers a search with {status}"

    # A node may not take a subtask, or not now (`tasks.scheduling.eligibility`, `decision`).
    NODE_AWAY = "node_away", "is not alive or is drained"
    OTHER_KIND = "other_kind", "does not crawl {kind} sites"
    SITE_UNSUPPORTED = (
        "site_unsupported",
        "has no browser for {site}, or another entry of it in its catalog, or none",
    )
    PERSON_CHOSE = "person_chose", "a person asked for {node}"
    ADDRESS_REFUSED = "address_refused", "{host} refuses its address at present"
    FAILED_BEFORE = "failed_before", "failed this subtask before"
    NO_FREE_SLOT = "no_free_slot", "has no free slot"
    PROBES_HOST = "probes_host", "probes {host} after a rest"
    ADDRESS_BUSY = "address_busy", "already asks there as often as its address may"

    # A node was chosen, or another was, by strategy `feedback`.
    SITE_NEW = "site_new", "nothing is known of its site yet"
    PLANNED = "planned", "planned here"
    SOONER_UNPLANNED = (
        "sooner_unplanned",
        "nothing planned for it waits, and it finishes this sooner than others",
    )
    REFUSED_LATELY = "refused_lately", "was refused here not long ago"
    OTHER_FIRST = "other_first", "planned here too, another was first"
    BETTER_ELSEWHERE = "better_elsewhere", "worth more at other sites, by the plan"

    # The same by the other strategies.
    DRAWN = "drawn", "can take it; one of these nodes is drawn"
    TAKES_TURNS = "takes_turns", "nodes take turns"
    SLOTS_TAKEN = "slots_taken", "{taken} of {slots} slots taken"
    SHARE_LEFT = "share_left", "{targets} targets of its share are left, by the mean of attempts"
    SHARE_LEFT_TRAINED = (
        "share_left_trained",
        "{targets} targets of its share are left, by the trained network",
    )
    SHARE_USED = "share_used", "its share is used up"
    NOT_KNOWN_HERE = "not_known_here", "not known here yet"
    PACE = "pace", "completion rate {completion:.3g}, {efficiency_s:.3g} s per page"
    TOO_SLOW = "too_slow", "too slow: completion rate {completion:.3g}, {efficiency_s:.3g} s per page"
    NEAR = "near", "one of the {nodes} nearest: {delay_ms:.3g} ms"
    FAR = "far", "not among the nearest: {delay_ms:.3g} ms"
    DELAY_UNKNOWN = "delay_unknown", "its delay to this site is not known"
    EXPECTED_DELAY = "expected_delay", "{delay_s:.3g} s until it is done there"
    HASHED = "hashed", "its URLs belong to this node, or to the next free one on the ring"

    # A subtask stays in the queue.
    NO_NODE = "no_node", "no node is alive"
    NO_NODE_OF_KIND = "no_node_of_kind", "no live node crawls {kind} sites"
    CHOSEN_NODE_AWAY = "chosen_node_away", "{node}, which a person asked for, is not alive or is drained"
    HOST_FULL = "host_full", "{host} is asked as often as it allows: no room for another attempt"
    ALL_BUSY = "all_busy", "every node that may run it is busy ({nodes})"
    HOST_PROBED = "host_probed", "{host} is probed after a rest (by {nodes})"
    ADDRESSES_BUSY = "addresses_busy", "nodes ask there as often as their addresses may ({nodes})"
    FORGIVEN_BUSY = "forgiven_busy", "waits for a free slot of {nodes}, whose failure would be forgiven"
    NODES_REFUSED = "nodes_refused", "held back: {hosts} refused {nodes} not long ago"
    SOONER_LATER = "sooner_later", "done sooner by waiting: {rates} pages/s, others reach {best:.3g}"
    NODES_TOO_SLOW = "nodes_too_slow", "free nodes are too slow ({rates} s per page, at most {limit_s:.3g})"
    SHARES_USED = "shares_used", "the share of {nodes} is used up; others have some of theirs left"
    WAITS_FOR_NEAR = "waits_for_near", "waits for one of the nodes nearest to {site}: {nodes}"
    FREE_ARE_SLOWER = "free_are_slower", "others wait longer for the free nodes than it will for {node}"
    SHORTEST_DELAY = "shortest_delay", "waits for {node}: {delay_s:.3g} s there, the shortest expected delay"
    WAITS_FOR_OWNER = "waits_for_owner", "waits for {nodes}, to which its URLs belong"

    # An alert is on (`tasks.scheduling.alerting`).
    SILENT_SINCE = "silent_since", "node {node} has given no sign of life since {time}"
    WAIT_FOR_PERSON = "wait_for_person", "waiting for a person: {subtasks:,} (reviewloop failed list)"
    NO_PAGE_STORED = (
        "no_page_stored",
        "no page was stored for {minutes:g} minutes, and work waits: reviewloop status",
    )
    COMPLETION_FELL = (
        "completion_fell",
        "{site} gave {lately:.0%} of {offered:,} hits in the last hour; before, {usual:.0%}: "
        "reviewloop control pairs --site {site}",
    )
    ENGINE_REFUSES = (
        "engine_refuses",
        "{engine} refuses {nodes} ({causes}), {times} times in a row: reviewloop nodes list",
    )
    THEME_RISES = (
        "theme_rises",
        "{product}: {theme} rises since {since}: {complaints} complaints in 4 weeks, {expected:.1f} expected:{quotes} "
        "reviewloop insight rising",
    )
    COMPLAINTS_RISE = (
        "complaints_rise",
        "{product}: complaints in all rise since {since}: {complaints} in 4 weeks at the sites that publish praise as "
        "well, {expected:.1f} expected:{quotes} reviewloop insight rising",
    )

    OTHER = "other", "{text}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason with its parameters, which are JSON values by name."""

    reason: Reason
    parameters: Mapping[str, Value]

    def __str__(self) -> str:
        """Return the English sentence."""
        return self.reason.sentence.format_map(self.parameters)

    def __hash__(self) -> int:
        """Return a hash that is equal for equal explanations."""
        return hash((self.reason, frozenset(self.parameters.items())))


def because(reason: Reason, **parameters: Value) -> Explanation:
    """Return a reason with its parameters.

    Raises:
        TypeError: the parameters are not those of this reason.
    """
    if parameters.keys() != parameter_names(reason):
        raise TypeError(f"{reason} takes {sorted(parameter_names(reason))}, not {sorted(parameters)}")
    return Explanation(reason, parameters)


@cache
def parameter_names(reason: Reason) -> frozenset[str]:
    """Return the names of the parameters of a reason."""
    return frozenset(name for _, name, _, _ in Formatter().parse(reason.sentence) if name is not None)


def as_document(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as the JSON object that is stored and printed."""
    return {"reason": explanation.reason.value, "parameters": dict(explanation.parameters)}


def from_document(stored: str | Mapping[str, Any]) -> Explanation:
    """Return a stored explanation. One that this version does not know becomes `OTHER`.

    Args:
        stored: the result of `as_document`, or its JSON.
    """
    told = json.loads(stored) if isinstance(stored, str) else stored
    try:
        return because(_BY_NAME[told["reason"]], **told["parameters"])
    except (KeyError, TypeError):
        return because(Reason.OTHER, text=json.dumps(told, ensure_ascii=False))


_BY_NAME = {reason.value: reason for reason in Reason}


def add_sentences(detail: Any) -> Any:
    """Return an event's detail with sentences added: `why` next to each `because`."""
    if isinstance(detail, list):
        return [add_sentences(one) for one in detail]
    if not isinstance(detail, Mapping):
        return detail
    told = {name: add_sentences(value) for name, value in detail.items()}
    if "because" in detail:
        told["why"] = str(from_document(detail["because"]))
    return told
