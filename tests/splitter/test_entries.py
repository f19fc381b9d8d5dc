"""The hashes of a catalog's entries, by which a node and its scheduler see that they know a site alike."""

from __future__ import annotations

from splitter.catalog.entries import catalog_hash, entries_of
from splitter.catalog.load import builtin

CATALOG = builtin("paper-2014")
SITE = "cca.org.cn"


def test_an_entry_changes_with_its_engine_and_the_limits() -> None:
    before = entries_of(CATALOG)
    limits = CATALOG.limits.model_copy(update={"total_per_s": 0.5})
    engine = CATALOG.engine_of(SITE).model_copy(update={"max_hits": 7})
    engines = {**CATALOG.engines, CATALOG.sites[SITE].engine: engine}
    assert entries_of(CATALOG.model_copy(update={"limits": limits}))[SITE] != before[SITE]
    assert entries_of(CATALOG.model_copy(update={"engines": engines}))[SITE] != before[SITE]
    assert entries_of(CATALOG) == before
    assert catalog_hash(before) == catalog_hash(dict(reversed(before.items())))
