"""The checks of a whole catalog.

Each engine, site and rule set is checked by itself, so that one that is misshapen does not hide the problems
of the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from splitter.catalog.checks.engine import check_engine
from splitter.catalog.checks.rules import check_page_rules, check_result_rules
from splitter.catalog.checks.shared import entries_of, read_as, under
from splitter.catalog.checks.sign_in import check_sign_ins
from splitter.catalog.checks.site import check_site
from splitter.catalog.model import Engine
from splitter.catalog.rules import PageRules, ResultRules
from splitter.yamlfile import Document, Place, Problem


def problems_of(document: Document) -> list[Problem]:
    """Everything the shape cannot say that is wrong in a catalog's data."""
    found: list[tuple[Place, str]] = []
    for name, raw in entries_of(document.data, "engines"):
        if (engine := read_as(Engine, raw)) is not None:
            found += under(("engines", name), check_engine(engine))
        elif isinstance(raw, Mapping) and (results := read_as(ResultRules, raw.get("results"))) is not None:
            found += under(("engines", name, "results"), check_result_rules(results))
    for name, raw in entries_of(document.data, "rules"):
        if (rules := read_as(PageRules, raw)) is not None:
            found += under(("rules", name), check_page_rules(rules))
    for name, raw in entries_of(document.data, "sites"):
        found += under(("sites", name), check_site(document.data, name, raw))
    found += check_sign_ins(document.data)
    for table in ("engines", "sites"):
        if document.data.get(table) == {}:
            found.append(((table,), "empty; a catalog needs at least one"))
    return [document.problem(place, message) for place, message in found]
