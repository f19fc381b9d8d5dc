"""Questions to the author of a catalog that is valid but loses pages, for `sites check`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from splitter.catalog.model import Catalog, Engine


@dataclass(frozen=True, slots=True)
class Question:
    """A question about an entry of the catalog.

    Attributes:
        key: dotted key of the entry.
        text: the question, with the line to write.
    """

    key: str
    text: str


def questions(catalog: Catalog) -> list[Question]:
    """Return questions about engines, in the catalog's order."""
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
            f"nothing says that there is a next page, so only the first of {catalog.sites[several[0]].pages} is read "
            f"for {_some(several)}; write what matches where there is one (see `sites try`), or pages: 1",
        )
    if several and not paged:
        yield Question(
            f"engines.{name}.paging_params",
            f"no parameter carries the page, so only the first of {catalog.sites[several[0]].pages} is read for "
            f"{_some(several)}; write {{page}} or {{offset}} into params, or pages: 1",
        )
    if engine.discover == "list":
        return
    host = (urlsplit(engine.url).hostname or "").lower()
    own = [site for site in sites if host == site or host.endswith(f".{site}")]
    if sites and len(own) == len(sites) and "{site}" in engine.site:
        yield Question(
            f"engines.{name}.site",
            f"its host is that of {_some(own)}, which it seems to search alone, and most such searches find nothing "
            'with site: in them; write site: "{words}"',
        )
    if len(sites) > 1 and len(own) < len(sites) and "{site}" not in engine.site:
        yield Question(
            f"engines.{name}.site",
            f"{len(sites)} sites use it and its queries name none of them, so each gets the hits of all; write "
            'site: "{words} site:{site}"',
        )


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
