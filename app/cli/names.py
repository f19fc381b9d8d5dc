"""Names that a person gives: of sites and nodes. One that is not known is refused, with those near it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from splitter.errors import InputError
from tasks.store.queries import queues as queue_queries
from tasks.store.sql.transaction import Transaction

if TYPE_CHECKING:
    from app.run.setting_fields import Settings


def check_site(tx: Transaction, settings: Settings, name: str | None) -> None:
    """Look whether a site is in the catalog or in the store; None is no site. Raises InputError."""
    if name is None:
        return
    sites = settings.catalog().sites
    if name not in sites and not queue_queries.has_site(tx, name):
        raise InputError.unknown("there is no site {name!r}", name, sites, "`reviewloop sites list`")


def check_node(tx: Transaction, name: str | None) -> None:
    """Look whether the store knows a node; None is no node. Raises InputError."""
    if name is None:
        return
    known = queue_queries.list_node_names(tx)
    if name not in known:
        raise InputError.unknown("there is no node {name!r}", name, known, "`reviewloop nodes list`")
