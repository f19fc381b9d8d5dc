"""The outcome of a result page in which an engine's rules find no hit: a refusal, an empty answer, or a page of hits.

One classifier over all engines: multinomial logistic regression over traits that no engine owns (lengths, links, forms,
scripts, repeated structure, words of refusals and of empty answers in Chinese and English). Its weights are data
(`page-outcome-weights.txt`), made by `python -m bench.tools.train_outcome`; docs/formats.md says what it reaches.
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
    r"验证码|安全验证|人机|机器人|异常(?:访问|请求|流量)|访问异常|访问(?:过于)?频繁|频率|请先?登录|登录后|封禁|拒绝访问"
    r"|访问受限|系统检测|captcha|robot|unusual traffic|verify (?:you|that)|are you (?:a )?human|not a bot|access denied"
    r"|forbidden|blocked|too many requests|security check|checking your browser|ddos protection|just a moment"
    r"|one last step|visitor system|please (?:log|sign) ?in|enable javascript",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:没有?|未能?|无法?)(?:找到|搜索到|检索到|查到|搜到)|没有(?:与|和|符合|相关|匹配)|无(?:相关|匹配|搜索)?结果|找不到|暂无|这里还没有内容"
    r"|did(?: not|n't) match|no (?:\w+ )?(?:results|matches|documents|hits)|not find any|nothing (?:was )?found"
    r"|0 results|no se (?:han )?encontr|keine (?:ergebnisse|treffer)|aucun r[ée]sultat|ничего не (?:найдено|нашлось)"
    r"|check your spelling|different keywords|换(?:个|一个)?(?:关键词|词)|检查(?:您的)?输入",
    re.IGNORECASE,
)
_CHALLENGE = re.compile(
    r"captcha|challenge|geetest|antispider|x5sec|punish|wappass|cf[-_]chl|jschl|verify|visitor", re.IGNORECASE
)
_TEXT_INPUTS = 'input:not([type]), input[type="text"], input[type="search"]'
_LONG_TEXT = 8
_HEAD_CHARS = 3000
_MOST_LINKS, _LEVELS = 1000, 4
_SURE = 0.8


def traits(text: str, tree: LexborHTMLParser, url: str) -> dict[str, float]:
    """Features of a page, by name; counts as their logarithms.

    Args:
        text: its markup, as it came.
        tree: of it, without scripts and hidden elements.
        url: its address.
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
    long = [link for link in links if len(link.text().strip()) >= _LONG_TEXT]
    scripts = sum(len(part.partition("</script")[0]) for part in text.lower().split("<script")[1:])
    return {
        "markup": log1p(len(text)),
        "shown": log1p(len(shown)),
        "links": log1p(len(links)),
        "links out of the site": log1p(out),
        "links with long texts": log1p(len(long)),
        "blocks alike": log1p(_most_alike(links)),
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


def _most_alike(links: Sequence[LexborNode]) -> int:
    """The most blocks around links that are alike: of one tag and class, side by side."""
    blocks: dict[tuple[str, str, int], set[int]] = defaultdict(set)
    for link in links[:_MOST_LINKS]:
        block = link.parent
        for _ in range(_LEVELS):
            if block is None or block.parent is None or block.tag is None:
                break
            blocks[block.tag, block.attrs.get("class") or "", block.parent.mem_id].add(block.mem_id)
            block = block.parent
    return max(map(len, blocks.values()), default=0)


Weights = Mapping[str, tuple[float, float, float, float, float]]
"""By trait: its mean and its spread in training, then a weight for each of `OUTCOMES`."""


def chances(found: Mapping[str, float], weights: Weights) -> dict[Outcome, float]:
    """How likely each outcome is."""
    sums = [0.0, 0.0, 0.0]
    for name, (mean, spread, *of) in weights.items():
        value = (found.get(name, 1.0) - mean) / spread
        for place, weight in enumerate(of):
            sums[place] += weight * value
    grown = [exp(one - max(sums)) for one in sums]
    return {outcome: one / sum(grown) for outcome, one in zip(OUTCOMES, grown, strict=True)}


def outcome(text: str, tree: LexborHTMLParser, url: str) -> tuple[Outcome, float]:
    """The likeliest outcome of a page without hits, and how likely it is.

    A refusal is told only of a page with a word or a name of one, and only if it is likely: its host will rest.
    """
    found = traits(text, tree, url)
    likely = chances(found, page_weights())
    best = max(OUTCOMES, key=lambda one: likely[one])
    signs = found["words of refusal"] or found["names of challenges"]
    if best == "refused" and (not signs or likely[best] < _SURE):
        best = "broken"
    return best, likely[best]


@cache
def page_weights() -> Weights:
    """The weights that come with the project."""
    return parse_weights(files("tasks.reading").joinpath("page-outcome-weights.txt").read_text("utf-8"))


def parse_weights(text: str) -> Weights:
    """Reads weights: a line ``trait<tab>mean<tab>spread<tab>weights`` each; ``#`` opens a comment."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, *numbers = line.split("\t")
            mean, spread, refused, empty, broken = map(float, numbers)
            found[name] = (mean, spread, refused, empty, broken)
    return found
