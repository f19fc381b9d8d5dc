"""A line of a file of products as a product. Only its name can refuse it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from app.actions.products import RefusedProduct, new_product, not_a_name
from app.importing.cell_words import NotUnderstood, is_dash, is_nothing
from app.importing.ignored_cells import IgnoredCells
from app.importing.product_values import (
    read_category,
    read_pages,
    read_priority,
    read_recrawl,
    read_sites,
)
from splitter.catalog.model import Site
from splitter.errors import InputError
from splitter.normalize import split_list, split_words
from tasks.store.content.products import NewProduct

_LONGEST_NAME = 200
_MEANINGS = {
    "keywords": "the words of the name are used",
    "aliases": "there is no such other name",
    "priority": "the priority is 0",
    "pages": "each site's own number of pages is used",
    "recrawl": "it is crawled once",
    "category": "the category is found by the name",
    "sites": "only the known sites count",
}
"""What a cell that is left empty means, by field."""
T = TypeVar("T")


class ProductRows:
    """Makes products of the lines of a file.

    A cell that is not understood is left empty and counted. If a line names sites and none of them is known, or asks
    for no page, its product is added paused: it is crawled at no site.

    Args:
        columns: names of the columns by field; a field that is left out is called by its own name.
        sites: of the catalog, by domain.
        category: of the lines that give none; `None`: found by the name.

    Attributes:
        ignored: cells that were not understood.
    """

    def __init__(
        self, columns: Mapping[str, str], sites: Mapping[str, Site], category: str | None = None
    ) -> None:
        self._columns = columns
        self._sites = sites
        self._category = category
        self.ignored = IgnoredCells()

    def read(self, line: int, cells: Mapping[str, str], why: str = "") -> NewProduct | RefusedProduct:
        """Return the product of a line, or why it has none.

        Args:
            cells: by field.
            why: the line can't be read; empty if it can.
        """
        name = " ".join(cells.get("name", "").split())
        try:
            if why:
                raise InputError(why)
            if looks := not_a_name(name):
                raise InputError(f"{name[:40]!r} looks like {looks}, not like a product's name")
            return self._product(name, line, cells)
        except InputError as error:
            return RefusedProduct(name[:_LONGEST_NAME], str(error), line)

    def _product(self, name: str, line: int, cells: Mapping[str, str]) -> NewProduct:
        made = new_product(name)  # refuses a wrong name before its other cells are looked at
        keywords = self._words(name, line, cells)
        aliases = self._aliases(line, cells)
        if keywords or aliases:
            made = new_product(name, keywords=keywords, aliases=aliases)

        def value(field: str, reader: Callable[[str], T | None]) -> T | None:
            try:
                return reader(cells.get(field, ""))
            except NotUnderstood:
                self._ignore(field, cells[field], line)
                return None

        header = self._columns.get("recrawl", "")
        pages = value("pages", read_pages)
        sites = self._read_sites(line, cells)
        return replace(
            made,
            priority=value("priority", read_priority) or 0,
            pages=pages or None,
            recrawl_every=value("recrawl", lambda text: read_recrawl(text, header)),
            category=value("category", read_category) or self._category or made.category,
            sites=() if pages == 0 else sites,
            line=line,
        )

    def _words(self, name: str, line: int, cells: Mapping[str, str]) -> tuple[str, ...]:
        """Return the keywords of a line; none if they are no words to search for."""
        text = cells.get("keywords", "")
        if is_nothing(text):
            return ()
        words = tuple(word for word in split_words(text) if any(map(str.isalnum, word)))
        try:
            if words:
                new_product(name, keywords=words)
        except InputError:
            words = ()
        if not words:
            self._ignore("keywords", text, line)
        return words

    def _aliases(self, line: int, cells: Mapping[str, str]) -> tuple[str, ...]:
        """Return the other names of a line, without those that give no query."""
        taken = []
        for alias in split_list(cells.get("aliases", "")):
            if is_nothing(alias):
                continue
            alias = " ".join(alias.split())
            try:
                new_product(alias)
            except InputError:
                self._ignore("aliases", alias, line)
            else:
                taken.append(alias)
        return tuple(taken)

    def _read_sites(self, line: int, cells: Mapping[str, str]) -> tuple[str, ...] | None:
        text = cells.get("sites", "")
        if is_dash(text):
            return None
        sites, unknown = read_sites(text, self._sites)
        if unknown:
            self._ignore("sites", ", ".join(unknown), line)
        return sites

    def _ignore(self, field: str, text: str, line: int) -> None:
        self.ignored.add(self._columns.get(field, field), text, line, _MEANINGS[field])
