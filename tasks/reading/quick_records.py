"""Pages read by their rules with turbohtml: the reviews that selectolax (lexbor) gives, in less CPU time.

turbohtml searches inside a record as fast as in a whole page, and compiles each selector once. A page is left to
selectolax if both might differ (a selector that they understand differently, a deep tree), if a search inside each
record would take long (records within records), or if there is no review. Machines without a wheel of turbohtml (macOS
on Intel, Windows on ARM) read every page with selectolax.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

import turbohtml
from splitter.catalog.rules import PageRules
from turbohtml import Document, Element, SelectorSyntaxError, Text

from tasks.domain.pages import PageRead
from tasks.reading.links import Links
from tasks.reading.markup import BLOCKS, NOT_SHOWN, NOT_SHOWN_TAGS, check_markup, collapse
from tasks.reading.records import MOST_RECORDS, OTHER_FIELDS, FieldValues, reviews_of

_NOT_SHOWN = f"{', '.join(NOT_SHOWN_TAGS)}, :is({NOT_SHOWN}):not(html, body)"
_BLOCKS = ", ".join(BLOCKS)
_BLOCK_TAGS = frozenset(BLOCKS)

# Below 512 elements turbohtml, as browsers do, makes siblings of children. Texts are read by recursion.
_MAX_DEPTH = 100
_TOO_DEEP = " > ".join("*" * (_MAX_DEPTH + 1))

# Pseudo-classes that both read alike. Of the others turbohtml lacks some (:lexbor-contains), and reads some as
# Selectors 4 defines them (:empty, :enabled, :read-only).
_OTHER_PSEUDO = re.compile(
    r":(?!(?:(?:first|last|only)-(?:child|of-type)|nth-(?:last-)?(?:child|of-type)|not|is|where|has)(?![\w-]))"
)


def read_quickly(
    text: str, url: str, rules: PageRules, now: datetime, encoding: str = "utf-8"
) -> PageRead | None:
    """Read a page by its rules for HTML; `None` leaves it to selectolax.

    Args:
        text: of the answer, decoded.
        url: its final address.
        now: aware; what relative dates (3小时前) count from.
        encoding: Python's name of the answer's encoding, in which its links are asked.

    Raises:
        FetchError: TOO_LARGE, see `check_markup`.
    """
    if not _is_plain(rules):
        return None
    check_markup(text)
    tree = _parse(text)
    if tree.select_one(_TOO_DEEP) is not None:
        return None
    tree.remove(_NOT_SHOWN)
    records = QuickRecords(tree, rules.review)
    if any(node.select_one(rules.review) is not None for node in records.nodes):
        return None
    reviews = reviews_of(records, rules, now)
    if not reviews:
        return None
    title = tree.select_one(rules.page_title) if rules.page_title else None
    link = tree.select_one(rules.next) if rules.next else None
    reference = (link.attr("href") or "").strip() if link is not None else ""
    links, base = Links(url, encoding), tree.select_one("base[href]")
    links = links if base is None else links.against(base.attr("href") or "")
    return PageRead(_text_of(title) if title is not None else "", reviews, links.next_address(reference))


@lru_cache(maxsize=1024)
def _is_plain(rules: PageRules) -> bool:
    """Return True if both parsers understand the selectors of the rules, and alike."""
    selectors = [rules.review, *filter(None, (rules.page_title, rules.next))]
    fields = [rules.body, *(getattr(rules, name) for name in OTHER_FIELDS)]
    if any(map(_OTHER_PSEUDO.search, selectors + fields)):
        return False
    tree = _parse("")
    body = QuickRecords(tree, "body")
    try:
        for selector in selectors:
            tree.select_one(selector)
        for field in fields:
            body.values(field)
    except SelectorSyntaxError:
        return False
    return True


def _parse(text: str) -> Document:
    return turbohtml.parse(text, positions=False, allow_declarative_shadow_roots=False)


class QuickRecords(FieldValues[Element]):
    """The elements a rule's record selector matches."""

    def __init__(self, tree: Document, css: str) -> None:
        super().__init__(tree.select(css)[:MOST_RECORDS])

    def _search(self, css: str) -> Sequence[Element | None]:
        return [node if node.matches(css) else node.select_one(css) for node in self.nodes]

    def _read(self, nodes: Sequence[Element | None], attribute: str) -> list[str]:
        if not attribute:
            return [_text_of(node) if node is not None else "" for node in nodes]
        return [collapse(node.attr(attribute) or "") if node is not None else "" for node in nodes]


def _text_of(node: Element) -> str:
    if node.select_one(_BLOCKS) is None:
        return collapse(node.text)
    parts: list[str] = []
    _add_texts(node, parts)
    return collapse("".join(parts))


def _add_texts(node: Element, parts: list[str]) -> None:
    """Add the texts within an element, with blanks around its blocks."""
    for child in node:
        if isinstance(child, Text):
            parts.append(child.data)
        elif isinstance(child, Element):
            blank = " " if child.tag in _BLOCK_TAGS else ""
            parts.append(blank)
            _add_texts(child, parts)
            parts.append(blank)
