"""Recognise a page that sells one thing: its text is the shop's description, and no review."""

from __future__ import annotations

import re
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from tasks.reading.metadata import json_ld_things

_PRODUCT = re.compile(r"(?:^|/)(?:Individual)?Product(?:Model|Group)?$")
_ARTICLE = re.compile(r"(?:Article|BlogPosting|Report)$")
_ARTICLES = '[itemtype$="Article" i], [itemtype$="BlogPosting" i]'
_TYPED = re.compile(r"(?:og:)?product(?:\.item)?", re.IGNORECASE)
_PRICE = '[itemprop="price"], [itemprop="lowPrice"]'
_BUTTONS = "a, button, input[type=submit], input[type=button]"
_BUY = re.compile(
    r"\W*(?:加入购物车|放入购物车|加入購物車|立即购买|立即購買|马上抢|立即抢购"
    r"|add to (?:cart|bag|basket|trolley)|buy (?:it )?now|in den warenkorb"
    r"|ajouter au panier|añadir (?:al carrito|a la cesta)|в корзину|カートに入れる)\W*",
    re.IGNORECASE,
)
_MONEY = re.compile(r"[¥￥$€£₽]\s?\d|\d\s?(?:元|руб)")
_LONGEST_LABEL, _MOST_BUTTONS = 24, 3000
_MOST_BOUGHT = 2  # more are a list of things to buy


def is_goods(tree: LexborHTMLParser, *, dated: bool) -> bool:
    """Whether a page is a shop's of one product: it is marked as such, or one can be bought there at a price.

    Args:
        tree: of the whole page, with its scripts.
        dated: the page names its day. Unmarked articles do, and may sell the thing they describe.
    """
    typed = tree.css_first('meta[property="og:type" i]')
    kind = (typed.attributes.get("content") or "").strip() if typed is not None else ""
    if _TYPED.fullmatch(kind):
        return True
    things = list(json_ld_things(tree))
    if kind == "article" or tree.css_matches(_ARTICLES) or any(_is(thing, _ARTICLE) for thing in things):
        return False
    products = tree.css('[itemtype*="schema.org/Product" i]')
    offered = any(thing.get("offers") and _is(thing, _PRODUCT) for thing in things)
    if offered or (len(products) == 1 and products[0].css_first(_PRICE)):
        return True
    if dated or tree.body is None:
        return False
    buttons = tree.css(_BUTTONS)[:_MOST_BUTTONS]
    bought = sum(_is_buy(node.attributes.get("value") or node.text()) for node in buttons)
    return 0 < bought <= _MOST_BOUGHT and _MONEY.search(tree.body.text()) is not None


def _is_buy(label: str) -> bool:
    return len(label) <= 2 * _LONGEST_LABEL and _BUY.fullmatch(" ".join(label.split())) is not None


def _is(thing: dict[str, Any], kind: re.Pattern[str]) -> bool:
    types = thing.get("@type")
    named = types if isinstance(types, list) else [types]
    return any(isinstance(one, str) and kind.search(one) for one in named)
