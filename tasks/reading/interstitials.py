"""Pages between a request and the page it asks for: refusals, and redirects by page or link.

A refusal is a captcha, a login wall or a "too often", whatever its status. A review may well speak of a captcha, so the
patterns prove nothing while a page has records: readers search for records first, and for a refusal only if there are
none.

Search engines list links of their own, to count who follows them. Such a link may hold the page's address. If not, it
is requested once, without following it, so that a page has one address however many engines list it.
"""

from __future__ import annotations

import binascii
import re
from base64 import urlsafe_b64decode
from urllib.parse import parse_qs, urlsplit

from splitter.catalog.patterns import compile_pattern
from splitter.errors import Message

from tasks.domain.address import resolve_reference, sendable
from tasks.domain.failures import FACTS, ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.reading.decode import decode
from tasks.reading.markup import resolve_references

_REDIRECT_BYTES = 20_000
_ADDRESS = r"(https?:(?:\\?/){2}[^\"'\s<>]{1,4000})"
_REDIRECTS = (
    re.compile(
        r"<meta\b[^<>]{1,200}?\bcontent\s*+=\s*+[\"']?\s*+\d{1,3}\s*+;\s*+url\s*+=\s*+[\"']?" + _ADDRESS, re.I
    ),
    re.compile(r"\blocation(?:\.href)?\s*(?:=|\.(?:replace|assign)\()\s*[\"']" + _ADDRESS),
    re.compile(r"\bvar\s+u(?:rl)?\s*=\s*[\"']" + _ADDRESS),
)


def check_blocked(text: str, final_url: str, patterns: tuple[str, ...]) -> ErrorClass | None:
    """Return the class of a refusal, by the first pattern that matches; `None` if the page is no refusal.

    Args:
        text: the shown text of a page without records.
        final_url: the address after redirects; many hosts redirect to their captcha.
        patterns: `blocked` of the result or page rules.
    """
    for pattern in patterns:
        compiled = compile_pattern(pattern)
        match = compiled.search(text) or compiled.search(final_url)
        if match:
            return refusal(f"{pattern} {match[0]}")
    return None


def refusal(wording: str) -> ErrorClass:
    """Return the class of a refusal by its wording; FORBIDDEN if the wording does not show it."""
    for error, facts in FACTS.items():
        if facts.wording is not None and facts.wording.search(wording):
            return error
    return ErrorClass.FORBIDDEN


def raise_if_blocked(text: str, final_url: str, patterns: tuple[str, ...]) -> None:
    """Raise FetchError with the beginning of the page's text if the page is a refusal."""
    error = check_blocked(text, final_url, patterns)
    if error is not None:
        raise FetchError(
            error, Message("{final_url} answers: {text}", final_url=final_url[:200], text=text[:120])
        )


def redirect_target(response: Response) -> str | None:
    """Return the sendable address that a response redirects to: by its Location, a meta refresh or a script.

    `None` if it redirects nowhere, or to the requested address.

    Args:
        response: the answer to one request, whose redirect was not followed.
    """
    if 300 <= response.status < 400:
        reference, encoding = response.headers.get("location", ""), "utf-8"
    else:
        page, encoding = _beginning(response)
        matches = (form.search(page) for form in _REDIRECTS)
        reference = next((resolve_references(match[1].replace("\\/", "/")) for match in matches if match), "")
    if not reference:
        return None
    try:
        address = resolve_reference(response.url, reference, encoding)
    except FetchError:
        return None
    return address if address != response.url else None


def _beginning(response: Response) -> tuple[str, str]:
    """Return the beginning of an answer's text with its encoding; both are empty if it is no text."""
    beginning = response.body[:_REDIRECT_BYTES]
    if len(response.body) > _REDIRECT_BYTES:
        beginning = beginning.rpartition(b">")[0]  # no part of a character
    try:
        return decode(beginning, response.headers)[:2]
    except FetchError:
        return "", ""


def address_in(link: str) -> str:
    """Return the sendable address that a link of an engine holds; empty if it holds none.

    Bing's `/ck/a?...&u=a1aHR0cHM6Ly9...` holds one: behind `a1`, in base64url without padding.
    """
    try:
        value = parse_qs(urlsplit(link).query).get("u", [""])[0]
        if not value.startswith("a1"):
            return ""
        encoded = value[2:]
        address = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        return sendable(address) if address.startswith(("http://", "https://")) else ""
    except (binascii.Error, ValueError, FetchError):
        return ""
