"""Result pages of search engines, read into hits by the catalog's rules, in HTML or JSON.

Empty, blocked and broken are three answers. An engine that reports no hits gives an empty ResultPage, a refusal raises
its error, and a page without any match raises BAD_RULE. If no pattern of the engine fits, traits that
belong to no engine decide (`page_outcome`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from splitter.catalog.patterns import compile_pattern
from splitter.catalog.rules import PostRules, ResultRules
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Hit, ResultPage, Review
from tasks.reading.dates import read_date
from tasks.reading.interstitials import raise_if_blocked, refusal
from tasks.reading.json_results import JsonAnswer, number_of
from tasks.reading.links import Links, links_in
from tasks.reading.markup import first, page_text, parse
from tasks.reading.page_outcome import Outcome, outcome
from tasks.reading.records import LONGEST_ID, Records, rating_of

# Ends of long posts that show them whole, or short again; the letter is an icon's.
_FULL_TEXT = re.compile(
    r"(?:(?<![\s\u200b])[\s\u200b]++)?+(?:(?:展开|收起)全文\s*+[a-z]?|(?:展开c|收起d))\s*+$"
)


_SEEMS: Mapping[Outcome, Message] = {
    "empty": Message("seems an empty answer whose words `empty` lacks"),
    "broken": Message("seems a broken rule"),
}


def read_results(
    text: str, url: str, rules: ResultRules, *, now: datetime | None = None, encoding: str = "utf-8"
) -> ResultPage:
    """Read a result page.

    Marks of an empty answer and of a refusal are searched only if there is no hit, because a hit's text may hold them.

    Args:
        text: the decoded answer.
        url: its final address; hits are resolved against it.
        now: aware; relative times (3小时前) count from it. `None` reads no times.
        encoding: Python's name of the answer's encoding, in which its links are asked.

    Raises:
        FetchError: with the refusal's class; BAD_RULE with the numbers of matches; in JSON, BAD_CONTENT if it is cut
            off; TOO_LARGE if it would choke a parser.
    """
    answer: JsonAnswer | _HtmlAnswer
    if rules.format == "json":
        answer, links = JsonAnswer(text, url, rules), Links(url, encoding)
    else:
        answer = _HtmlAnswer(text, url, rules)
        links = links_in(answer.tree, url, encoding)
    hits = _hits(answer, rules, links, now)
    if not hits:
        answer.raise_unless_empty()
        return ResultPage(found=0, hits=(), empty=True, more=False)
    # A page with hits that reports 0 reports nothing.
    return ResultPage(answer.hit_count() or None, hits, empty=False, more=answer.has_next())


def _hits(
    answer: JsonAnswer | _HtmlAnswer, rules: ResultRules, document: Links, now: datetime | None
) -> tuple[Hit, ...]:
    """Return the hits of an answer, each address once. A record without an address or a post without text is none."""
    links, titles = answer.values(rules.link), answer.texts(rules.title)
    posts = _posts(answer, rules.post, titles, now) if rules.post is not None else [None] * len(links)
    rows = zip(links, titles, answer.texts(rules.abstract), answer.values(rules.time), posts, strict=True)
    hits: dict[str, Hit] = {}
    for link, title, abstract, time, post in rows:
        address = document.address(link)
        if address and address not in hits and (post is None or post.body):
            hits[address] = Hit(address, title, abstract, _time(time, now), post)
    return tuple(hits.values())


def _posts(
    answer: JsonAnswer | _HtmlAnswer, rules: PostRules, titles: Sequence[str], now: datetime | None
) -> list[Review]:
    """Return the posts of an engine whose hits are whole posts."""
    fields = (rules.id, rules.body, rules.author, rules.date, rules.rating, rules.variant)
    return [
        Review(
            key=key if 0 < len(key) <= LONGEST_ID else "#0",
            title=title,
            body=_FULL_TEXT.sub("", body) or body,
            author=author,
            date_text=date,
            date=_time(date, now),
            rating=rating_of(rating),
            variant=variant,
        )
        for title, key, body, author, date, rating, variant in zip(
            titles, *map(answer.texts, fields), strict=True
        )
    ]


def _time(text: str, now: datetime | None) -> datetime | None:
    return read_date(text, now) if now is not None else None


class _HtmlAnswer:
    """A result page in HTML; its methods are those of `JsonAnswer`."""

    def __init__(self, text: str, url: str, rules: ResultRules) -> None:
        self._text, self._url, self._rules = text, url, rules
        self.tree = parse(text, keep_hidden=rules.post is not None)
        self._records = Records(self.tree, rules.hit)

    def values(self, rule: str) -> list[str]:
        return self._records.values(rule)

    texts = values

    def hit_count(self) -> int | None:
        """Return the reported number of hits: before the first hit, the usual place, or anywhere on the page."""
        if not self._rules.found:
            return None
        search = compile_pattern(self._rules.found).search
        before = page_text(self.tree, before=self._records.nodes[0])
        match = search(before) or search(page_text(self.tree))
        return number_of(match[1]) if match else None

    def has_next(self) -> bool:
        return bool(self._rules.next) and first(self.tree, self._rules.next) is not None

    def raise_unless_empty(self) -> None:
        rules, shown = self._rules, page_text(self.tree)
        if any(compile_pattern(pattern).search(shown) for pattern in rules.empty):
            return
        raise_if_blocked(shown, self._url, rules.blocked)
        if not self._text.strip(" \ufeff\t\r\n"):
            # 360 answers so to addresses it does not serve; no rule could read more of it.
            raise FetchError(
                ErrorClass.FORBIDDEN, Message("{url} answers with an empty body", url=self._url[:200])
            )
        likely, sure = outcome(self._text, self.tree, self._url)
        if likely == "refused":
            raise FetchError(
                refusal(shown[:2000]),
                Message(
                    "{url} seems to refuse ({sure:.2f}): {shown}",
                    url=self._url[:200],
                    sure=sure,
                    shown=shown[:120],
                ),
            )
        filled = sum(map(bool, self.values(rules.link)))
        links = len(self.tree.css("a[href]"))
        raise FetchError(
            ErrorClass.BAD_RULE,
            Message(
                "{seems} ({sure:.2f}): hit {hit!r} matches {n}, link {link!r} is filled in {filled} of them, none "
                "usable; no mark of an empty answer; the page has {links} links and says: {shown}",
                seems=_SEEMS[likely],
                sure=sure,
                hit=rules.hit,
                n=len(self._records.nodes),
                link=rules.link,
                filled=filled,
                links=links,
                shown=shown[:120],
            ),
        )
