"""Elements that hold no main text, by their names: menus, comments, advertisements, captions."""

from __future__ import annotations

import re
from functools import lru_cache

_CAPTIONS = (
    r"(?:^|[-_\s])(?:(?:fig(?:ure)?|photo|image|img|pic)?-?caption(?:-?text)?(?:$|[-_\s])"
    r"|(?:photo|image|img|pic)-?(?:credit|desc|note|info|source))"
)
_CAPTION = re.compile(_CAPTIONS, re.IGNORECASE)
# Names of classes and ids of what is not the text; the second kind counts only where the name does not also fit
# `_TEXTUAL`.
_NOISE = re.compile(
    r"comment|footer|copyright|side-?bar|recommend|relat(?:ed|ion)|breadcrumb|advert|sponsor|popup|\bmodal\b|pop-?over|tool-?tip"
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


@lru_cache(maxsize=4096)
def is_caption(tag: str, called: str) -> bool:
    """Whether an element is called a picture's caption or credit.

    Args:
        called: its class names and its id.
    """
    return tag == "figcaption" or _CAPTION.search(called) is not None


@lru_cache(maxsize=4096)
def is_noise(tag: str, called: str) -> bool:
    """Whether an element is called what stands beside a main text; arguments as of `is_caption`."""
    if tag in ("body", "html", "article", "main"):
        return False
    if tag in ("nav", "footer", "aside", "figcaption"):
        return True
    if _NOISE.search(called):
        return True
    return _PERHAPS_NOISE.search(called) is not None and _TEXTUAL.search(called) is None
