"""Check names of sites and nodes that a person gives. The error about an unknown name suggests similar names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splitter.errors import InputError
from tasks.store.queries import queues as queue_queries
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from app.run.setting_fields import Settings


def check_site(tx: Transaction, settings: Settings, name: str | None) -> None:
    """Raise InputError if a site is neither in the catalog nor in the store. `None` is accepted."""
    if name is None:
        return
    sites = settings.catalog().sites
    if name not in sites and not queue_queries.has_site(tx, name):
        raise InputError.unknown("there is no site {name!r}", name, sites, "`reviewloop sites list`")


def check_node(tx: Transaction, name: str | None) -> None:
    """Raise InputError if the store does not know a node. `None` is accepted."""
    if name is None:
        return
    known = queue_queries.list_node_names(tx)
    if name not in known:
        raise InputError.unknown("there is no node {name!r}", name, known, "`reviewloop nodes list`")
