"""What a catalog says: engines, sites, rules and limits, as frozen, validated models.

A *field* in a rule is ``"css selector"`` (its text) or ``"css selector@attribute"``; ``"@attribute"`` is an
attribute of the record itself.
"""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from splitter.catalog.sign_in import SignInRules


class Kind(StrEnum):
    """What a node may crawl and what a site is reached through (source terms: 0 and 1)."""

    META = "meta"
    MICROBLOG = "microblog"

    @property
    def code(self) -> int:
        """The source's number of this kind: 0 meta search, 1 microblog search."""
        return 0 if self is Kind.META else 1


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Limits(_Model):
    """How often a host may be asked, in requests per second."""

    per_address_per_s: float = Field(gt=0, le=1000)
    total_per_s: float = Field(gt=0, le=10000)


class Bounds(_Model):
    """Lowest and highest value a decision may take."""

    min: float = Field(ge=0)
    max: float = Field(gt=0)


class ResultRules(_Model):
    """How a result page of an engine is read.

    Attributes:
        hit: CSS selector of one hit.
        link: field, inside a hit, of its address.
        title: field, inside a hit, of its title.
        abstract: field, inside a hit, of its abstract; empty if there is none.
        found: regular expression over the page's text (up to the first hit, then all of it) whose group 1 is the
            number of hits the search reports (commas are dropped); empty if the engine reports none.
        empty: regular expressions over the page's text, one of which matches where the engine says it has
            nothing (a proven empty answer).
        blocked: regular expressions over the page's text or final address that mean captcha, login wall or
            refusal although the status may be 200.
        next: CSS selector that matches where there is a next page.
    """

    hit: str
    link: str
    title: str
    abstract: str = ""
    found: str = ""
    empty: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    next: str = ""


class PageRules(_Model):
    """How a page of a site is read into reviews: by records (`review` and `body`) or by `main_text`.

    Attributes:
        main_text: there are no record rules; the page's main text is its one review, found without any (a feed gives
            one for each entry).
        review: CSS selector of one review record on the page.
        id: field of the record's own id on its site; empty: its place on the page serves.
        title, body, author, date, rating: fields of the record; empty where the site has none.
        page_title: field of the page's title.
        next: CSS selector of the link to the next part of the review list; empty: lists have one part.
        blocked: regular expressions over the page's text or final address that mean captcha, login wall or
            refusal although the status may be 200.
    """

    main_text: bool = False
    review: str = ""
    id: str = ""
    title: str = ""
    body: str = ""
    author: str = ""
    date: str = ""
    rating: str = ""
    page_title: str = "title"
    next: str = ""
    blocked: tuple[str, ...] = ()


class Engine(_Model):
    """How a query becomes a search URL and how a result page is read.

    Attributes:
        kind: node kind that may ask it.
        url: address without query string.
        params: query parameters in their order; values may hold ``{query}``, ``{page}`` (1, 2, ...) and
            ``{offset}`` (``first + (page - 1) * step``).
        paging_params: names of the parameters left out with ``--no-paging``.
        join: the AND operator between keywords.
        site: how the site restriction is put; holds ``{words}`` and ``{site}``. ``{words}`` alone: no
            restriction.
        extra_words: words added to every query (投诉).
        encoding: of the query in the URL.
        first, step: see ``params``.
        hits_per_page: hits on a full result page.
        max_hits: the most hits the engine ever lists for one query (its cap).
        results: how its result pages are read.
        limits: of the engine's host.
        private: that host may be on a private address (an instance of one's own).
        sign_in: how it is signed in to; None: it asks nobody to.
    """

    kind: Kind
    url: str
    params: dict[str, str]
    paging_params: tuple[str, ...] = ()
    join: str = " "
    site: str = "{words} site:{site}"
    extra_words: tuple[str, ...] = ()
    encoding: str = "utf-8"
    first: int = Field(default=1, ge=0)
    step: int = Field(default=1, ge=1)
    hits_per_page: int = Field(default=10, ge=1)
    max_hits: int = Field(default=760, ge=1)
    results: ResultRules
    limits: Limits | None = None
    private: bool = False
    sign_in: SignInRules | None = None


class Site(_Model):
    """A domain worth crawling, reached through an engine.

    Attributes:
        title: its name for people.
        engine: name of its engine.
        rules: name of the page rules its pages are read with.
        pages: result pages asked per task unless told otherwise.
        chunk_pages: search URLs in one subtask.
        limits: of the site's own host.
        private: that host, and its subdomains, may be on a private address (an intranet).
        quota: bounds of the hits one attempt may take.
        budget_s: bounds of the seconds one attempt may take.
        refresh_s: a recrawl asks a page again that was asked longer ago, for what is new in it; None: what is
            known is not asked again.
        sign_in: how it is signed in to; None: it asks nobody to.
    """

    title: str = ""
    engine: str
    rules: str
    pages: int = Field(default=1, ge=1, le=1000)
    chunk_pages: int = Field(default=1, ge=1, le=1000)
    limits: Limits | None = None
    private: bool = False
    quota: Bounds = Bounds(min=5, max=200)
    budget_s: Bounds = Bounds(min=10, max=300)
    refresh_s: float | None = Field(default=None, gt=0)
    sign_in: SignInRules | None = None


class Catalog(_Model):
    """Engines, sites and rules, checked against each other (see ``splitter.catalog.load``)."""

    name: str
    limits: Limits = Limits(per_address_per_s=1.0, total_per_s=4.0)
    rules: dict[str, PageRules]
    engines: dict[str, Engine]
    sites: dict[str, Site]

    def engine_of(self, site: str) -> Engine:
        """The engine a site is reached through. Raises KeyError for an unknown site."""
        return self.engines[self.sites[site].engine]

    def kind_of(self, site: str) -> Kind:
        """The node kind a site needs. Raises KeyError for an unknown site."""
        return self.engine_of(site).kind

    def rules_of(self, site: str) -> PageRules:
        """The page rules of a site. Raises KeyError for an unknown site."""
        return self.rules[self.sites[site].rules]
