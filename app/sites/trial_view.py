"""The result of a site's rules on a page, as `sites try` and the dashboard show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from splitter.errors import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """The result of rules on an answer.

    Attributes:
        read_as: "page" or "result".
        verdict: "records", "empty", "blocked" or "broken".
        why: of a page without records: what it is instead. `None` if there are records.
        encoding, encoding_why: what the bytes were decoded with, and why.
        found, more: of a result page: hits it reports, whether there is a next page.
        records: every record as the crawl would take it.
        confidence: of a page, how surely these are its reviews: 0 to 1.
    """

    read_as: str
    verdict: str
    why: Message | None
    encoding: str = ""
    encoding_why: Message | None = None
    title: str = ""
    found: int | None = None
    more: bool | None = None
    records: tuple[Any, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class RuleMatches:
    """A rule and how far it fits.

    Attributes:
        matches: elements that it matches (`hit`, `review`, `next`, `page_title`), records in which it is filled (their
            fields), matches in the page's text (`found`).
        values: the first of them.
    """

    name: str
    rule: str
    matches: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceCheck:
    """Whether a page is a review of a product (`tasks.reading.relevance`, `tasks.reading.judge.product_match`).

    Attributes:
        verdict: "review", "wrong_product" or "no_review".
        keywords: of the product.
        missing: those that the page lacks.
        records: of every record, in their order, "review" or why it is none.
        refused: records that would not be stored as reviews, by reason.
    """

    product: str
    verdict: str
    keywords: tuple[str, ...]
    missing: tuple[str, ...]
    records: tuple[str, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView(RuleReading):
    """The result of a site's rules on a page: the fields of `sites try --json`.

    Attributes:
        file, url: where the page comes from; `None` if it is the other, or was pasted.
        status, seconds: of the answer, if the page was fetched.
        bytes: size of the page.
        records: the fields of the first of `count` records.
        rules, main_text, outline, judgement: as of `RulePreview`.
    """

    site: str
    file: str | None
    url: str | None
    status: int | None
    seconds: float | None
    bytes: int
    records: tuple[Mapping[str, Any], ...]
    count: int
    rules: tuple[RuleMatches, ...]
    main_text: str
    outline: tuple[str, ...]
    judgement: RelevanceCheck | None
