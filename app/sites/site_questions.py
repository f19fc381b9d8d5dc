"""Questions to the author of a catalog whose settings are valid, but probably make a crawl miss pages.

For `sites check`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog, Engine
from splitter.errors import Message, list_names


@dataclass(frozen=True, slots=True)
class Question:
    """A question about an entry of the catalog.

    Attributes:
        key: dotted key of the entry.
        text: the question, with the line to write into the catalog.
    """

    key: str
    text: Message


def questions(catalog: Catalog) -> list[Question]:
    """Return the questions about the engines of a catalog, in the catalog's order."""
    return [
        one for name, engine in catalog.engines.items() for one in _question_engine(catalog, name, engine)
    ]


def _question_engine(catalog: Catalog, name: str, engine: Engine) -> Iterator[Question]:
    sites = {site: entry for site, entry in catalog.sites.items() if entry.engine == name}
    several = [site for site, entry in sites.items() if entry.pages > 1]
    paged = bool(engine.paging_params) or "{page}" in engine.url
    if several and paged and not engine.results.next:
        yield Question(
            f"engines.{name}.results.next",
            Message(
                "nothing says that there is a next page, so only the first of {pages} is read for {sites}; write what "
                "matches where there is one (see `sites try`), or pages: 1",
                pages=catalog.sites[several[0]].pages,
                sites=list_names(several, 1),
            ),
        )
    if several and not paged:
        yield Question(
            f"engines.{name}.paging_params",
            Message(
                "no parameter carries the page, so only the first of {pages} is read for {sites}; write {{page}} or "
                "{{offset}} into params, or pages: 1",
                pages=catalog.sites[several[0]].pages,
                sites=list_names(several, 1),
            ),
        )
    if engine.discover == "list":
        return
    host = (urlsplit(engine.url).hostname or "").lower()
    own = [site for site in sites if host == site or host.endswith(f".{site}")]
    if sites and len(own) == len(sites) and "{site}" in engine.site:
        yield Question(
            f"engines.{name}.site",
            Message(
                "its host is that of {sites}, which it seems to search alone, and most such searches find nothing with "
                'site: in them; write site: "{{words}}"',
                sites=list_names(own, 1),
            ),
        )
    if len(sites) > 1 and len(own) < len(sites) and "{site}" not in engine.site:
        yield Question(
            f"engines.{name}.site",
            Message(
                "{n} sites use it and its queries name none of them, so each gets the hits of all; write "
                'site: "{{words}} site:{{site}}"',
                n=len(sites),
            ),
        )
