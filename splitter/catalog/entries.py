"""Hash each site's entry of a catalog, so that processes with different catalogs find the differences."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog


def entries_of(catalog: Catalog) -> dict[str, str]:
    """Return by site the hash (16 hex digits) of its entry with its engine, its rules and its limits."""
    engines = {name: engine.model_dump_json() for name, engine in catalog.engines.items()}
    rules = {name: one.model_dump_json() for name, one in catalog.rules.items()}
    limits = catalog.limits.model_dump_json()
    return {
        name: _hash(site.model_dump_json(), engines[site.engine], rules.get(site.rules, ""), limits)
        for name, site in catalog.sites.items()
    }


NO_BROWSER = "no browser"
"""Stands for the entry of a site whose pages need a browser that the process has not."""


def entries_without_browser(catalog: Catalog) -> dict[str, str]:
    """Like `entries_of`, of a process that can't run the scripts of pages."""
    return {
        site: NO_BROWSER if catalog.renders(site) else entry for site, entry in entries_of(catalog).items()
    }


def catalog_hash(entries: Mapping[str, str]) -> str:
    """The hash of all entries."""
    return _hash(*(f"{site}={entries[site]}" for site in sorted(entries)))


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
