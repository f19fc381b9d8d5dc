"""Show how well a site's rules fit one page, with the same functions that the crawl uses.

For `sites try` and for saved pages.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from heapq import nlargest
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from app.sites.trial_view import RelevanceCheck, RuleMatches, RuleReading
from splitter.catalog.model import Catalog
from splitter.catalog.patterns import compile_pattern
from splitter.catalog.rules import PageRules, ResultRules
from splitter.errors import Message
from splitter.keywords import keywords_of
from tasks.domain.failures import FetchError, error_class
from tasks.domain.pages import PageRead, ResultPage
from tasks.domain.verdicts import Verdict
from tasks.fetching.inflate import unpack
from tasks.reading.decode import Decoded, decode
from tasks.reading.extract import read_page
from tasks.reading.json_results import JsonRecords
from tasks.reading.judge.product_match import matchable_text, product_match
from tasks.reading.learned_rules import learn
from tasks.reading.lists import as_results, is_feed, read_list
from tasks.reading.maintext import main_text
from tasks.reading.markup import collapse, page_text, parse, select, text_of
from tasks.reading.page import Page
from tasks.reading.records import Records
from tasks.reading.relevance import reject_reason, screen_reviews
from tasks.reading.results import read_results
from tasks.reading.thread_pages import read_thread_page

_RECORD_FIELDS = ("link", "title", "abstract", "time", "id", "body", "author", "date", "rating", "variant")
_VALUES_SHOWN = 3
_VALUE_CHARS = 300
_OUTLINE_HEADINGS = 5
_OUTLINE_REPEATED = 12
_OUTLINE_NEXT = 3
_OUTLINE_CHARS = 80
_NEXT_TEXT = re.compile(r"(?:下一?[页頁]|后页|Next(?: page)?)\s*[>›»→]{0,2}|[>›»→]{1,2}", re.IGNORECASE)
_NEXT_NAME = re.compile(r"(?:^|[^a-z])(?:next|pgnext|sb_pagN|snext)(?:[^a-z]|$)", re.IGNORECASE)


def read_by_rules(
    body: bytes,
    headers: Mapping[str, str],
    url: str,
    rules: ResultRules | PageRules,
    *,
    now: datetime,
    hint: str = "",
    status: int = 200,
    listed: bool = False,
) -> RuleReading:
    """Apply rules to a response. Return the verdict (records, empty, blocked or broken) and the records.

    Args:
        headers: headers of the response by lower-case name.
        url: address of the page; its links are resolved against it.
        now: the current time, to compute relative dates.
        hint: encoding of the site in the catalog.
        status: status of the response. If it is not 2xx, the body is not read.
        listed: True for an engine with `discover: list`, whose pages may be sitemaps or feeds.
    """
    result = isinstance(rules, ResultRules)
    decoded = Decoded("", "", Message())
    page: ResultPage | PageRead | None = None
    why = Message("the engine says that it has nothing" if result else "the page is a list of other pages")
    verdict = "empty"
    try:
        decoded = decode(unpack(body) if listed else body, headers, hint)
        if not _is_page(status):
            raise FetchError(
                error_class(status), Message("{url} answers with status {status}", url=url, status=status)
            )
        if isinstance(rules, ResultRules) and listed:
            page = as_results(read_list(decoded.text, url, rules, now, decoded.encoding))
        elif isinstance(rules, ResultRules):
            page = read_results(decoded.text, url, rules, now=now, encoding=decoded.encoding)
        else:
            page = read_page(decoded.text, url, rules, now=now, encoding=decoded.encoding)
    except FetchError as error:
        verdict, why = ("blocked" if error.error.facts.blocks else "broken"), error.message
    records = () if page is None else page.hits if isinstance(page, ResultPage) else page.reviews
    return RuleReading(
        read_as="result" if result else "page",
        verdict="records" if records else verdict,
        why=None if records else why,
        encoding=decoded.encoding,
        encoding_why=decoded.why,
        title=page.title if isinstance(page, PageRead) else "",
        found=page.found if isinstance(page, ResultPage) else None,
        more=page.more if isinstance(page, ResultPage) else None,
        records=records,
        confidence=page.confidence if isinstance(page, PageRead) else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RulePreview:
    """The records that a site's rules read from a page, and how well each rule fits.

    Attributes:
        rules: how well each rule fits. If the site has no rules for records: the rules that a crawl would learn here.
        main_text: place of the text if the page is read by `main_text`, else empty.
        outline: the structure of the page, as a help to write rules; empty if all rules match.
        judgement: the reviews of the product that would be stored; `None` if no product was given.
    """

    reading: RuleReading
    rules: tuple[RuleMatches, ...]
    main_text: str
    outline: tuple[str, ...]
    judgement: RelevanceCheck | None


def preview_rules(
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
) -> RulePreview:
    """Apply a site's rules to a page, and find out how well each rule fits.

    Args:
        headers, url, now, status: as in `read_by_rules`.
        result: True to use the engine's rules for result pages, False to use the site's rules for pages.
        product: name of the product that the page was found for, to check whether the page has reviews of it.

    Raises:
        ProductNameError: `product` contains no keyword.
    """
    rules: ResultRules | PageRules = catalog.engine_of(site).results if result else catalog.rules_of(site)
    hint = "" if result else catalog.sites[site].encoding
    listed = result and catalog.engine_of(site).discover == "list"
    now = now.astimezone(catalog.zone_of(site))
    reading = read_by_rules(body, headers, url, rules, now=now, hint=hint, status=status, listed=listed)
    text = ""
    matches: tuple[RuleMatches, ...] = ()
    chosen = ""
    with suppress(FetchError):  # `reading` has it
        text = decode(unpack(body) if listed else body, headers, hint).text
        if _is_page(status) and not (listed and reading.records):
            if isinstance(rules, PageRules) and rules.main_text:
                page = Page(text, url)
                chosen = main_text(page).choice.value
                learned = learn(page, read_thread_page(page, now), now)
                matches = tuple(_matches(text, url, learned)) if learned is not None else ()
            else:
                matches = tuple(_matches(text, url, rules))
    # The last result page has no next page, and some pages show no number of hits.
    lacking = [rule for rule in matches if not rule.matches and rule.name not in ("next", "found")]
    # Without `next` only the first result page is read. List links that may lead to the next page.
    unpaged = result and not (listed or rules.next) and reading.verdict == "records"
    outlined = reading.verdict == "broken" or unpaged or (reading.verdict == "records" and lacking)
    checked = product and not result and reading.verdict in ("records", "empty")
    return RulePreview(
        reading=reading,
        rules=matches,
        main_text=chosen,
        outline=_outline(text) if outlined and text else (),
        judgement=_check_relevance(catalog, site, reading, product) if checked and product else None,
    )


def _check_relevance(catalog: Catalog, site: str, reading: RuleReading, product: str) -> RelevanceCheck:
    """Find out which records the crawl would store as reviews of a product. Raises ProductNameError."""
    words = keywords_of(product)
    main_text = catalog.rules_of(site).main_text
    page = PageRead(reading.title, reading.records, no_review="" if reading.records else "list")
    kept, refused, _ = screen_reviews(page, page.reviews, main_text=main_text)
    match = product_match([words], matchable_text(page.title, ((one.title, one.body) for one in kept)))
    of_reviews = Verdict.REVIEW if match.matches else Verdict.WRONG_PRODUCT
    if kept and not match.matches:
        refused = {**refused, of_reviews.value: len(kept)}
    reasons = (reject_reason(review, main_text=main_text) for review in page.reviews)
    return RelevanceCheck(
        product=product,
        verdict=(of_reviews if kept else Verdict.NO_REVIEW).value,
        keywords=words,
        missing=match.missing,
        records=tuple((reason or of_reviews).value for reason in reasons),
        refused=refused,
    )


def _is_page(status: int) -> bool:
    return 200 <= status < 300


def _matches(text: str, url: str, rules: ResultRules | PageRules) -> Iterator[RuleMatches]:
    """Yield for each rule about records how well it fits a text. Raises FetchError if the text can't be read."""
    fields = {name: rule for name in _RECORD_FIELDS if (rule := getattr(rules, name, ""))}
    of_page = {name: rule for name in ("next", "page_title") if (rule := getattr(rules, name, ""))}
    posts = isinstance(rules, ResultRules) and rules.post is not None
    if isinstance(rules, ResultRules) and rules.post is not None:
        fields |= {name: rule for name, rule in rules.post.model_dump().items() if rule}
    name, rule = ("hit", rules.hit) if isinstance(rules, ResultRules) else ("review", rules.review)
    if rules.format == "json" and not is_feed(text):
        answer = JsonRecords(text, url, rules, rule)
        shown = (json.dumps(record, ensure_ascii=False) for record in answer.records)
        yield _rule_matches(name, rule, shown)
        for name, rule in fields.items():
            yield _rule_matches(name, rule, answer.texts(rule))
        for name, rule in (*of_page.items(), ("found", getattr(rules, "found", ""))):
            if rule:
                paths = (part.strip() for part in rule.split(" | "))
                yield _rule_matches(name, rule, (one for path in paths for one in answer.everywhere(path)))
        return
    if rules.format == "json":
        return
    tree = parse(text, keep_hidden=posts)
    records = Records(tree, rule)
    yield _rule_matches(name, rule, map(text_of, records.nodes), keep_empty=True)
    for name, rule in fields.items():
        yield _rule_matches(name, rule, records.values(rule))
    for name, rule in of_page.items():
        yield _rule_matches(name, rule, map(text_of, select(tree, rule)), keep_empty=True)
    if pattern := getattr(rules, "found", ""):
        found = (match[1] for match in compile_pattern(pattern).find_all(page_text(tree)))
        yield _rule_matches("found", pattern, found, keep_empty=True)


