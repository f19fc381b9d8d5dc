"""Answers that are no page: error pages, captcha and login pages, as whole documents."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.lab.answers import Answer
from app.lab.document import Document, notice
from app.lab.engines.made import spoken

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
        blocked: what the host's rules take for a refusal; one with status 200 that none of them knows is told in
            words of the first that can be said.

    Raises:
        KeyError: an answer of another sort.
    """
    status, text = _PLAIN[answer]
    if status != 200 or not blocked or any(re.search(pattern, text) for pattern in blocked):
        return _DOCUMENTS[answer]
    said = next((words for pattern in blocked if (words := spoken(pattern))), "")
    return notice(200, said) if said else _DOCUMENTS[answer]
