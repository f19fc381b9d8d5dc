"""What a site's rules take from a page: for `sites try`, by the crawl's own readers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from bs4 import BeautifulSoup
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.model import Catalog
from splitter.catalog.rules import PageRules, ResultRules
from splitter.keywords import keywords_of
from tasks.domain.crawl import ErrorClass, FetchError, PageRead
from tasks.domain.product_match import Verdict, naming, spoken
from tasks.fetching.hosts import HostBook
from tasks.reading.decode import explained
from tasks.reading.extract import read_page
from tasks.reading.json_results import json_rule_values
from tasks.reading.maintext import Candidate, main_text
from tasks.reading.markup import collapsed, field_of, page_text, parse, select, text_of
from tasks.reading.relevance import judged, no_review
from tasks.reading.results import read_results

_RECORD_FIELDS = ("link", "title", "abstract", "time", "id", "body", "author", "date", "rating")
_REFUSALS = (401, 403, 429, 432)
_VALUES_SHOWN = 3
_VALUE_CHARS = 300
_OUTLINE_HEADINGS = 5
_OUTLINE_REPEATED = 12


@dataclass(frozen=True, slots=True)
class RuleUse:
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


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a page is a review of a product (`tasks.reading.relevance`).

    Attributes:
        verdict: "review", "wrong_product" or "no_review".
        keywords: of the product.
        missing: those that the page lacks.
        records: of every record, in the order of `Trial.records`, "review" or why it is none.
        refused: records that would not be stored as reviews, by reason.
    """

    product: str
    verdict: str
    keywords: tuple[str, ...]
    missing: tuple[str, ...]
    records: tuple[str, ...]
    refused: Mapping[str, int]


def judge(catalog: Catalog, site: str, read: PageRead, product: str) -> Judgement:
    """What the crawl would store of a page, found by a search for a product. Raises ProductNameError."""
    words = keywords_of(product)
    main_text = catalog.rules_of(site).main_text
    kept, refused = judged(read, read.reviews, main_text=main_text)
    found = naming([words], spoken(read.title, ((review.title, review.body) for review in kept)))
    of_record = tuple(
        reason.value if (reason := no_review(review, main_text=main_text)) else
        ("review" if found.named else Verdict.WRONG_PRODUCT.value)
        for review in read.reviews
    )  # fmt: skip
    if not kept:
        verdict = Verdict.NO_REVIEW
    elif found.named:
        verdict = Verdict.REVIEW
    else:
        verdict, refused = Verdict.WRONG_PRODUCT, {**refused, Verdict.WRONG_PRODUCT.value: len(kept)}
    return Judgement(product, verdict.value, words, found.missing, of_record, refused)


@dataclass(frozen=True, slots=True)
class Trial:
    """What the rules take from a page.

    Attributes:
        read_as: "page" or "result".
        verdict: "records", "empty", "blocked" or "broken".
        why: of a page without records: what it is instead.
        encoding, encoding_why: what the bytes were read with, and what told so.
        found, more: of a result page: hits it reports, whether there is a next page.
        strategy, strategy_why: of a page read by `main_text`: which one won, and why; empty for others.
        candidates: what each strategy that was asked took for the main text.
        records: every record as the crawl would take it.
        outline: where a rule finds nothing, what the page looks like, to write rules by.
        judgement: what would be stored of a page, where a product was named; None: none was.
    """

    read_as: str
    verdict: str
    why: str
    encoding: str
    encoding_why: str
    title: str
    found: int | None
    more: bool | None
    rules: tuple[RuleUse, ...]
    strategy: str
    strategy_why: str
    candidates: tuple[Candidate, ...]
    records: tuple[Any, ...]
    outline: tuple[str, ...]
    judgement: Judgement | None = None


def is_result_page(catalog: Catalog, site: str, url: str) -> bool:
    """Whether a URL is a search of the site's engine."""
    engine, asked = urlsplit(catalog.engine_of(site).url), urlsplit(url)
    book = HostBook(catalog)
    same_host = book.name(url) == book.of_engine(catalog.sites[site].engine)
    return same_host and asked.path == engine.path and bool(asked.query)


