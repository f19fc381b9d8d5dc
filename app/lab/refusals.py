"""Answers that are no page: error pages, captcha and login pages, as whole documents."""

from __future__ import annotations

from app.lab.profile import Answer
from app.lab.web import UTF8_HTML, Document

_PLAIN: dict[Answer, tuple[int, str]] = {
    Answer.NOT_FOUND: (404, "404 Not Found：您访问的页面不存在"),
    Answer.GONE: (410, "410 Gone：该内容已被删除"),
    Answer.SERVER_ERROR: (500, "500 Internal Server Error"),
    Answer.UNAVAILABLE: (503, "503 Service Unavailable：服务器繁忙"),
    Answer.RATE_LIMITED: (429, "429 Too Many Requests：访问过于频繁，请稍后再试"),
    Answer.TOO_FREQUENT: (200, "访问过于频繁，请稍后再试"),
    Answer.FORBIDDEN: (403, "403 Forbidden：您的访问被拒绝"),
    Answer.LOGIN_PAGE: (200, "请先登录后再查看内容"),
}


def _document(status: int, text: str) -> Document:
    html = (
        f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"><title>{text}</title></head>\n'
        f'<body><div class="notice"><h1>{text}</h1><p><a href="/">返回首页</a></p></div></body></html>\n'
    )
    return Document(status, UTF8_HTML, html.encode())


_DOCUMENTS = {answer: _document(*what) for answer, what in _PLAIN.items()}
LOGIN = _DOCUMENTS[Answer.LOGIN_PAGE]


def refusal(answer: Answer, captcha: str) -> Document:
    """The document of an answer that is no page, no redirect, and nothing wrong with the connection.

    Args:
        answer: which one.
        captcha: what the host's captcha page says.

    Raises:
        KeyError: an answer of another sort.
    """
    return _document(200, captcha) if answer is Answer.CAPTCHA else _DOCUMENTS[answer]
