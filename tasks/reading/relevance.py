"""Relevance check of a page's records: which of them are reviews at all, and why the others are none.

A search for 光明 & 高钙 & 牛奶 also finds pages about something else, lists of other pages, and a shop's text about its
goods. Two questions are separate, because a page serves several products: whether a record is a review (here), and
whether the page is about the product it was found for (`tasks.reading.judge.product_match`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import StrEnum

from tasks.domain.pages import PageRead, Review

_LEAST_TEXT = 5
"""Letters of a main text; less is a caption or a notice. A record of a list may be a single word: 赞."""

_WORD = re.compile(r"[^\W_]")
# Phrases of platforms in place of a review that a person did not write; several may follow one another.
_NOT_WRITTEN = re.compile(
    r"(?:(?:\d+天内)?(?:(?:此|该|本)?(?:用户|会员|买家|顾客|客户|评价方)|您)?(?:没有|未|暂未)(?:及时|能及时)?"
    r"(?:填写|写下|做出|作出|发表|评价)(?:任何|文字)?(?:评价|评论|内容)*"
    r"|(?:系统|平台|超时)?(?:自动|默认)+(?:给予|给出|为)?(?:五星|5星)?(?:好评|评价)|好评[!！。]?系统自动.{0,40}|暂无(?:评价|评论)(?:内容)?"
    r"|(?:该|此)(?:评论|评价|内容|微博|帖子|楼层|回复)(?:已|不存在|已经)?(?:被)?(?:作者|系统|管理员|楼主|用户)?(?:删除|屏蔽|不存在)"
    r"|抱歉[,，].{0,20}(?:已被|不存在|删除).{0,40}"
    r"|[\s,，。.!！;；~～])++"
)
_CONTROLS = re.compile(
    r"(?:举报|回复|赞\s*+[\[(（]\d++[\])）]?|点赞|收藏|转发|评论|分享|删除|展开|收起|更多|下一页|上一页|首页|尾页|登录|注册|返回|顶部|楼主|沙发|查看|全部|全文"
    r"|[\[(（]?\d++[\])）]?|[\s|·>»/,，.。:：])++"
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
# Labels in the line below a headline that names author and date.
_BYLINE = re.compile(
    r"作者|记者|来源|编辑|责编|发布(?:时间|于)?|发表于|文[/／｜|]|(?i:\bby\b|published|posted|source|updated)"
)
# A clause that says that a site has not what was asked for, and one that says what to do then.
_THING = "(?:结果|内容|商品|产品|数据|记录|信息|帖子|文章|文献|页面|网页|主题|笔记|条件|评价|评论|匹配项?)"
_NOTHING = re.compile(
    r"(?:[^我]{0,6}(?:抱歉|对不起|很遗憾|哎呀)\s*|(?:we['’]re )?sorry:?\s(?:but )?|oops:?\s)?(?:"
    rf"[^我]{{0,14}}(?:没有?能?|没能|未能?|无法|暂无|找不到|查无|搜不到)(?:搜索|检索|查询|[搜查找])?[到出]?(?:[^我]{{0,30}}{_THING})?[了哦呢啦]?"
    rf"|[^我]{{0,10}}{_THING}\S{{0,4}}(?:不存在|找不到|为空|已?被?删除|已下架|已失效)[^我]{{0,14}}|[^我\d]{{0,20}}(?<!\d)0\s?[个条篇件项].{{0,12}}"
    r"|(?:(?:there (?:are|were)|we (?:found|have)) )?(?:no|0) (?:\w+ )?"
    r"(?:results?|matches|hits|entries|products|items|posts|threads|pages|articles)\b.{0,60}"
    r"|(?:your (?:search|query)|we|that|the|this|it)\b.{0,40}"
    r"(?:match any|find any|(?:not|n['’]t) (?:find|be found|exist)).{0,60}"
    r"|nothing (?:was )?(?:found|matche[sd])(?: (?:for|your|here).{0,60})?"
    r"|(?:the|this|that)\b.{0,20}(?:page|product|item|article|thread|post)\b.{0,30}"
    r"(?:not found|deleted|removed|no longer .{0,20}))",
    re.IGNORECASE,
)
_ADVICE = re.compile(
    r"\s*(?:.{0,4}(?:抱歉|对不起|遗憾|哎呀)|请|您|可以?|建议|换|试|看看|去|返回|回到|或者?|减少|检查|修改|调整|如果|点击|正在|也可"
    r"|sorry|oops|try|please|check|perhaps|maybe|return|go |back|nothing here|come back|here are|use |you (?:can|may)"
    r"|make sure|©|copyright|.{0,30}(?:版权|ICP备|all rights))",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[，,。!！;；~～?？]++\s*+|(?<!\.)\.++(?:\s++|$)")
_SHORT_LINE, _MOST_NOTHING = 12, 200
_SPEAKER = re.compile(r"我(?![们国市省县区校院])|俺|咱|\b(?:I|my|me)\b")
# A line of a list: a headline with its day, or goods with their price.
_MONTH_NAME = "(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]{0,6}"
_ENTRY_DAY = (
    r"(?:(?:\d{4}[-/.年])?\d{1,2}[-/.月]\d{1,2}日?(?:\s\d{1,2}:\d\d)?"
    rf"|{_MONTH_NAME}\.?\s\d{{1,2}}(?:,?\s\d{{4}})?)"
)
_ENTRY = re.compile(
    rf"(?:{_ENTRY_DAY}[\s|:：·–-]+|[\[(（【]{_ENTRY_DAY}[\])）】]).{{4,80}}|.{{4,80}}[\s|:：·–(（\[-]+{_ENTRY_DAY}[\])）]?"
    r"|.{0,80}[¥￥$€£]\s?\d.{0,20}",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[。！!；;]|[a-z]{2}\.(?:\s|$)")
_LEAST_ENTRIES, _MOST_LINES = 3, 200
_LEAST_SPECS = 4
# A site's own text in place of a review is shorter, and a data sheet begins earlier.
_MOST_BOILERPLATE, _MOST_SHEET = 2000, 20_000
_MOST_TITLE = 400
"""Characters of a text that may be nothing but a title and a byline."""


class RejectReason(StrEnum):
    """Why a record is no review."""

    EMPTY = "empty"  # not one letter or digit
    SHORT = "short"  # a main text of some words
    TITLE = "title"  # the page's title again, its author and its day, and nothing else
    BOILERPLATE = "boilerplate"  # a site's own text in place of a review, or its buttons
    LIST = "list"  # the page lists other pages
    LOGIN = "login"  # a request to sign in
    GOODS = "goods"  # a shop's or maker's description: a data sheet without an opinion


def screen_reviews(
    read: PageRead, reviews: Sequence[Review], *, main_text: bool
) -> tuple[tuple[Review, ...], Mapping[str, int], tuple[tuple[str, Review], ...]]:
    """Separate reviews from records that are none.

    Args:
        read: the page, or the first page of a list.
        reviews: its records, of all pages of the list.
        main_text: whether they were read without record rules. A text with a title must be longer than a sign-in wall
            and no sheet of goods; replies may be short.

    Returns:
        The reviews; how many records are none, by reason (`RejectReason`); and these records, each with its reason.
    """
    judged = [
        (reject_reason(review, main_text=main_text and (bool(review.title) or len(reviews) == 1)), review)
        for review in reviews
    ]
    refused = tuple((reason.value, review) for reason, review in judged if reason)
    counts = Counter(reason for reason, _ in refused)
    if not reviews and read.no_review:
        counts[read.no_review] += 1
    return tuple(review for reason, review in judged if reason is None), dict(counts), refused


def reject_reason(review: Review, *, main_text: bool) -> RejectReason | None:
    """Return why a record is no review, or `None` if it may be one."""
    body = review.body
    if _WORD.search(body) is None:
        return RejectReason.EMPTY
    if len(body) <= _MOST_BOILERPLATE and (
        _NOT_WRITTEN.fullmatch(body.strip(" []【】()（）")) or _CONTROLS.fullmatch(body)
    ):
        return RejectReason.BOILERPLATE
    if not main_text:
        return None
    if len(body) < _LOGIN_CHARS and _LOGIN.search(body):
        return RejectReason.LOGIN
    if len(_WORD.findall(body[: 4 * _LEAST_TEXT])) < _LEAST_TEXT:
        return RejectReason.SHORT
    if _is_only_title(review):
        return RejectReason.TITLE
    sheet = len({*_SPEC.findall(body[:_MOST_SHEET]), *_SHOP.findall(body[:_MOST_SHEET])})
    return (
        RejectReason.GOODS if sheet >= _LEAST_SPECS and _OPINION.search(body[:_MOST_SHEET]) is None else None
    )


def is_empty_answer(above: Sequence[str], body: str) -> bool:
    """Return True if a site says, above a text or in it, that it has not what was asked for, and the text is advice.

    Args:
        above: the page's title and the lines above the text.
    """
    if len(body) > _MOST_NOTHING or _SPEAKER.search(body):
        return False
    lines = body.split("\n")
    clauses = [clause for line in (*above, *lines) for clause in _CLAUSE_END.split(line)]
    return any(_NOTHING.fullmatch(one.strip()) for one in clauses) and all(map(_is_advice, lines))


def _is_advice(line: str) -> bool:
    """Return True for a line of a site on a page without an answer, or one of a few words."""
    clauses = list(filter(None, _CLAUSE_END.split(line.strip())))
    if len(line) <= _SHORT_LINE:
        return True
    return all(_NOTHING.fullmatch(one.strip()) or _ADVICE.match(one) for one in clauses)


def is_entries(text: str) -> bool:
    """Return True for a text whose lines are headlines with their day, or goods with their price, and no sentences."""
    lines = text.split("\n")[:_MOST_LINES]
    sentences = sum(_SENTENCE.search(line) is not None for line in lines)
    entries = sum(
        _SENTENCE.search(line) is None and _ENTRY.fullmatch(line.strip()) is not None for line in lines
    )
    return entries >= max(_LEAST_ENTRIES, 2 * sentences) and _SPEAKER.search(text) is None


def _is_only_title(review: Review) -> bool:
    """Return True if the text has no words besides its title and the line that names author and date."""
    if len(review.body) > _MOST_TITLE:
        return False
    rest = review.body
    for known in filter(None, (review.title, review.date_text, review.author)):
        rest = rest.replace(known, " ")
    left = "".join(_WORD.findall(_BYLINE.sub(" ", rest)))
    return len(left) < _LEAST_TEXT or left in "".join(_WORD.findall(review.title))
