"""车质网's lists of complaints: a table of eight columns, as crawlers since 2016 read it."""

from __future__ import annotations

from typing import Any

from app.lab import chance
from app.lab.engines.model import EngineFormat, Hit, html_writer
from app.lab.pages import TEMPLATES

_FAULTS = ("发动机:异响", "变速器:顿挫", "车身附件及电器:影音系统故障", "服务:服务态度")
_STATES = ("信息审核", "厂家受理", "厂家回复", "用户评分")


def _row(*, entry: Hit, **fields: Any) -> str:
    draw = chance.number(0, "12365auto", entry.url)
    return TEMPLATES["12365auto-list"]["hit"].format(
        entry=entry,
        words=entry.title[:20],
        fault=_FAULTS[draw % len(_FAULTS)],
        state=_STATES[draw // 7 % len(_STATES)],
        **fields,
    )


LIST = EngineFormat(html_writer("12365auto-list", _row))
