"""Product names in, search URLs out: all of the splitter in one call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from splitter.catalog.model import Catalog
from splitter.catalog.names import Category, Kind
from splitter.errors import InputError
from splitter.keywords import KeywordSet, ProductQuery
from splitter.urls import list_url, search_url

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class SearchPage:
    """One search URL of a task.

    Attributes:
        keywords: words of the search.
        page: number of the result page, from 1; None: the engine's first page, asked without paging.
    """

    keywords: KeywordSet
    page: int | None
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchUrl:
    """One search URL with its origin.

    Attributes:
        product: the name, as written.
        keywords: words of the search: the product's, or an alias's own.
        site: domain the search is restricted to; None without restriction.
        page: number of the result page, from 1; None without paging.
        chunk: number of the chunk (the later subtask) of its task, from 1.
    """

    product: str
    keywords: KeywordSet
    kind: Kind
    site: str | None
    engine: str
    url: str
    page: int | None
    chunk: int


@dataclass(frozen=True, slots=True)
class SearchScope:
    """The search URLs to make of every product: on which sites, how many pages.

    Attributes:
        catalog: engines and sites.
        sites: domains to ask; empty: the sites of the product's category.
        pages: result pages of each site; None: each site's own number.
        no_site: ask each engine once, without restriction to a site.
        no_paging: leave the parameters of paging out, so one URL of each keyword set.
    """

    catalog: Catalog
    sites: tuple[str, ...] = ()
    pages: int | None = None
    no_site: bool = False
    no_paging: bool = False

    def __post_init__(self) -> None:
        """Raises InputError for a site that is not in the catalog or fewer pages than 1."""
        for site in self.sites:
            if site not in self.catalog.sites:
                raise InputError.unknown(
                    "there is no site {name!r}", site, self.catalog.sites, "`reviewloop sites list`"
                )
        if self.pages is not None and self.pages < 1:
            raise InputError("pages {pages}: at least 1 is asked", pages=self.pages)

    def tasks(self, category: Category | None) -> tuple[str, ...]:
        """Return the sites that get a task; without restriction, the first site of each engine stands for it."""
        sites = tuple(self.catalog.sites_for(None, category))
        if self.sites:
            sites = tuple(dict.fromkeys(self.sites))
        if not self.no_site:
            return sites
        first: dict[str, str] = {}
        for site in sites:
            first.setdefault(self.catalog.sites[site].engine, site)
        return tuple(first.values())


def urls_of(scope: SearchScope, query: ProductQuery) -> Iterator[SearchUrl]:
    """Every search URL of a product: task by task, chunk by chunk, page by page."""
    for site in scope.tasks(query.category):
        for number, chunk in enumerate(task_chunks(scope, site, query), 1):
            for page in chunk:
                yield SearchUrl(
                    product=query.product,
                    keywords=page.keywords,
                    kind=scope.catalog.kind_of(site),
                    site=None if scope.no_site else site,
                    engine=scope.catalog.sites[site].engine,
                    url=page.url,
                    page=page.page,
                    chunk=number,
                )


def task_chunks(scope: SearchScope, site: str, query: ProductQuery) -> list[Sequence[SearchPage]]:
    """The search URLs of a product on one site, cut into the chunks that become subtasks.

    The pages of its name come first, then those of each alias; no URL comes twice. No chunk mixes keyword sets: the
    result pages of each begin with a chunk of their own.

    Raises:
        KeyError: the catalog has no such site.
    """
    found, engine = scope.catalog.sites[site], scope.catalog.engine_of(site)
    restriction = None if scope.no_site else site
    numbers = [None] if scope.no_paging else range(1, (scope.pages or found.pages) + 1)
    known: set[str] = set()
    cut: list[Sequence[SearchPage]] = []
    listing = engine.discover == "list"  # read once, for all keyword sets
    for words in query.keyword_sets[:1] if listing else query.keyword_sets:
        pages: list[SearchPage] = []
        for number in numbers:
            if listing:
                url = list_url(engine, query.keyword_sets, number)
            else:
                url = search_url(engine, words, site=restriction, page=number)
            if url not in known:
                known.add(url)
                pages.append(SearchPage(words, number, url))
        cut += chunks(pages, found.chunk_pages)
    return cut


def chunks(items: Sequence[_Item], size: int) -> list[Sequence[_Item]]:
    """Slices of at most ``size`` items, in order; only the last may be smaller, none is empty."""
    return [items[begin : begin + size] for begin in range(0, len(items), size)]
