"""Result pages as engines write them: the format is chosen by the engine's name.

    model       what a format gets and what it is; an engine's own redirect links
    paper2014   the two engines of `paper-2014`
    baidu, sogou, weibo, others, auto12365   those of today
    made        pages made from the rules that read them, for engines of any other name

Baidu of 2014 and of today share a name: rules whose hit is `div.result` read the former. Where rules are too involved
to make a page from them, the engine gets the format of its kind, so that rules that read nothing can be tried, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.lab.engines import auto12365, baidu, others, paper2014, sogou, weibo
from app.lab.engines.made import made
from app.lab.engines.model import EngineFormat
from app.lab.markup import NotSimple
from splitter.catalog.model import Engine
from splitter.catalog.names import Kind

_NAMED: Mapping[str, EngineFormat] = {
    "baidu": baidu.BAIDU,
    "baidu-json": baidu.BAIDU_JSON,
    "sogou": sogou.SOGOU,
    "sogou-weixin": sogou.WEIXIN,
    "so360": others.SO360,
    "bing": others.BING,
    "quark": others.QUARK,
    "12365auto-list": auto12365.LIST,
    "searxng": others.SEARXNG,
    "weibo": weibo.WEIBO,
    "weibo-desktop": weibo.WEIBO_DESKTOP,
    "weibo-yunyun": paper2014.YUNYUN,
}
_HIT_2014 = "div.result"


def engine_format(name: str, engine: Engine) -> EngineFormat:
    """The format of an engine."""
    if engine.results.hit == _HIT_2014:
        return paper2014.BAIDU
    if name in _NAMED:
        return _NAMED[name]
    try:
        return made(engine)
    except (NotSimple, ValueError):
        return paper2014.YUNYUN if engine.kind is Kind.MICROBLOG else paper2014.BAIDU
