"""Whether what a page says is a review of the product that it was found for.

A search for 光明 & 高钙 & 牛奶 also finds pages about something else, lists of other pages, what a shop says of
its goods. Two questions are apart, because a page serves several products:

- Is a record a review at all? That is the record's own: `judged` sorts out those that are none, with the reason.
- Does the page name the product? That is of the pair (page, product): `naming`. The page as a whole is asked (its
  title and all its reviews): the posts of a thread rarely repeat what it is about.

A page names a product if it holds enough of a keyword set: the words of the product's name, or of one of its
aliases, weighed by what they tell (a model most, an attribute least), and of those that identify it at least one.
The weights and the share are chosen by `reviewloop bench relevance`. All pure: text in, decision out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

from splitter.dictionary import Role, user_words
from splitter.lexicon import lexicon
from splitter.normalize import normalize

from tasks.crawl.model import PageRead, Review

LEAST_SHARE = 0.51
"""Share of a keyword set's weight that a page must hold (`reviewloop bench relevance`)."""

TEXT_CHARS = 20_000
"""Characters of a page that are looked at."""

_LEAST_TEXT = 5
"""Letters of a main text; less is a caption or a notice. A record may be a single word: 赞."""

_WORD = re.compile(r"\w")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
# What shops put in the place of a review that nobody wrote.
_NOT_WRITTEN = re.compile(
    r"(?:此|该)?(?:用户|会员|买家|顾客|客户)(?:没有|未|暂未)(?:及时)?(?:填写|写下|做出|作出|发表)(?:任何)?(?:评价|评论)?(?:内容)?"
    r"|系统默认(?:好评|评价)|评价方未及时做出评价.*|(?:默认)?好评[!！。]?系统自动.*|暂无(?:评价|评论)(?:内容)?"
    r"|(?:该|此)(?:评论|评价|内容|微博|帖子|楼层|回复)(?:已|不存在|已经)?(?:被)?(?:作者|系统|管理员|楼主|用户)?(?:删除|屏蔽|不存在)"
    r"|抱歉[,，].{0,20}(?:已被|不存在|删除).{0,40}"
)
_CONTROLS = re.compile(
    r"(?:举报|回复|赞\s*[\[(（]\d+|点赞|收藏|转发|评论|分享|删除|展开|收起|更多|下一页|上一页|首页|尾页|登录|注册|返回|顶部|楼主|沙发|查看|全部|全文"
    r"|[\[(（]?\d+[\])）]?|[\s|·>»/,，.。:：])+"
)
_LOGIN = re.compile(
    r"(?:请先?|需要|必须|您还没有?|尚未)登[录陆]|登[录陆]后(?:才能|可以?|即可|查看|继续)|用户登[录陆]|忘记密码|扫码登[录陆]"
)
_LOGIN_CHARS = 200
# Lines of a data sheet: 净含量：250ml, 保质期: 6个月.
_SPEC = re.compile(
    r"(?:品牌|品名|商品名称|产品名称|商品编号|货号|型号|规格|净含量|产地|原产地|配料表?|保质期|储存方法|贮存条件|生产许可证编?号?|产品标准号"
    r"|厂名|厂址|厂家联系方式|包装方式|包装种类|口味|适用人群|材质|颜色分类|上市时间|毛重|商品产地|类别|厂商|批准文号|售价|市场价|库存)\s*[:：]"
)
_SHOP = re.compile(
    r"加入购物车|立即购买|马上抢购|立即抢购|月销量?|商品详情|规格参数|商品介绍|售后保障|包装清单|加入收藏"
)
_OPINION = re.compile(
    r"我|俺|咱|自己|老公|老婆|孩子|宝宝|朋友|同事|买了|买的|喝了|用了|吃了|收到|感觉|觉得|投诉|退货|客服|好喝|难喝|好用|好吃|难吃|失望|满意|推荐|不错"
)
_LEAST_SPECS = 4


class NoReview(StrEnum):
    """Why a record is no review."""

    EMPTY = "empty"  # not one letter or digit
    SHORT = "short"  # a main text of some words
    BOILERPLATE = "boilerplate"  # what a site puts where nobody wrote anything, or its buttons
    LIST = "list"  # the page lists other pages
    LOGIN = "login"  # it asks to sign in
    GOODS = "goods"  # a shop's or maker's description: a data sheet, and nobody's opinion


class Verdict(StrEnum):
    """What a page is to a product."""

    REVIEW = "review"
    WRONG_PRODUCT = "wrong_product"
    NO_REVIEW = "no_review"


class Judged(NamedTuple):
    """A page's reviews, and how many records were none, by reason (`NoReview`)."""

    reviews: tuple[Review, ...]
    refused: Mapping[str, int]


def judged(read: PageRead, reviews: Sequence[Review], *, main_text: bool) -> Judged:
    """Sort out what is no review.

    Args:
        read: the page; of its records those of `reviews` count, which may come from several parts of a list.
        main_text: whether they were read without record rules.
    """
    kept: list[Review] = []
    refused: Counter[str] = Counter()
    for review in reviews:
        reason = no_review(review, main_text=main_text)
        if reason is None:
            kept.append(review)
        else:
            refused[reason.value] += 1
    if not reviews and read.no_review:
        refused[read.no_review] += 1
    return Judged(tuple(kept), dict(refused))


