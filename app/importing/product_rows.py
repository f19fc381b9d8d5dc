"""Make products from the lines of a file. A line is refused only if its name is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

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
from splitter.errors import InputError, Message
from splitter.normalize import split_list, split_words
from tasks.store.content.products import NewProduct

_LONGEST_NAME = 200
_MEANINGS = {
    "keywords": Message("the words of the name are used"),
    "aliases": Message("there is no such other name"),
    "priority": Message("the priority is 0"),
    "pages": Message("each site's own number of pages is used"),
    "recrawl": Message("it is crawled once"),
    "category": Message("the category is found by the name"),
    "sites": Message("only the known sites count"),
}
"""Messages by field that explain what an empty cell means."""
_REMEMBERED = 1_000
"""Number of distinct cells of a column whose values are cached."""
T = TypeVar("T")


class ProductRows:
    """Makes products from the lines of a file.

    A cell that is not understood is left empty and counted. If a line names only unknown sites or asks for 0 pages,
    its product is added as paused: it is crawled at no site.

    Args:
        columns: names of the columns by field. Messages use the field's own name if it has no column.
        sites: sites of the catalog by domain.
        category: category for lines without one; `None` derives it from the product's name.

    Attributes:
        ignored: the cells that were not understood.
    """

    def __init__(
        self, columns: Mapping[str, str], sites: Mapping[str, Site], category: str | None = None
    ) -> None:
        self._columns = columns
        self._category = category
        header = columns.get("recrawl", "")
        remember = lru_cache(_REMEMBERED)
        self._priority = remember(read_priority)
        self._pages = remember(read_pages)
        self._recrawl = remember(lambda text: read_recrawl(text, header))
        self._read_category = remember(read_category)
        self._sites_of = remember(lambda text: read_sites(text, sites))
        self.ignored = IgnoredCells()

    def read(
        self, line: int, cells: Mapping[str, str], why: Message | None = None, *, is_typed: bool = False
    ) -> NewProduct | RefusedProduct:
        """Return the product that a line describes, or a refusal with the reason.

        Args:
            cells: cells by field.
            why: the reason if the line can't be read, else `None`.
            is_typed: True if a person typed the name. Then it is accepted even if it looks like a number or an address.
        """
        name = " ".join(cells.get("name", "").split())
        if why is not None:
            return RefusedProduct(name[:_LONGEST_NAME], why, line)
        try:
            if not is_typed and (looks := not_a_name(name)):
                raise InputError(
                    "{name!r} looks like {looks}, not like a product's name", name=name[:40], looks=looks
                )
            return self._product(name, line, cells)
        except InputError as error:
            return RefusedProduct(name[:_LONGEST_NAME], error.message, line)

    def _product(self, name: str, line: int, cells: Mapping[str, str]) -> NewProduct:
        made = self._make(name, line, cells)

        def value(field: str, reader: Callable[[str], T | None]) -> T | None:
            try:
                return reader(cells.get(field, ""))
            except NotUnderstood:
                self._ignore(field, cells[field], line)
                return None

        pages = value("pages", self._pages)
        sites = self._read_sites(line, cells)
        return replace(
            made,
            priority=value("priority", self._priority) or 0,
            pages=pages or None,
            recrawl_every=value("recrawl", self._recrawl),
            category=value("category", self._read_category) or self._category or made.category,
            sites=() if pages == 0 else sites,
            line=line,
        )

    def _make(self, name: str, line: int, cells: Mapping[str, str]) -> NewProduct:
        """Return a product. Keywords and other names that have no words to search for are left out.

        Raises:
            InputError: the name has no words to search for.
        """
        text = cells.get("keywords", "")
        words = [word for word in split_words(text) if any(map(str.isalnum, word))]
        if text and not words and not is_nothing(text):
            self._ignore("keywords", text, line)
        aliases = [" ".join(alias.split()) for alias in split_list(cells.get("aliases", ""))]
        aliases = [alias for alias in aliases if not is_nothing(alias)]
        try:
            return new_product(name, keywords=words, aliases=aliases)
        except InputError:
            usable = self._list_usable("keywords", words, line, lambda word: {"keywords": [word]})
            names = self._list_usable("aliases", aliases, line, lambda _: {})
            return new_product(name, keywords=usable, aliases=names)

    def _list_usable(
        self, field: str, texts: Iterable[str], line: int, options: Callable[[str], Mapping[str, Any]]
    ) -> list[str]:
        """Return the texts that have words to search for. Count each other text as a cell that was not understood.

        Args:
            field: the field that the texts are from.
            options: returns arguments for `new_product`, which tries a text.
        """
        usable = []
        for text in texts:
            try:
                new_product(text, **options(text))
            except InputError:
                self._ignore(field, text, line)
            else:
                usable.append(text)
        return usable

    def _read_sites(self, line: int, cells: Mapping[str, str]) -> tuple[str, ...] | None:
        text = cells.get("sites", "")
        if is_dash(text):
            return None
        sites, unknown = self._sites_of(text)
        if unknown:
            self._ignore("sites", ", ".join(unknown), line)
        return sites

    def _ignore(self, field: str, text: str, line: int) -> None:
        self.ignored.add(self._columns.get(field, field), text, line, _MEANINGS[field])
