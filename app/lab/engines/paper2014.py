"""The two engines of the catalog `paper-2014`, in the formats its rules read."""

from __future__ import annotations

from app.lab.answers import Answer, notice
from app.lab.engines.model import EngineFormat, html_writer

_CAPTCHA = notice(200, "百度安全验证：请完成下方验证后继续访问。")
BAIDU = EngineFormat(html_writer("baidu-2014"), refusals={Answer.CAPTCHA: _CAPTCHA})
YUNYUN = EngineFormat(html_writer("yunyun"))
