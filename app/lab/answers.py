"""What one request may be answered."""

from __future__ import annotations

from enum import StrEnum


class Answer(StrEnum):
    """What one request may be answered."""

    PAGE = "page"  # what the well-behaved web says
    NOT_FOUND = "not_found"  # 404
    GONE = "gone"  # 410
    SERVER_ERROR = "server_error"  # 500
    UNAVAILABLE = "unavailable"  # 503
    RATE_LIMITED = "rate_limited"  # 429 with Retry-After
    TOO_FREQUENT = "too_frequent"  # 200 and a page that says so
    FORBIDDEN = "forbidden"  # 403
    CAPTCHA = "captcha"  # 200 and a captcha page
    LOGIN_PAGE = "login_page"  # 200 and a page that asks to sign in
    LOGIN_REDIRECT = "login_redirect"  # 302 to such a page
    MOVED = "moved"  # 301 to the same path under www.
    CUT_OFF = "cut_off"  # a body shorter than its Content-Length, then the end of the connection
    HANG = "hang"  # nothing, until the client goes or the hang is over
    DEAD = "dead"  # the connection is reset without an answer
