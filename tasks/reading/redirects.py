"""Where a link that leads on leads: a redirect's Location, or the page that sends a browser there by itself.

Search engines list links of their own, which count who follows them. Where such a link leads is asked once, so that the
page behind it is known by its own address, and asked once however many engines list it.
"""

from __future__ import annotations

import re
from html import unescape

from tasks.domain.address import joined
from tasks.domain.crawl import FetchError, Response

_SCANNED_BYTES = 20_000
_ADDRESS = r"(https?:(?:\\?/){2}[^\"'\s<>]{1,4000})"
_FORMS = (
    re.compile(
        r"<meta\b[^>]{1,200}?\bcontent\s*=\s*[\"']?\s*\d{1,3}\s*;\s*url\s*=\s*[\"']?" + _ADDRESS, re.I
    ),
    re.compile(r"\blocation(?:\.href)?\s*(?:=|\.(?:replace|assign)\()\s*[\"']" + _ADDRESS),
    re.compile(r"\bvar\s+u(?:rl)?\s*=\s*[\"']" + _ADDRESS),
)


def led_to(response: Response) -> str | None:
    """The sendable address an answer leads on to; None where it leads nowhere, or back to where it came from.

    Args:
        response: answered to one request, its redirect not followed.
    """
    reference = (
        response.headers.get("location", "") if 300 <= response.status < 400 else _written(response.body)
    )
    if not reference:
        return None
    try:
        address = joined(response.url, reference)
    except FetchError:
        return None
    return address if address != response.url else None


def _written(body: bytes) -> str:
    """The address in a page that only leads on."""
    page = body[:_SCANNED_BYTES].decode("utf-8", "replace")
    for form in _FORMS:
        if match := form.search(page):
            return unescape(match[1].replace("\\/", "/"))
    return ""
