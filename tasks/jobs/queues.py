"""Names of the message queues, and the expiry of messages. This module does not import Celery."""

from __future__ import annotations

from collections.abc import Sequence

CONTROL = "control"
CRAWL_PREFIX = "crawl."
CLOCKS_S = 30.0
"""Maximum difference between the clocks of the machines, in seconds."""


def crawl_queue(node: str) -> str:
    """Return the name of a node's queue."""
    return CRAWL_PREFIX + node


def node_of(queues: Sequence[str]) -> str | None:
    """Return the node whose queue is among these; `None` if there is none.

    Raises:
        ValueError: there are several, but a process is one node.
    """
    nodes = sorted(queue.removeprefix(CRAWL_PREFIX) for queue in queues if queue.startswith(CRAWL_PREFIX))
    if len(nodes) > 1:
        raise ValueError(f"a worker process is one node, and -Q names {len(nodes)}: {', '.join(nodes)}")
    return nodes[0] if nodes else None
