"""Views of the result of applying a site's rules to a page, for `sites try` and the dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from splitter.errors import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleReading:
    """The records that rules read from a response.

    Attributes:
        read_as: "page" or "result".
        verdict: "records", "empty", "blocked" or "broken".
        why: the reason why there are no records; `None` if there are records.
        encoding, encoding_why: the encoding used, and the reason for choosing it.
        found: number of hits that a result page reports.
        more: True if a result page has a next page.
        records: all records as the crawl would read them.
        confidence: how surely the records are the reviews of a page, 0 to 1.
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
    """A rule, and how often it matches on a page.

    Attributes:
        matches: number of matched elements (`hit`, `review`, `next`, `page_title`), of records with a value (fields of
            records), or of matches in the page's text (`found`).
        values: the first values that the rule reads.
    """

    name: str
    rule: str
    matches: int
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RelevanceCheck:
    """Judgement whether a page reviews a product (`tasks.reading.relevance`, `tasks.reading.judge.product_match`).

    Attributes:
        verdict: "review", "wrong_product" or "no_review".
        keywords: keywords of the product.
        missing: keywords that the page does not contain.
        records: for each record in order, "review" or the reason why it is not one.
        refused: number of records that would not be stored, by reason.
    """

    product: str
    verdict: str
    keywords: tuple[str, ...]
    missing: tuple[str, ...]
    records: tuple[str, ...]
    refused: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialView(RuleReading):
    """The result of applying a site's rules to a page, with the fields of `sites try --json`.

    Attributes:
        file, url: file or URL that the page was read from; the other one is `None`. Both are `None` for a pasted page.
        status, seconds: status of the response, and seconds that it took; `None` if the page was not fetched.
        bytes: size of the page in bytes.
        records: fields of the first records; `count` is the number of all.
        rules, main_text, outline, judgement: as in `RulePreview`.
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
