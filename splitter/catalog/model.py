"""Models of a catalog: engines, sites and limits, frozen and validated."""

from __future__ import annotations

import sys
from collections.abc import Collection
from datetime import tzinfo
from typing import Literal

from pydantic import Field, field_validator

from splitter.catalog.names import Category, Group, Kind
from splitter.catalog.rules import EVERY_LINK, Entry, PageRules, ResultRules
from splitter.catalog.sign_in import SignInRules
from splitter.spans import CHINA, CHINA_NAME, get_zone


class Limits(Entry):
    """How often a host may be asked, in requests per second.

    Attributes:
        per_address_per_s: by one node address.
        total_per_s: by all nodes.
    """

    per_address_per_s: float = Field(gt=0, le=1000)
    total_per_s: float = Field(gt=0, le=10000)


class Bounds(Entry):
    """Lowest and highest value a decision may take.

    Attributes:
        min: the lowest.
        max: the highest.
    """

    min: float = Field(ge=0)
    max: float = Field(gt=0)


TIME_PLACEHOLDERS = ("from_s", "to_s", "from_day", "to_day", "from_hour", "to_hour")
"""Placeholders of a time filter's parameters."""


class TimeFilter(Entry):
    """How a search is restricted to a range of time.

    Attributes:
        params: query parameters added for it; values may hold ``{from_s}`` ``{to_s}`` (Unix seconds), ``{from_day}``
            ``{to_day}`` (YYYY-MM-DD) and ``{from_hour}`` ``{to_hour}`` (YYYY-MM-DD-H), days and hours of China.
        least: the shortest range the engine can be restricted to.
        inclusive: the written end is part of the range; false: the end is the first moment outside of it.
    """

    params: dict[str, str] = Field(min_length=1)
    least: Literal["day", "hour"]
    inclusive: bool = False


class RobotsDecision(Entry):
    """Whether a site's robots.txt is obeyed, and why that was decided.

    Attributes:
        obey: False only with a reason that can be shown: the operator's permission, a host of one's own.
        reason: for people; at least 10 characters where `obey` is False.
    """

    obey: bool = True
    reason: str


class Engine(Entry):
    """How a query becomes a search URL and how a result page is read.

    Attributes:
        kind: the kind of nodes that may ask it.
        discover: ``search``: it is asked for words. ``list``: it has pages that list others (a sitemap, a category),
            and what mentions the product there are the hits; no words are sent.
        url: address without query string; of a list with ``{page}`` where its pages have addresses of their own.
        params: query parameters in their order; values may hold ``{query}``, ``{page}`` (1, 2, ...) and
            ``{offset}`` (``first + (page - 1) * step``).
        paging_params: names of the parameters left out with ``--no-paging``.
        join: the AND operator between keywords.
        site: how the site restriction is put; holds ``{words}`` and ``{site}``. ``{words}`` alone: no
            restriction.
        extra_words: words added to every query (投诉).
        encoding: encoding of the query in the URL.
        first, step: see ``params``.
        hits_per_page: hits on a full result page.
        max_hits: the most hits the engine ever lists for one query (its cap).
        count_cap: a reported number of hits that is this or more is a lower bound; None: it is exact.
        times: how a search is restricted to a range of time; None: it can't be.
        headers: sent with the requests for its result pages, and with no others.
        redirects: regular expressions over the addresses of hits that are links of the engine's own which lead on
            to the page; the page's address is resolved before it is fetched.
        inline: a hit is a whole post, which is stored from the result page (``results.post``).
        results: how its result pages are read; of a list left out: every link is taken, and sitemaps need no rules.
        limits: those of the engine's host.
        private: that host may be on a private address (an instance of one's own).
        robots: whether its host's robots.txt is obeyed, and why; None: obeyed, without a word about it.
        sign_in: how nodes sign in; None: no sign-in is needed.
        unsupported: why its answers can't be read; its sites get no task. Empty: they can be.
    """

    kind: Kind
    discover: Literal["search", "list"] = "search"
    url: str
    params: dict[str, str] = Field(default_factory=dict)
    paging_params: tuple[str, ...] = ()
    join: str = " "
    site: str = "{words} site:{site}"
    extra_words: tuple[str, ...] = ()
    encoding: str = "utf-8"
    first: int = Field(default=1, ge=0)
    step: int = Field(default=1, ge=1)
    hits_per_page: int = Field(default=10, ge=1)
    max_hits: int = Field(default=760, ge=1)
    count_cap: int | None = Field(default=None, ge=1)
    times: TimeFilter | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    redirects: tuple[str, ...] = ()
    inline: bool = False
    results: ResultRules = EVERY_LINK
    limits: Limits | None = None
    private: bool = False
    robots: RobotsDecision | None = None
    sign_in: SignInRules | None = None
    unsupported: str = ""