def _rule_matches(name: str, rule: str, found: Iterable[str], *, keep_empty: bool = False) -> RuleMatches:
    values = [value for value in found if value or keep_empty]
    return RuleMatches(
        name, rule, len(values), tuple(collapse(value)[:_VALUE_CHARS] for value in values[:_VALUES_SHOWN])
    )


def _outline(text: str) -> tuple[str, ...]:
    """Return lines about a page: title, headings, possible links to a next page, and frequent selectors.

    Each selector is followed by the text of one element that it matches.
    """
    tree = parse(text, keep_hidden=True)
    named = [("title", tree.css("title")[:1])]
    named += [(f"next page? {rule}", [link]) for rule, link in islice(_next_links(tree), _OUTLINE_NEXT)]
    named += [(node.tag or "", [node]) for node in tree.css("h1, h2, h3")[:_OUTLINE_HEADINGS]]
    repeated: dict[str, list[LexborNode]] = defaultdict(list)
    for node in tree.css("[class]"):
        repeated[_selector(node)].append(node)
    often = nlargest(_OUTLINE_REPEATED, repeated.items(), key=lambda one: len(one[1]))
    named += [(f"{rule} × {len(nodes)}", nodes) for rule, nodes in often if len(nodes) > 1]
    lines = tuple(f"{name}: {_shown(nodes[0])}" for name, nodes in named if nodes)
    return lines if len(lines) > 1 else (*lines, f"text: {page_text(tree)[:_OUTLINE_CHARS]}")


def _next_links(tree: LexborHTMLParser) -> Iterator[tuple[str, LexborNode]]:
    """Yield links that may lead to a next page, each with a selector that matches it."""
    for link in tree.css("a[href]"):
        rule, text, own = _selector(link), _shown(link), link.attributes.get("id") or ""
        if _NEXT_TEXT.fullmatch(text) or _NEXT_NAME.search(f"{link.attributes.get('rel')} {own} {rule}"):
            yield f"a#{own}" if own else rule if rule != "a" else f'a:lexbor-contains("{text}")', link


def _selector(node: LexborNode) -> str:
    names = (node.attributes.get("class") or "").split()
    plain = (one for one in names if re.fullmatch(r"[^\W\d][\w-]*", one))
    return ".".join([node.tag or "", *plain])


def _shown(node: LexborNode) -> str:
    return collapse(node.text(separator=" "))[:_OUTLINE_CHARS]
