"""Elements that hold no main text, by their names: menus, comments, advertisements, captions."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

_CAPTIONS = (
    r"(?:^|[-_\s])(?:(?:fig(?:ure)?|photo|image|img|pic)?-?caption(?:-?text)?(?:$|[-_\s])"
    r"|(?:photo|image|img|pic)-?(?:credit|desc|note|info|source))"
)
_CAPTION = re.compile(_CAPTIONS, re.IGNORECASE)
# Names of classes and ids of what is not the text; the second kind counts only where the name does not also fit
# `_TEXTUAL`.
_NOISE = re.compile(
    r"comment|footer|copyright|side-?bar|recommend|relat(?:ed|ion)|breadcrumb|advert|sponsor|popup|pop-?over|tool-?tip"
    r"|cookie|consent|onetrust|gdpr|qr-?code|pagination"
    r"|disclaimer|guess-?you|hot-?(?:news|list|rank|word)|share-?(?:bar|box|to|btn|tool)"
    rf"|{_CAPTIONS}",
    re.IGNORECASE,
)
_PERHAPS_NOISE = re.compile(
    r"reply|\bfoot|\bside|share|crumb|\bnav|navi|menu|tool-?bar|rank|\bads?\b|promo|dialog|login|tag-?s?list|\btags?\b"
    r"|pager|statement|hidden|subscribe|download|rel-?news",
    re.IGNORECASE,
)
_TEXTUAL = re.compile(r"article|content|main|body|text|post|detail|entry|story|txt", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)


def is_caption(node: LexborNode) -> bool:
    """Whether an element is called a picture's caption or credit."""
    names = node.attributes.get("class")
    return node.tag == "figcaption" or (names is not None and _CAPTION.search(names) is not None)


def is_noise(node: LexborNode) -> bool:
    """Whether an element is called what stands beside a main text, or is hidden."""
    if node.tag in ("body", "html", "article", "main"):
        return False
    if node.tag in ("nav", "footer", "aside", "figcaption"):
        return True
    attributes = node.attributes
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    if "hidden" in attributes or _HIDDEN.search(attributes.get("style") or ""):
        return True
    if _NOISE.search(names):
        return True
    return _PERHAPS_NOISE.search(names) is not None and _TEXTUAL.search(names) is None
