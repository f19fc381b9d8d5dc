"""Addresses of pages: a path carries query and number of its page, so that no page need be remembered."""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.lab import chance

_CHECK_BYTES = 3
_ID = re.compile(r"[0-9a-f]{12,1800}")


@dataclass(frozen=True, slots=True)
class PageName:
    """Which page: number ``number`` (from 0) of those that a site has for a query."""

    site: str
    keywords: tuple[str, ...]
    number: int


_COMPLAINT = ("/complaint/", ".html")
_SHAPES = {"complaint": _COMPLAINT, "thread": ("/thread-", "-1-1.html")}
# Where a site's own search is read by what its links look like.
_SHAPES_OF_SITES = {"12365auto.com": ("/zlts/20131118/", ".shtml")}


def path_of(seed: int, rules: str, page: PageName) -> str:
    """The path of a page on a site whose pages are read with the page rules of that name."""
    id_ = _encode(seed, page)
    before, after = _shape(seed, rules, page.site, id_)
    return f"{before}{id_}{after}"


def page_at(seed: int, rules: str, site: str, path: str) -> PageName | None:
    """The page a path of a site names; None for a path that `path_of` never gives."""
    id_ = next((part for part in re.split(r"[/.-]", path) if _ID.fullmatch(part)), "")
    page = _decode(site, id_)
    if page is None or path_of(seed, rules, page) != path:
        return None
    return page


def _shape(seed: int, rules: str, site: str, id_: str) -> tuple[str, str]:
    if rules == "microblog":
        return f"/{2**30 + chance.number(seed, 'user', id_) % 2**32}/", ""
    return _SHAPES_OF_SITES.get(site) or _SHAPES.get(rules, _COMPLAINT)


def _encode(seed: int, page: PageName) -> str:
    """Check sum, number and keywords in hexadecimal: long, and as opaque as real ids are.

    GB 18030 spells every character there is and a Chinese one in two bytes, so that the path stays short.
    """
    words = "\x00".join(page.keywords).encode("gb18030", "replace")
    check = chance.number(seed, "id", page.site, page.number, *page.keywords) % (1 << 8 * _CHECK_BYTES)
    return check.to_bytes(_CHECK_BYTES, "big").hex() + page.number.to_bytes(2, "big").hex() + words.hex()


def _decode(site: str, id_: str) -> PageName | None:
    try:
        raw = bytes.fromhex(id_)[_CHECK_BYTES:]
        keywords = tuple(raw[2:].decode("gb18030").split("\x00"))
    except ValueError:
        return None
    return PageName(site, keywords, int.from_bytes(raw[:2], "big"))
