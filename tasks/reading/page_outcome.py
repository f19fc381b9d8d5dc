"""Judge a result page without hits by an engine's rules: a refusal, an empty answer, or a page with hits.

One classifier serves all engines: multinomial logistic regression over traits that belong to no engine (lengths, links,
forms, scripts, repeated structure, words of refusals and of empty answers). Its weights are data
(`page-outcome-weights.txt`), made by `python -m research.training.train_outcome`; docs/formats.md has its scores.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import exp, log1p
from typing import Literal
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.markup import page_text

Outcome = Literal["refused", "empty", "broken"]
OUTCOMES: tuple[Outcome, ...] = ("refused", "empty", "broken")

_REFUSAL = re.compile(
    r"验证码|安全验证|人机|机器人|异常(?:访问|请求|流量)|访问异常|访问(?:过于)?频繁|频率|请先?登录|登录后|封禁"
    r"|拒绝访问|访问受限|系统检测|captcha|robot|unusual traffic|verify (?:you|that)|are you (?:a )?human|not a bot"
    r"|access denied|forbidden|blocked|too many requests|security check|checking your browser|ddos protection"
    r"|just a moment|one last step|visitor system|please (?:log|sign) ?in|enable javascript"
    r"|(?:javascript|cookies?) (?:is |are )?required|не робот|робот, а|похожи на автоматические"
    r"|подозрительный трафик|символы (?:с картинки|ниже)|доступ (?:запрещ|огранич)|zugriff verweigert|kein roboter"
    r"|acc[èe]s refus[ée]|acceso denegado|アクセスが拒否|ロボットでは",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:没有?|未能?|无法?)(?:找到|搜索到|检索到|查到|搜到)|没有(?:与|和|符合|相关|匹配)|无(?:相关|匹配|搜索)?结果"
    r"|找不到|暂无|这里还没有内容|(?<![\d,.])0\s*(?:个|条|篇)(?:相关)?(?:结果|记录|搜索)|结果约?\s*0\s*[个条篇]"
    r"|did(?: not|n't) match|no (?:\w+ )?(?:results|matches|documents|hits)|not find any|not found"
    r"|nothing (?:was )?found|(?<![\d,.\u00a0\u202f])(?<!\d )0 (?:results|matches|hits|items)"
    r"|there (?:are|were) no|we have no|couldn['’]t find|no se (?:han )?encontr|sin resultados|nenhum resultado"
    r"|aucun r[ée]sultat|keine? (?:\w+ )?(?:ergebnisse?|treffer|eintr[äa]ge|medien|ausleihen|vormerkungen)"
    r"|auf keine|liegen (?:\w+ )?keine|нет информации|не дал результатов|ничего не (?:найдено|нашлось)"
    r"|見つかりません|該当(?:する|データ)|검색 ?결과가 없|check your spelling|different keywords"
    r"|换(?:个|一个)?(?:关键词|词)|检查(?:您的)?输入",
    re.IGNORECASE,
)
_CHALLENGE = re.compile(
    r"captcha|challenge|geetest|antispider|x5sec|punish|wappass|cf[-_]chl|jschl|verify|visitor", re.IGNORECASE
)
_SIGN_IN = re.compile(
    r"登录|登入|log ?[io]n\b|sign ?[io]n\b|anmeld|einlogg|connexion|authentifi|iniciar ses|accedi|вход|авториз"
    r"|аутентиф|ログイン|로그인|logowanie|zaloguj|prihl[áa]s|giri[şs]|logg inn|log ind|meld u aan",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?:约|共|找到|about|of|Ungefähr|Environ|нашл[а-я]{1,4})[^\d\n]{0,12}[1-9]"
    r"|[1-9][\d,.]{0,15}+\s{0,3}(?:个|条|篇|万)?\s{0,3}(?:相关)?"
    r"(?:结果|results?\b|hits\b|matches\b|items\b|ergebnisse|treffer|résultats|ответ|результат)",
    re.IGNORECASE,
)
_TEXT_INPUTS = 'input:not([type]), input[type="text"], input[type="search"]'
_LONG_TEXT = 8
_HEAD_CHARS, _LITTLE_TEXT = 3000, 200
_MOST_LINKS, _LEVELS = 1000, 4
_MOST_GROUPS, _LEAST_ALIKE, _RECORD_CHARS = 20, 3, 40
_SURE = 0.8
_SIGNS = (
    "words of refusal",
    "names of challenges",
    "password inputs",
    "words of signing in in the title",
)


def traits(text: str, tree: LexborHTMLParser, url: str) -> dict[str, float]:
    """Return the features of a page by name; counts are logarithms.

    Args:
        text: the page's markup as it came.
        tree: the page without scripts and hidden elements.
        url: the page's address.
    """
    host = urlsplit(url).hostname or ""
    links = tree.css("a[href]")
    shown = page_text(tree)
    begins = shown[:_HEAD_CHARS]
    title = tree.css_first("title")
    name = title.text() if title is not None else ""
    out = sum(
        (href := link.attrs.get("href") or "").startswith(("http", "//")) and host not in href
        for link in links
    )
    groups = _groups(links)
    records, told = _records(groups)
    long = [link for link in links if len(link.text().strip()) >= _LONG_TEXT]
    scripts = sum(len(part.partition("</script")[0]) for part in text.lower().split("<script")[1:])
    return {
        "markup": log1p(len(text)),
        "shown": log1p(len(shown)),
        "links": log1p(len(links)),
        "links out of the site": log1p(out),
        "links with long texts": log1p(len(long)),
        "blocks alike": log1p(max((len(blocks) for blocks in groups), default=0)),
        "records": log1p(records),
        "share of records": min(1.0, told / max(1, len(shown))),
        "a number of hits": float(bool(_NUMBER.search(begins))),
        "words of signing in in the title": float(bool(_SIGN_IN.search(name))),
        "nothing but scripts": float(len(shown) < _LITTLE_TEXT and "<script" in text),
        "headings": log1p(len(tree.css("h2, h3, h4"))),
        "share of scripts": scripts / max(1, len(text)),
        "forms": log1p(len(tree.css("form"))),
        "text inputs": log1p(len(tree.css(_TEXT_INPUTS))),
        "password inputs": float(bool(tree.css('input[type="password"]'))),
        "hidden inputs": log1p(len(tree.css('input[type="hidden"]'))),
        "words of refusal": log1p(len(_REFUSAL.findall(begins))),
        "words of refusal in the title": float(bool(_REFUSAL.search(name))),
        "words of nothing": log1p(len(_NOTHING.findall(begins))),
        "names of challenges": log1p(len(_CHALLENGE.findall(text[:20_000]))),
    }


def _groups(links: Sequence[LexborNode]) -> list[list[LexborNode]]:
    """Return groups of similar blocks around links (one tag, class and parent), the largest group first."""
    groups: dict[tuple[str, str, int], dict[int, LexborNode]] = defaultdict(dict)
    for link in links[:_MOST_LINKS]:
        block = link.parent
        for _ in range(_LEVELS):
            if block is None or block.parent is None or block.tag is None:
                break
            groups[block.tag, block.attrs.get("class") or "", block.parent.mem_id][block.mem_id] = block
            block = block.parent
    return sorted((list(blocks.values()) for blocks in groups.values()), key=len, reverse=True)


def _records(groups: Sequence[Sequence[LexborNode]]) -> tuple[int, int]:
    """Return the number of records in the group that has the most, and their characters."""
    best = (0, 0)
    for blocks in groups[:_MOST_GROUPS]:
        if len(blocks) < _LEAST_ALIKE:
            break
        lengths = [len(block.text(strip=True)) for block in blocks]
        told = [n for n in lengths if n >= _RECORD_CHARS]
        best = max(best, (len(told), sum(told)))
    return best


Weights = Mapping[str, tuple[float, float, float, float, float]]
"""Mean and spread of each trait in training, then its weight for each of `OUTCOMES`."""


def chances(found: Mapping[str, float], weights: Weights) -> dict[Outcome, float]:
    """Return the probability of each outcome."""
    sums = [0.0, 0.0, 0.0]
    for name, (mean, spread, *of) in weights.items():
        value = (found.get(name, 1.0) - mean) / spread
        for place, weight in enumerate(of):
            sums[place] += weight * value
    grown = [exp(one - max(sums)) for one in sums]
    return {outcome: one / sum(grown) for outcome, one in zip(OUTCOMES, grown, strict=True)}


def outcome(text: str, tree: LexborHTMLParser, url: str) -> tuple[Outcome, float]:
    """Return the likeliest outcome of a page without hits, with its probability.

    A page is a refusal only if that is likely and the page has a word or a name of one, or asks to sign in, because its
    host will rest.
    """
    found = traits(text, tree, url)
    likely = chances(found, page_weights())
    best = max(OUTCOMES, key=lambda one: likely[one])
    signs = any(found[name] for name in _SIGNS)
    if best == "refused" and (not signs or likely[best] < _SURE):
        best = "broken"
    return best, likely[best]


@cache
def page_weights() -> Weights:
    """Return the weights that come with the project."""
    return parse_weights(files("tasks.reading").joinpath("page-outcome-weights.txt").read_text("utf-8"))


def parse_weights(text: str) -> Weights:
    """Read weights from lines ``trait<tab>mean<tab>spread<tab>weights``; ``#`` begins a comment."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, *numbers = line.split("\t")
            mean, spread, refused, empty, broken = map(float, numbers)
            found[name] = (mean, spread, refused, empty, broken)
    return found
