"""Pages that stand between a request and the page it is for: refusals, and redirects written into a page.

A refusal is a captcha, a login wall or a "too often", whatever its status. A review may well speak of a captcha, so the
patterns prove nothing as long as a page has records: readers search for records first, and for a refusal only where
there are none.

Search engines list links of their own, to count who follows them. Each is requested once, without following it, so that
the page behind it is known by its own address however many engines list it.
"""

from __future__ import annotations

import re
from html import unescape

from splitter.catalog.patterns import compile_pattern

from tasks.domain.address import joined
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response

# The kind of a refusal by its wording; the first that fits.
_WORDING = (
    (ErrorClass.CAPTCHA, re.compile(r"验证码|安全验证|人机验证|captcha|verify", re.IGNORECASE)),
    (
        ErrorClass.LOGIN_WALL,
        re.compile(r"登录|登陆|visitor system|log-?\s?in|sign-?\s?in|passport", re.IGNORECASE),
    ),
    (ErrorClass.RATE_LIMITED, re.compile(r"频繁|频率|too many|unusual traffic", re.IGNORECASE)),
)

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
    """The class of the refusal a page is, by the first pattern that matches; None for no refusal.

    Args:
        text: of the page, as shown. Of a page that gave no record: see the module.
        final_url: after redirects; many hosts redirect to their captcha.
        patterns: `blocked` of the result or page rules.
    """
    for pattern in patterns:
        compiled = compile_pattern(pattern)
        match = compiled.search(text) or compiled.search(final_url)
        if match:
            return refusal(f"{pattern} {match[0]}")
    return None


def refusal(wording: str) -> ErrorClass:
    """The class of a refusal by its wording; FORBIDDEN where that does not say."""
    return next((error for error, words in _WORDING if words.search(wording)), ErrorClass.FORBIDDEN)


def raise_if_blocked(text: str, final_url: str, patterns: tuple[str, ...]) -> None:
    """Raise the FetchError of a refusal, with the beginning of what the page says; nothing if it is none."""
    error = check_blocked(text, final_url, patterns)
    if error is not None:
        raise FetchError(error, f"{final_url[:200]} answers: {text[:120]}")


def redirect_target(response: Response) -> str | None:
    """The sendable address a response redirects to: by its Location, a meta refresh, or a script.

    None where it redirects nowhere, or to the address that was requested.

    Args:
        response: to one request, its redirect not followed.
    """
    if 300 <= response.status < 400:
        reference = response.headers.get("location", "")
    else:
        page = response.body[:_REDIRECT_BYTES].decode("utf-8", "replace")
        matches = (form.search(page) for form in _REDIRECTS)
        reference = next((unescape(match[1].replace("\\/", "/")) for match in matches if match), "")
    if not reference:
        return None
    try:
        address = joined(response.url, reference)
    except FetchError:
        return None
    return address if address != response.url else None
