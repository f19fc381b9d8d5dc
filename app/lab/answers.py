"""Kinds of answers that the lab gives to a request, and the texts of those that are no pages of a site."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from splitter.catalog.patterns import compile_pattern


class LabAnswer(StrEnum):
    """Kinds of answers that the lab gives to a request."""

    PAGE = "page"  # the document of the web without faults
    NOT_FOUND = "not_found"  # 404
    GONE = "gone"  # 410
    SERVER_ERROR = "server_error"  # 500
    UNAVAILABLE = "unavailable"  # 503
    RATE_LIMITED = "rate_limited"  # 429 with Retry-After
    TOO_FREQUENT = "too_frequent"  # 200 and a page that asks to slow down
    FORBIDDEN = "forbidden"  # 403
    CAPTCHA = "captcha"  # 200 and a captcha page
    LOGIN_PAGE = "login_page"  # 200 and a page that asks to sign in
    LOGIN_REDIRECT = "login_redirect"  # 302 to such a page
    MOVED = "moved"  # 301 to the same path under www.
    CUT_OFF = "cut_off"  # a body shorter than its Content-Length, then the end of the connection
    HANG = "hang"  # no bytes until the client goes away or the hang ends
    DEAD = "dead"  # the connection is reset without an answer


HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class LabResponse:
    """The response of the lab to one request.

    Attributes:
        content_type: Value of the Content-Type header.
        location: Target of a redirect. Empty if this is not a redirect.
        headers: Further headers.
    """

    status: int
    content_type: str
    body: bytes
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def redirect(location: str, status: int = 302) -> LabResponse:
    """Return a response that redirects to `location`."""
    return LabResponse(status, HTML, b"", location)


def notice(status: int, text: str, html: str = "") -> LabResponse:
    """Return a small page that has `text` as its only heading, followed by `html`."""
    page = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{text}</title></head>\n'
        f'<body><div class="notice"><h1>{text}</h1>{html}<p><a href="/">返回首页</a></p></div></body></html>\n'
    )
    return LabResponse(status, HTML, page.encode())


_NOTICES: dict[LabAnswer, tuple[int, str]] = {
    LabAnswer.NOT_FOUND: (404, "404 Not Found：您访问的页面不存在"),
    LabAnswer.GONE: (410, "410 Gone：该内容已被删除"),
    LabAnswer.SERVER_ERROR: (500, "500 Internal Server Error"),
    LabAnswer.UNAVAILABLE: (503, "503 Service Unavailable：服务器繁忙"),
    LabAnswer.RATE_LIMITED: (429, "429 Too Many Requests：访问过于频繁，请稍后再试"),
    LabAnswer.TOO_FREQUENT: (200, "访问过于频繁，请稍后再试"),
    LabAnswer.FORBIDDEN: (403, "403 Forbidden：您的访问被拒绝"),
    LabAnswer.CAPTCHA: (200, "请输入验证码后继续访问。"),
    LabAnswer.LOGIN_PAGE: (200, "请先登录后再查看内容"),
}


def refusal(answer: LabAnswer, blocked: Sequence[str] = ()) -> LabResponse:
    """Return the page for an answer that refuses the request, such as 404, a captcha or a login wall.

    Args:
        blocked: Regular expressions in the host's rules that recognise refusals. If none matches a page with status
            200, its text is made from the first simple expression.

    Raises:
        KeyError: The answer has no such page (a page of the site, a redirect, or a broken connection).
    """
    status, text = _NOTICES[answer]
    if status == 200 and not any(compile_pattern(pattern).search(text) for pattern in blocked):
        text = next((sample for pattern in blocked if (sample := sample_text(pattern))), text)
    return notice(status, text)


_CAPTURED = re.compile(r"\((?!\?)[^()]*\)")
_GROUP = re.compile(r"(?<!\\)\(\?:((?:\\.|[^\\|()])*)(?:\|(?:\\.|[^\\()])*)?\)")
_OPTIONAL = re.compile(r"\\s[*+?]?|\[\^[^\[\]]*\][*+]\??|\.(?:[*+]\??|\{\d+,\d*\})")


def sample_text(pattern: str, number: int | None = None) -> str:
    """Return a text that a regular expression matches; empty if the expression is not simple enough.

    Args:
        number: Number to put into the first group, if the expression captures one.
    """
    text = _CAPTURED.sub(str(number), pattern, count=1) if number is not None else pattern
    text = _OPTIONAL.sub("", _GROUP.sub(r"\1", text).split("|")[0])
    text = re.sub(r"\\([.()\[\]?*+/{}-])", r"\1", re.sub(r"(?<!\\)[?^$]", "", text))
    match = compile_pattern(pattern).search(text)
    is_sample = match is not None and (number is None or match[1] == str(number))
    return text if is_sample else ""
