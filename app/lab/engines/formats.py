"""Result pages as engines write them: a module a family, chosen by the engine's name.

    model       what a format is told and is
    paper2014   the two engines of `paper-2014`
    baidu, sogou, so360, bing, quark, searxng, weibo   today's
    redirects   an engine's own redirect links
    made        pages made from the rules that read them, for engines of any other name

Baidu of 2014 and of today share a name: rules whose hit is `div.result` read the former. An engine of another name is
served what its rules read (`made`); where they are too involved for that, the format of its kind, so that
rules that read nothing can be tried, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from app.lab.engines import baidu, others, paper2014, sogou, weibo
from app.lab.engines.made import made
from app.lab.engines.model import EngineFormat, Entry, Results, entry_of
from app.lab.markup import NotSimple
from splitter.catalog.model import Engine, Kind

__all__ = ["EngineFormat", "Entry", "Results", "engine_format", "entry_of"]

_NAMED: Mapping[str, EngineFormat] = {
    "baidu": baidu.BAIDU,
    "baidu-json": baidu.BAIDU_JSON,
    "sogou": sogou.SOGOU,
    "sogou-weixin": sogou.WEIXIN,
    "so360": others.SO360,
    "bing": others.BING,
    "quark": others.QUARK,
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