class Site(Entry):
    """A domain worth crawling, reached through an engine.

    Attributes:
        title: its name for people.
        group: kind of the site; None: unknown.
        categories: categories of the products to search there; none: all products, and those without a category.
        engine: name of its engine.
        rules: name of the page rules its pages are read with.
        encoding: what its pages are in where neither headers nor pages say it; empty: unknown.
        zone: the time zone that its dates are written in, unless a page names another: Europe/Berlin.
        robots: whether its robots.txt is obeyed, and why; None: obeyed, without a word about it.
        render: ``browser``: its pages are made by script, and read as a browser shows them; None: as its rules say.
        judge: whether records that are no review, or not of the product searched for, are refused.
        pages: result pages fetched per task, unless a command names another number.
        chunk_pages: search URLs in one subtask.
        limits: those of the site's own host.
        private: that host, and its subdomains, may be on a private address (an intranet).
        quota: bounds of the hits one attempt may take.
        budget_s: bounds of the seconds one attempt may take.
        refresh_s: a recrawl fetches a page again after this time, because it may hold new posts; None: known pages
            are not fetched again.
        sign_in: how nodes sign in; None: no sign-in is needed.
    """

    title: str = ""
    group: Group | None = None
    categories: tuple[Category, ...] = ()
    engine: str
    rules: str
    encoding: str = ""
    zone: str = CHINA_NAME
    robots: RobotsDecision | None = None
    render: Literal["browser"] | None = None
    judge: bool = True
    pages: int = Field(default=1, ge=1, le=1000)
    chunk_pages: int = Field(default=1, ge=1, le=1000)
    limits: Limits | None = None
    private: bool = False
    quota: Bounds = Bounds(min=5, max=200)
    budget_s: Bounds = Bounds(min=10, max=300)
    refresh_s: float | None = Field(default=None, gt=0, examples=[604_800])
    sign_in: SignInRules | None = None

    @field_validator("zone")
    @classmethod
    def _check_zone(cls, name: str) -> str:
        get_zone(name)
        return name


class Catalog(Entry):
    """Engines, sites and rules, checked against each other (see ``splitter.catalog.load``).

    Attributes:
        version: the version of this format, 1.
        name: what messages call the catalog.
        limits: those of every host whose engine or site sets none.
        rules: how pages of sites are read; sites name them.
        engines: through which sites are searched; sites name them.
        sites: the crawled sites; the name of each is its domain.
    """

    version: int = 1
    name: str
    limits: Limits = Limits(per_address_per_s=1.0, total_per_s=4.0)
    rules: dict[str, PageRules]
    engines: dict[str, Engine]
    sites: dict[str, Site]

    def engine_of(self, site: str) -> Engine:
        """The engine a site is reached through. Raises KeyError for an unknown site."""
        return self.engines[self.sites[site].engine]

    def sites_for(self, only: Collection[str] | None, category: str | None) -> list[str]:
        """Return the sites at which a product is looked for: `only` those that a person chose, else by its category.

        A product without a category is looked for at general sites: those that list no categories.
        """
        if only is not None:
            return [name for name in self.sites if name in only]
        return [
            name for name, site in self.sites.items() if not site.categories or category in site.categories
        ]

    def most_hits(self, engine: str) -> int:
        """Return the maximum number of hits an engine lists for one query; no bound if it has left the catalog."""
        return self.engines[engine].max_hits if engine in self.engines else sys.maxsize

    def kind_of(self, site: str) -> Kind:
        """The node kind a site needs. Raises KeyError for an unknown site."""
        return self.engine_of(site).kind

    def rules_of(self, site: str) -> PageRules:
        """The page rules of a site. Raises KeyError for an unknown site."""
        return self.rules[self.sites[site].rules]

    def zone_of(self, site: str) -> tzinfo:
        """Return the time zone of a site's dates; China's for a site that is not in the catalog."""
        return get_zone(self.sites[site].zone) if site in self.sites else CHINA

    def renders(self, site: str) -> bool:
        """Whether a browser runs the scripts of a site's pages. Raises KeyError for an unknown site."""
        # A hit that its result page holds as a whole post is not fetched.
        return (self.sites[site].render or self.rules_of(site).render) is not None
