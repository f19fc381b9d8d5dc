"""Refusals that come as pages: captcha, login wall, "too often", whatever the status.

A review may well speak of a captcha, so these patterns are no evidence as long as a page gives what it was
asked for: readers look for records first, and ask here only where they found none.
"""

from __future__ import annotations

import re
from functools import lru_cache

from tasks.domain.crawl import ErrorClass, FetchError

# What a refusal wants, told from its wording; the first that fits.
_WORDING = (
    (ErrorClass.CAPTCHA, re.compile(r"验证码|安全验证|人机验证|captcha|verify", re.IGNORECASE)),
    (
        ErrorClass.LOGIN_WALL,
        re.compile(r"登录|登陆|visitor system|log-?\s?in|sign-?\s?in|passport", re.IGNORECASE),
    ),
    (ErrorClass.RATE_LIMITED, re.compile(r"频繁|频率|too many|unusual traffic", re.IGNORECASE)),
)


def check_blocked(text: str, final_url: str, patterns: tuple[str, ...]) -> ErrorClass | None:
    """The class of the refusal a page is, by the first pattern that matches; None for no refusal.

    Args:
        text: of the page, as shown. Of a page that gave no record: see the module.
        final_url: after redirects; many hosts redirect to their captcha.
        patterns: `blocked` of the result or page rules.
    """
    for pattern in _compiled(patterns):
        match = pattern.search(text) or pattern.search(final_url)
        if match:
            return refusal(f"{pattern.pattern} {match.group()}")
    return None


def refusal(wording: str) -> ErrorClass:
    """What a refusal wants, told from its wording; FORBIDDEN where it does not say."""
    return next((error for error, words in _WORDING if words.search(wording)), ErrorClass.FORBIDDEN)


def raise_if_blocked(text: str, final_url: str, patterns: tuple[str, ...]) -> None:
    """Raise the FetchError of a refusal, with the beginning of what the page says; nothing if it is none."""
    error = check_blocked(text, final_url, patterns)
    if error is not None:
        raise FetchError(error, f"{final_url[:200]} answers: {text[:120]}")


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, patterns))
