"""Tables of queues, coverage and nodes. Several commands show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from rich.text import Text

from app.cli.render import Part, table
from app.views.fields import STYLE_OF, format_counts
from app.views.host_waits import WAIT_FIELDS, HostWaitView
from app.views.nodes import NODE_FIELDS, NodeView, list_problems
from app.views.words import translate
from tasks.store.queries.products import Coverage

_LEAST_NODE_FIELDS = "attempts_per_s kinds paused free permit_address waiting expected_wait_s"


def queue_line(queues: Mapping[str, int], *, all_of_them: bool = True) -> Text:
    """Return the queues as one line, in the order of the loop."""
    parts = [
        Text(f"{translate(name)} {n:,}", style=STYLE_OF.get(name, "") if n else "dim")
        for name, n in queues.items()
        if n or all_of_them
    ]
    return Text("  ").join(parts)


def coverage_text(of: Coverage | None) -> str | None:
    """Return which share of the reachable hits is stored, and how the hits were counted; `None` if unknown."""
    if of is None or of.share is None:
        return None
    counts = format_counts(dict(sorted(of.rests_on.items())))
    return translate(
        "{share:.0%} of at least {reachable:,} ({counts})"
        if of.at_least
        else "{share:.0%} of {reachable:,} ({counts})",
        share=of.share,
        reachable=of.reachable,
        counts=counts,
    )


def tabulate_waits(rows: Sequence[HostWaitView], now: datetime) -> Part:
    """Return the table of the hosts that subtasks wait for."""
    return table(rows, WAIT_FIELDS, title=translate("Hosts that subtasks wait for"), now=now)


def list_node_parts(rows: Sequence[NodeView], now: datetime) -> Iterator[Part]:
    """Yield the table of the nodes, and a line for each problem of a node."""
    yield table(rows, NODE_FIELDS, least=_LEAST_NODE_FIELDS, now=now)
    for row in rows:
        yield from (Text(problem, style="yellow") for problem in list_problems(row))
