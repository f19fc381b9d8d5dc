"""An answer of the lab as a whole."""

from __future__ import annotations

from dataclasses import dataclass

HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Document:
    """An answer: status, value of Content-Type, body as sent; `location`: of a redirect, else empty."""

    status: int
    content_type: str
    body: bytes
    location: str = ""


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