def no_review(review: Review, *, main_text: bool) -> NoReview | None:
    """Why a record is no review; None where it may be one."""
    body = review.body
    if _WORD.search(body) is None:
        return NoReview.EMPTY
    if _NOT_WRITTEN.fullmatch(body.strip(" 。.!！[]【】")) or _CONTROLS.fullmatch(body):
        return NoReview.BOILERPLATE
    if not main_text:
        return None
    if len(body) < _LOGIN_CHARS and _LOGIN.search(body):
        return NoReview.LOGIN
    if len(_WORD.findall(body[: 4 * _LEAST_TEXT])) < _LEAST_TEXT:
        return NoReview.SHORT
    sheet = len(set(_SPEC.findall(body))) + len(set(_SHOP.findall(body)))
    return NoReview.GOODS if sheet >= _LEAST_SPECS and _OPINION.search(body) is None else None


@dataclass(frozen=True, slots=True)
class Naming:
    """Whether a page names a product.

    Attributes:
        missing: words of the keyword set nearest to it that the page does not hold.
    """

    named: bool
    missing: tuple[str, ...]


def spoken(title: str, reviews: Iterable[tuple[str, str]]) -> str:
    """What a page says, written the one way, to be asked for words.

    Args:
        title: of the page.
        reviews: title and body of each, in their order.
    """
    parts, left = [title], TEXT_CHARS - len(title)
    for heading, body in reviews:
        if left <= 0:
            break
        parts += [heading, body[:left]]
        left -= len(heading) + len(body)
    return normalize("\n".join(parts)).casefold()


def naming(keyword_sets: Sequence[Sequence[str]], text: str) -> Naming:
    """Whether a text (of `spoken`) names what one of the keyword sets stands for; no sets: everything does."""
    best: tuple[float, tuple[str, ...]] | None = None
    for words in keyword_sets:
        share, missing = _held(tuple(words), text)
        if best is None or share > best[0]:
            best = share, missing
    if best is None:
        return Naming(True, ())
    return Naming(best[0] >= LEAST_SHARE, best[1])


def _held(words: tuple[str, ...], text: str) -> tuple[float, tuple[str, ...]]:
    """Share of the words' weight that a text holds, 0 where it holds none that identifies; and the words it lacks."""
    weights, identifying = _weights(words)
    missing = tuple(word for word in words if not holds(text, word))
    if identifying.issubset(missing):
        return 0.0, missing
    return 1 - sum(weights[word] for word in missing) / sum(weights.values()), missing


_LINE, _MODEL, _BRAND, _KIND, _OTHER, _LITTLE = 3.0, 4.0, 2.0, 2.0, 0.6, 0.4
_OF_ROLE = {
    Role.BRAND: _BRAND,
    Role.SERIES: _LINE,
    Role.PRODUCT: _KIND,
    Role.TRAIT: _LITTLE,
    Role.PLACE: _LITTLE,
}


@lru_cache(maxsize=4096)
def _weights(words: tuple[str, ...]) -> tuple[Mapping[str, float], frozenset[str]]:
    """What each word tells, as a weight; and those words of which a page must hold one.

    A name begins with its brand, and its model follows: an unknown word is taken for what stands in its place.
    """
    roles = [_roles().get(word) for word in words]
    weights: dict[str, float] = {}
    for place, (word, role) in enumerate(zip(words, roles, strict=True)):
        weight = _weight(word, role)
        if role is None and weight == _OTHER:
            if place and roles[place - 1] is Role.BRAND:
                weight = _LINE
            elif not place and Role.BRAND not in roles:
                weight = _BRAND
        weights[word] = weight
    brands = roles.count(Role.BRAND)
    telling = {word: role for word, role in zip(words, roles, strict=True) if weights[word] >= _BRAND}
    identifying = {word for word, role in telling.items() if role is not Role.PRODUCT}
    for word, role in zip(words, roles, strict=True):
        if role is Role.BRAND:
            weights[word] /= brands  # a maker and its brand (一汽 大众) tell no more than one of them
    return weights, frozenset(identifying or telling or words)


def _weight(word: str, role: Role | None) -> float:
    if role is not None:
        return _OF_ROLE.get(role, _OTHER)
    if word.isascii():
        return _MODEL if not word.isdigit() and any(char.isdigit() for char in word) else _BRAND
    return _OTHER if len(word) > 1 else _LITTLE


@cache
def _roles() -> dict[str, Role]:
    return {word: role for word, (_, role) in user_words().items()}


def share(words: Sequence[str], text: str) -> float:
    """Share of a keyword set's weight that a text holds; 0 where it holds none of the words that tell most."""
    return _held(tuple(words), text)[0]


def holds(text: str, word: str) -> bool:
    """Whether a text (of `spoken`) holds a keyword, in any of its spellings."""
    return any(one.search(text) for one in _patterns(word))


@lru_cache(maxsize=8192)
def _patterns(word: str) -> tuple[re.Pattern[str], ...]:
    """How a word may be written: as it is, as its brand is written elsewhere, as another spelling, or by its head."""
    known = lexicon()
    spellings = {word, *known.names_of.get(word, ())}
    spellings |= {other for other, one in known.same.items() if one == word}
    if _roles().get(word) == Role.BRAND:
        spellings |= {line for line, brand in known.brand_of.items() if brand == word}
    if _roles().get(word) == Role.PRODUCT and len(word) > 2 and _CHINESE.fullmatch(word[-1]):
        spellings.add(word[-2:])  # 纯牛奶: people say 牛奶
    return tuple(_pattern(spelling.casefold()) for spelling in sorted(spellings))


def _pattern(word: str) -> re.Pattern[str]:
    """Letters and digits stand for themselves only as a whole: 11 is not in 2011, mate not in estimate."""
    before = r"(?<![a-z])" if re.match("[a-z]", word) else r"(?<![\d.])" if word[:1].isdigit() else ""
    after = r"(?![a-z])" if re.search("[a-z]$", word) else r"(?![\d.]\d|\d)" if word[-1:].isdigit() else ""
    return re.compile(before + re.escape(word) + after)