def try_rules(
    catalog: Catalog,
    site: str,
    body: bytes,
    headers: Mapping[str, str],
    url: str,
    *,
    result: bool,
    now: datetime,
    status: int = 200,
    product: str | None = None,
) -> Trial:
    """Read a page by a site's rules.

    Args:
        headers: of the answer, lower-case names.
        url: of the page, which its links are resolved against.
        result: by the rules of the engine's result pages, otherwise by those of the site's pages.
        now: what relative dates count from.
        status: of the answer; one that is no 2xx is no page, whatever its body.
        product: name of what the page was found for: say whether it is a review of it.
    """
    read_as = "result" if result else "page"
    rules: ResultRules | PageRules = catalog.engine_of(site).results if result else catalog.rules_of(site)
    text, encoding, encoding_why, title = "", "", "", ""
    strategy, strategy_why = "", ""
    found: int | None = None
    more: bool | None = None
    records: tuple[Any, ...] = ()
    use: tuple[RuleUse, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    judgement: Judgement | None = None
    try:
        text, encoding, encoding_why = explained(
            body, headers, "" if result else catalog.sites[site].encoding
        )
        _check_status(status, url)
        if isinstance(rules, PageRules) and rules.main_text:
            told = main_text(text, url)
            strategy, strategy_why, candidates = told.strategy, told.why, told.candidates
        elif isinstance(rules, ResultRules) and rules.format == "json":
            use = tuple(_rule_use(*told) for told in json_rule_values(text, url, rules))
        else:
            use = _use(parse(text), rules)
        if isinstance(rules, ResultRules):
            page = read_results(text, url, rules, now=now)
            found, more, records = page.found, page.more, page.hits
        else:
            read = read_page(text, url, rules, now=now)
            title, records = read.title, read.reviews
            judgement = judge(catalog, site, read, product) if product else None
        nothing = "the engine says that it has nothing" if result else "the page is a list of other pages"
        verdict, why = ("records", "") if records else ("empty", nothing)
    except FetchError as error:
        verdict, why = ("blocked" if error.error.blocks else "broken"), str(error)
        records = ()
    lacking = verdict == "broken" or (verdict == "records" and any(_is_lacking(rule) for rule in use))
    return Trial(
        read_as=read_as,
        verdict=verdict,
        why=why,
        encoding=encoding,
        encoding_why=encoding_why,
        title=title,
        found=found,
        more=more,
        rules=use,
        strategy=strategy,
        strategy_why=strategy_why,
        candidates=candidates,
        records=records,
        outline=_outline(text) if lacking and text else (),
        judgement=judgement,
    )


def _is_lacking(rule: RuleUse) -> bool:
    # The last page has no next one, and no number of hits is told by some.
    return not rule.matches and rule.name not in ("next", "found")


def _check_status(status: int, url: str) -> None:
    if not 200 <= status < 300:
        error = ErrorClass.FORBIDDEN if status in _REFUSALS else ErrorClass.OTHER_STATUS
        raise FetchError(error, f"{url} answers with status {status}")


def _use(tree: LexborHTMLParser, rules: ResultRules | PageRules) -> tuple[RuleUse, ...]:
    record_rule = "hit" if isinstance(rules, ResultRules) else "review"
    selector = getattr(rules, record_rule)
    records = select(tree, selector)
    use = [_rule_use(record_rule, selector, [text_of(record) for record in records])]
    for name in _RECORD_FIELDS:
        field = field_of(getattr(rules, name, ""))
        if field is not None:
            values = [value for record in records if (value := field.read(record))]
            use.append(_rule_use(name, getattr(rules, name), values))
    for name in ("next", "page_title"):
        if selector := getattr(rules, name, ""):
            use.append(_rule_use(name, selector, [text_of(node) for node in select(tree, selector)]))
    if pattern := getattr(rules, "found", ""):
        matches = [match[1] or "" for match in re.finditer(pattern, page_text(tree))]
        use.append(_rule_use("found", pattern, matches))
    return tuple(use)


def _rule_use(name: str, rule: str, values: list[str]) -> RuleUse:
    return RuleUse(
        name, rule, len(values), tuple(collapsed(value)[:_VALUE_CHARS] for value in values[:_VALUES_SHOWN])
    )


def _outline(text: str) -> tuple[str, ...]:
    """Title, headings, and elements that come again and again: candidates for a record's selector."""
    soup = BeautifulSoup(text, "html.parser")
    for hidden in soup(["script", "style", "noscript", "template"]):
        hidden.decompose()
    lines = [f"title: {_text(soup.title)}"] if soup.title else []
    lines += [f"{tag.name}: {_text(tag)}" for tag in soup(["h1", "h2", "h3"])[:_OUTLINE_HEADINGS]]
    repeated = Counter(_selector(tag.name, tag.get("class")) for tag in soup.find_all(class_=True))
    for selector, n in repeated.most_common(_OUTLINE_REPEATED):
        if n > 1:
            first = soup.select_one(selector)
            lines.append(f"{selector} × {n}: {_text(first)}")
    if len(lines) <= 1:
        lines.append(f"text: {_text(soup)}")
    return tuple(lines)


def _selector(tag: str, classes: Any) -> str:
    names: Sequence[str] = [classes] if isinstance(classes, str) else list(classes or ())
    plain = [
        name for name in names if name.replace("-", "").replace("_", "").isalnum() and not name[0].isdigit()
    ]
    return ".".join([tag, *plain])


def _text(tag: Any) -> str:
    return " ".join(tag.get_text(" ").split())[:80] if tag is not None else ""
