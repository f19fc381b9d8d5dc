"""Labels of buttons, counters and captions that stand around a text: they are its page's, not its author's."""

from __future__ import annotations

import re

_COUNT = r"[\s(（\[]*\d[\d,.]*\s*[万千wk]?\+?[\s)）\]]*"
_COUNTED = (
    r"(?:赞|点赞|讚|顶|踩|评论|評論|留言|回复|回覆|跟帖|跟贴|浏览|瀏覽|阅读|閱讀|点击|點擊|查看|收藏|转发|轉發|分享|人气|喜欢|有用|推荐|反对|支持|关注"
    r"|likes?|views?|repl(?:y|ies)|comments?|shares?|reads?|votes?)(?:次数|数|數|量|人数)?"
)
COUNTER = re.compile(
    rf"(?:{_COUNTED}\s*[:：]?{_COUNT}(?:次|人|条|條)?|{_COUNT}(?:次|人|个|条|條|则|則)?{_COUNTED}|[+＋]\d{{1,4}})",
    re.IGNORECASE,
)
"""A number and what it counts: 评论(3), 浏览 120, 12 likes, +1."""

_PLACE = r"(?:来自|发布于|IP\s?属地[:：]?)\s?[\u4e00-\u9fff]{2,6}"
# What a site leaves of a post without a text of its own: where its author is, who likes it, how many replied when.
_LEFT = re.compile(
    rf"{_PLACE}|[\s,]*+(?:and\s++)?(?:\d++\s++(?:other\s++)?(?:person|people|others?)\s++)?likes? this\W*"
    rf"|(?:{COUNTER.pattern})\W+\d[\d\s年月日.:/+-]*",
    re.IGNORECASE,
)

_CONTROL = re.compile(
    r"图集|播报|編輯|编辑|分享|收藏|举报|复制链接|打印|字号\S{0,8}|大\s*中\s*小|原文链接"
    r"|分享(?:至|到)\s*[:：]?|微信扫码\S{0,4}|扫一扫\S{0,10}|举报/反馈|转播到\S{2,6}"
    r"|展开(?:全文|更多|回复)?|收起\S{0,4}|点击(?:展开|查看)\S{0,8}"
    r"|查看(?:原文|原帖|全文|更多|引用|原回复|完整\S{0,4})|显示(?:全部|更多)|阅读(?:全文|原文)|引用|回复|只看该作者|倒序浏览"
    r"|(?:view|show|see|jump to) (?:(?:the )?(?:original|full|more|quoted?|parent)\s?)+"
    r"(?:reply|post|comment|message|text)?s?"
    r"|click to (?:expand|collapse|show|view)\W*|expand|collapse|read more|quote|reply|report|share|permalink"
    r"|(?:join(?:ed|ed on| date)|member since|registered|注册(?:时间|日期|于)?|加入(?:时间|日期|于))"
    r"(?:\s*[:：]|\s*(?=\w*\s?\d)).{0,20}"
    r"|(?:posts?|messages|threads|reputation|karma|points|积分|帖子|主题|精华|威望|金币|经验|贡献|粉丝)\s*[:：]\s*[\d,.]+"
    rf"|{_PLACE}|…?\s*\((?:more|continue reading)\)"
    r"|(?:sent|posted) from my [^\n.]{1,60}|sent (?:via|using) (?:the )?[^\n.]{1,40}(?:app|tapatalk)"
    r"|[（(]?(?:来自|发自)(?:我的|官方)?[^\n，。！？；]{0,20}(?:客户端|手机版|app)[）)]?"
    r"|uploaded files:?|attachments?:?"
    r"|(?:发布|发表|更新)(?:时间|日期|于)\s*[:：]?[\s\d年月日:/.-]*|[\d\s年月日/.-]{0,14}\d{1,2}:\d\d(?::\d\d)?\s?(?:发布|发表|更新|提问|回答)",
    re.IGNORECASE,
)
_MOST = 6


def without_controls(text: str) -> str:
    """A text without the lines at its beginning and end that are a control, a counter or a caption's number alone.

    A text that is nothing else stays as it is: somebody may have said 赞.
    """
    lines = text.split("\n")
    first, last = 0, len(lines)
    while first < last and first < _MOST and is_control(lines[first]):
        first += 1
    while last > first and len(lines) - last < _MOST and is_control(lines[last - 1]):
        last -= 1
    return "\n".join(lines[first:last]) if first < last else text


def is_site_text(text: str) -> bool:
    """Return True if a post holds only what its site put there."""
    return _LEFT.fullmatch(text) is not None


def is_control(line: str) -> bool:
    """Whether a line is a button, a counter or blank."""
    line = line.strip()
    return not line or COUNTER.fullmatch(line) is not None or _CONTROL.fullmatch(line) is not None
