"""Kinds of answers to one request, and the documents of those that are no page (errors, captcha, login wall)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.lab.markup import sample_text
from splitter.catalog.patterns import compile_pattern


class Answer(StrEnum):
    """Kinds of answers to one request."""

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


HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Document:
    """An answer.

    Attributes:
        content_type: value of that header.
        location: where a redirect leads; empty: it is none.
        headers: any more of them.
    """

    status: int
    content_type: str
    body: bytes
    location: str = ""
    headers: tuple[tuple[str, str], ...] = ()


def redirect(location: str, status: int = 302) -> Document:
    """An answer that leads elsewhere."""
    return Document(status, HTML, b"", location)


def notice(status: int, text: str, html: str = "") -> Document:
    """A small page that says one thing; `html` goes below its heading."""
    page = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{text}</title></head>\n'
        f'<body><div class="notice"><h1>{text}</h1>{html}<p><a href="/">返回首页</a></p></div></body></html>\n'
    )
    return Document(status, HTML, page.encode())


_PLAIN: dict[Answer, tuple[int, str]] = {
    Answer.NOT_FOUND: (404, "404 Not Found：您访问的页面不存在"),
    Answer.GONE: (410, "410 Gone：该内容已被删除"),
    Answer.SERVER_ERROR: (500, "500 Internal Server Error"),
    Answer.UNAVAILABLE: (503, "503 Service Unavailable：服务器繁忙"),
    Answer.RATE_LIMITED: (429, "429 Too Many Requests：访问过于频繁，请稍后再试"),
    Answer.TOO_FREQUENT: (200, "访问过于频繁，请稍后再试"),
    Answer.FORBIDDEN: (403, "403 Forbidden：您的访问被拒绝"),
    Answer.CAPTCHA: (200, "请输入验证码后继续访问。"),
    Answer.LOGIN_PAGE: (200, "请先登录后再查看内容"),
}
_DOCUMENTS = {answer: notice(*what) for answer, what in _PLAIN.items()}
LOGIN = _DOCUMENTS[Answer.LOGIN_PAGE]


def refusal(answer: Answer, blocked: Sequence[str] = ()) -> Document:
    """The document of an answer that is no page, no redirect, and nothing wrong with the connection.

    Args:
        answer: which one.
        blocked: regular expressions by which the host's rules know a refusal; where none matches an answer of
            status 200, its text is made from the first of them that is plain enough.

    Raises:
        KeyError: an answer of another sort.
    """
    status, text = _PLAIN[answer]
    if status != 200 or not blocked or any(compile_pattern(pattern).search(text) for pattern in blocked):
        return _DOCUMENTS[answer]
    words = next((text for pattern in blocked if (text := sample_text(pattern))), "")
    return notice(200, words) if words else _DOCUMENTS[answer]
