"""Whether the nodes of a cluster can read pages made by script, by what they told when they registered."""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from app.run.setting_fields import Settings
from app.run.setting_values import sqlite_file
from splitter.errors import ReviewloopError
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.queue import nodes
from tasks.store.sql.database import Store, read_now

NO_NODE_HAS_ONE = Obstacle(
    kind=ObstacleKind.BROWSER,
    why="its pages need a browser, and no node has one",
    mend="install one on the machine of a node, and start the node again (docs/browser.md)",
)


def browser_of_nodes(store: Store, settings: Settings) -> Obstacle | None:
    """What keeps every live node from pages made by script; None: at least one can, or none is there yet."""
    with store.read() as conn:
        none = nodes.none_renders(conn, read_now(conn), settings.node_silent_after())
    return NO_NODE_HAS_ONE if none else None


def browsers_of_cluster(settings: Settings) -> tuple[int, int] | None:
    """How many live nodes a cluster has, and how many of them have a browser; None: there is no cluster to ask."""
    path = sqlite_file(settings.database_url)
    if not settings.redis_url or (path is not None and not path.is_file()):
        return None
    try:
        store = Store.open(settings.database_url)
        try:
            with store.read() as conn:
                told, rendering = nodes.browsers(conn, read_now(conn), settings.node_silent_after())
        finally:
            store.close()
    except (SQLAlchemyError, ReviewloopError, OSError):
        return None  # another check tells what is wrong with the database
    return (told, rendering) if told else None
