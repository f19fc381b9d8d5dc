"""Decide if a node may take a subtask, and why not. No other module decides this.

1. The node has the subtask's kind: meta (0) or microblog (1) (2014 paper, allocation 1); its catalog has the site as
   the scheduler's has it; and it has a browser if the site's pages need one. A node reports both when it registers.
2. If a person chose a node, no other node may take the subtask.
3. None of the subtask's hosts refuses the node's address at present.
4. A node that failed the subtask before is avoided. If rules 1 to 3 leave no other node, the oldest failure among
   the remaining nodes is forgiven. A busy node counts as another node: the subtask waits for it. The node that a
   person chose is always forgiven.

Only nodes that are alive and not drained are passed in. Free slots and the limits of hosts are another question
(`tasks.scheduling.capacity`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tasks.domain.facts import HostFacts, NodeFacts, SubtaskFacts
from tasks.domain.reasons import Explanation, Reason, because

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Nodes = Mapping[str, NodeFacts]
"""Nodes that are alive and not drained, by name."""

Hosts = Mapping[str, HostFacts]
"""Hosts by name. A missing host refuses no node."""


def may_take(subtask: SubtaskFacts, node: str, nodes: Nodes, hosts: Hosts) -> bool:
    """Return True if the node may take the subtask, now or once it has a free slot."""
    if _exclusion_reason(subtask, node, nodes, hosts) is not None:
        return False
    if node not in subtask.failed_on or subtask.assigned == node:
        return True
    return forgiven(subtask, nodes, hosts) == node


def why_not(subtask: SubtaskFacts, node: str, nodes: Nodes, hosts: Hosts) -> Explanation | None:
    """Return the reason why the node may not take the subtask; `None` if it may."""
    excluded = _exclusion_reason(subtask, node, nodes, hosts)
    if excluded is not None or may_take(subtask, node, nodes, hosts):
        return excluded
    return because(Reason.FAILED_BEFORE)


def forgiven(subtask: SubtaskFacts, nodes: Nodes, hosts: Hosts) -> str | None:
    """Return the node whose failure is forgiven (rule 4); `None` if no failure is forgiven."""
    failed_on = subtask.failed_on
    if not failed_on:
        return None
    if subtask.assigned is not None:
        return subtask.assigned if subtask.assigned in failed_on else None
    if any(
        name not in failed_on and _exclusion_reason(subtask, name, nodes, hosts) is None for name in nodes
    ):
        return None
    return next((name for name in failed_on if _exclusion_reason(subtask, name, nodes, hosts) is None), None)


def rest_s(subtask: SubtaskFacts, node: str, nodes: Nodes, hosts: Hosts) -> float | None:
    """Return the seconds until rests allow the node to take the subtask: 0 for now, `None` if another rule forbids."""
    if may_take(subtask, node, nodes, hosts):
        return 0.0
    if node in subtask.failed_on or _exclusion_reason(subtask, node, nodes, {}) is not None:
        return None
    views = [hosts[name] for name in subtask.hosts if name in hosts and node in hosts[name].resting]
    return max((view.rests_s.get(node, math.inf) for view in views), default=None)


def eligible(subtask: SubtaskFacts, nodes: Nodes, hosts: Hosts) -> list[str]:
    """Return the nodes that may take the subtask, including busy ones, in the order of `nodes`."""
    return [name for name in nodes if may_take(subtask, name, nodes, hosts)]


def eligible_for_sites(examples: Sequence[SubtaskFacts], nodes: Nodes, hosts: Hosts) -> NDArray[np.bool_]:
    """Return which nodes may take work of each site by rules 1 and 3, which are the same for all subtasks of a site.

    Args:
        examples: one subtask of each site.
        nodes: see `Nodes`.
        hosts: see `Hosts`.

    Returns:
        Array of bool with shape (sites, nodes).
    """
    kinds = {one.kind: [one.kind in node.kinds for node in nodes.values()] for one in examples}
    import numpy as np  # commands that only list things don't need it

    allowed = np.array([kinds[one.kind] for one in examples], bool).reshape(len(examples), len(nodes))
    columns = {name: column for column, name in enumerate(nodes)}
    lacking = [(column, node.lacks) for column, node in enumerate(nodes.values()) if node.lacks]
    for row, one in enumerate(examples):
        for column, lacks in lacking:
            if one.site in lacks:
                allowed[row, column] = False
        for host in one.hosts:
            for name in hosts[host].resting if host in hosts else ():
                if name in columns:
                    allowed[row, columns[name]] = False
    return allowed


def _exclusion_reason(subtask: SubtaskFacts, node: str, nodes: Nodes, hosts: Hosts) -> Explanation | None:
    """Return the reason why rules 1 to 3 exclude the node; `None` if they don't."""
    view = nodes.get(node)
    if view is None:
        return because(Reason.NODE_AWAY)
    if subtask.kind not in view.kinds:
        return because(Reason.OTHER_KIND, kind=subtask.kind)
    if subtask.site in view.lacks:
        return because(Reason.SITE_UNSUPPORTED, site=subtask.site)
    if subtask.assigned is not None and subtask.assigned != node:
        return because(Reason.PERSON_CHOSE, node=subtask.assigned)
    for name in subtask.hosts:
        host = hosts.get(name)
        if host is not None and node in host.resting:
            return because(Reason.ADDRESS_REFUSED, host=name)
    return None
