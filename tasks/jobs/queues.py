"""The queues of the messages, and how long a message holds; without Celery, for who only names them."""

from __future__ import annotations

from collections.abc import Sequence

CONTROL = "control"
CRAWL_PREFIX = "crawl."
CLOCKS_S = 30.0
"""How far the clocks of the machines may lie apart."""


def crawl_queue(node: str) -> str:
    """The queue of a node."""
    return CRAWL_PREFIX + node


def node_of(queues: Sequence[str]) -> str | None:
    """The node whose queue is among these; None if there is none.

    Raises:
        ValueError: there are several: a process is one node.
    """
    nodes = sorted(queue.removeprefix(CRAWL_PREFIX) for queue in queues if queue.startswith(CRAWL_PREFIX))
    if len(nodes) > 1:
        raise ValueError(f"a worker process is one node, and -Q names {len(nodes)}: {', '.join(nodes)}")
    return nodes[0] if nodes else None
