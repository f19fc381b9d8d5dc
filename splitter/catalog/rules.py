"""Rules for reading result pages and pages.

A *field* in a rule is ``"css selector"`` (its text) or ``"css selector@attribute"``; ``"@attribute"`` is an
attribute of the record itself, ``"."`` its whole text, ``"a & b"`` both with a blank between, and ``"a | b"`` is b
if a is empty. In the rules of JSON
answers it is a path or a text with ``{path}`` in it (see ``splitter.catalog.paths``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class Entry(BaseModel):
    """A frozen part of a catalog; refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class PostRules(Entry):
    """Fields inside a hit that is a whole post (engines with `inline`); empty if there is none.

    Attributes:
        id: the post's own id on its site; empty: its address identifies it.
        body: its text.
        author, date, rating, variant: as in `PageRules`.
    """

    id: str = ""
    body: str
    author: str = ""
    date: str = ""
    rating: str = ""
    variant: str = ""


class ResultRules(Entry):
    """How a result page of an engine is read.

    Attributes:
        format: of the pages. In ``json`` fields are paths or templates, and so are (see each) the other rules.
        embedded: CSS selector of the script elements whose texts are the JSON; the document is the list of their
            contents, so that paths begin with ``[]``. Empty: the whole answer is the JSON.
        hit: CSS selector of one hit; of JSON, paths of the objects that are hits.
        link: field, inside a hit, of its address.
        title: field, inside a hit, of its title.
        abstract: field, inside a hit, of its abstract; empty if there is none.
        time: field, inside a hit, of when it was published, as a date or in Unix seconds; empty if there is none.
        found: regular expression over the page's text (up to the first hit, then all of it) whose group 1 is the
            number of hits the search reports (commas are dropped); of JSON, the path of that number; empty if the
            engine reports none.
        empty: regular expressions over the page's text. One of them matches an answer without hits
            (a proven empty answer); of JSON, also conditions.
        blocked: regular expressions over the page's text or final address that mean captcha, login wall or
            refusal although the status may be 200; of JSON, also conditions.
        next: CSS selector that matches if there is a next page; of JSON, the path of a value that is not empty,
            0 or false there.
        post: fields of the whole post a hit is; None: a hit has a page of its own.
    """

    format: Literal["html", "json"] = "html"
    embedded: str = ""
    hit: str
    link: str
    title: str
    abstract: str = ""
    time: str = ""
    found: str = ""
    empty: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    next: str = ""
    post: PostRules | None = None


EVERY_LINK = ResultRules(hit="a[href]", link="@href", title=".")
"""Rules of a page that lists others: each link is a hit."""


class PageRules(Entry):
    """How a page of a site is read into reviews: by records (`review` and `body`) or by `main_text`.

    Attributes:
        main_text: there are no record rules; the page's main text is its one review, found without any (a feed gives
            one for each entry).
        format: of the pages. In ``json`` fields are paths or templates; a feed in its place is read as one.
        embedded: as in `ResultRules`.
        review: CSS selector of one review record on the page; of JSON, paths of the objects that are reviews.
        id: field of the record's own id on its site; empty: its place on the page serves.
        title, body, author, date, rating, variant: fields of the record; empty where the site has none.
        page_title: field of the page's title.
        next: CSS selector of the link to the next part of the review list, of JSON the path of its address; empty:
            lists have one part.
        blocked: regular expressions over the page's text or final address that mean captcha, login wall or
            refusal although the status may be 200.
        render: ``browser``: its pages are made by script, and read as a browser shows them (docs/browser.md).
    """

    main_text: bool = False
    format: Literal["html", "json"] = "html"
    embedded: str = ""
    review: str = ""
    id: str = ""
    title: str = ""
    body: str = ""
    author: str = ""
    date: str = ""
    rating: str = ""
    variant: str = ""
    page_title: str = "title"
    next: str = ""
    blocked: tuple[str, ...] = ()
    render: Literal["browser"] | None = None
