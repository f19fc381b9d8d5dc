"""Names of people in texts: whether a text can be one, and the name without what stands around it.

Labels (作者, by), ranks, controls, ids and addresses are no names, nor are dates and clocks beside one. A name that a
site gives (用户2046) is one.
"""

from __future__ import annotations

import re

from tasks.reading.dates import DATE
from tasks.reading.days import LONGEST_BYLINE
from tasks.reading.markup import collapse
from tasks.reading.site_text import COUNTER

_NO_NAME = re.compile(
    r"^(?:[\W_]*+(?:\d{1,4}[\W_]*+)?|楼主|作者|沙发|板凳|地板|回复|引用|举报|只看\S*|发[表布]于?.*|.*发布|posted.*|author|op"
    r"|reply|by|says?:?|said:?|asked|answered|edited|commented|posted"
    r"|wrote:?|user|username|name"
    r"|(?:赞|顶|踩|回复|举报|收藏|转发|评论|支持|反对|有用|没用|关注|推荐|最新评论|热门)\S{0,2}[\s\[(（]*\d*.?"
    r"|登[录入]\S*|注[册冊]|log ?in|sign (?:in|up)|register|create an account|我的.*"
    r"|about(?: me| us)?|个人.*|.*中心|.*首页|home|.*投诉|名片|原创"
    r"|阅读|浏览|(?:written|article|words|story|reviewed) by|联系(?:作者|我们|客服).*|.*扫码.*"
    r"|.*(?:客户端|网页版|手机版|专业版)|精华帖?|加精|置顶|热帖|精品|悬赏|公告|(?:已|未)(?:解决|采纳)|最佳答案"
    r"|pinned|sticky|solved|featured|closed|locked|best answer"
    r"|level.*|lv\.?\s*\d+|#\d+|(?:post|reply|comment)\s*+#?\s*+\d.*"
    r"|share|分享|report|quote|like|edit|link|permalink|(?:read |see |show )?(?:more|less)|更多|查看\S*|全部\S*"
    r"|\d+\s?(?:楼|人|条|个|赞).*|.*(?:回复|关注|粉丝|点赞)|\d{1,2}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\.?)?|\d{1,2}[時时点]\d{1,2}分?|(?:on|off)line|在线|离线"
    r"|最后由|最后(?:编辑|回复).*|.*[?？])$",
    re.IGNORECASE,
)
_ROLE = re.compile(
    r"管理员|版主|会员|贵宾|新手|等级|注册|论坛元老|(?:(?:new|eminent|active|senior|junior|full|trusted|noble|honorable|famed"
    r"|reputable|estimable)\s+)?members?"
    r"|guest|admin|administrator|moderator|participant|keymaster|staff|owner|topic author"
    r"|topic starter|thread starter|original poster|verified|newbie|regular",
    re.IGNORECASE,
)
_LABEL = (
    r"(?:(?:posted |started |asked |answered |created |written |reviewed )?by:?\s+"
    r"|(?:作者|楼主|用户名?|投诉人|网友|昵称|发[布帖表]人|发布者|评论人|来信人)\s*[:：]\s*)"
)
_LABELLED_NAME = re.compile(_LABEL, re.IGNORECASE)
_AROUND_NAME = re.compile(
    rf"^[-–—・•\s]++|^(?:{_LABEL}|作者\s*|楼主\s*|来自[:：]?\s*|用户\s+(?=\D)|[(（]?@)"
    r"|(?<![\s:：,，·»)）])(?:\s++(?:says|said|wrote|发表于|回复|评论|楼主))?[\s:：,，·»)）]*+$",
    re.IGNORECASE,
)
LONGEST_NAME = 40
"""Characters of a name."""
# Names that a site gives to those who chose none: 用户2046, 匿名用户88, Guest 71, user_9931. No number of a date.
_GIVEN = re.compile(
    r"(?:[\u4e00-\u9fff]{0,4}(?:用户|会员|网友|游客|买家|顾客|访客|读者|车友|吧友)"
    r"|(?:anonymous )?(?:user|guest|member|visitor|customer|shopper|buyer|reader)\s?)"
    r"[_#-]?[a-z]{0,4}[\d*][a-z\d*_]*+(?![年月.:：/-])",
    re.IGNORECASE,
)
_LONGEST, _MOST_WORDS = 60, 6

# Every date and clock has one of these; most names have none.
_SIGN_OF_TIME = re.compile(r"\d|day\b|ago\b|[年月日天周週拜期刚前]")
# What remains of times where `DATE` has been replaced by a stroke, and the words before a time.
_DAY_NAME = (
    r"(?:(?<![^\W\d_])(?:mon|tues|wednes|thurs|fri|satur|sun)day(?![a-z])"
    r"|(?<![^\W\d_])(?:mon|tues?|wed|thu(?:rs)?|fri|sat|sun)\b(?=[.,]?\s?[|\d])"
    r"|(?:星期|[周週]|[禮礼]拜)[一二三四五六日天](?![\u4e00-\u9fff]))"
)
_PART = "(?:上午|下午|晚上|早上|凌晨|中午|今[天日]|昨[天日]|前天)"
_TIMES = re.compile(
    rf"{_DAY_NAME},?|刚刚|{_PART}\s?\d{{1,2}}[点时]|\d+\s?min(?:ute)?s?\sread"
    rf"|{_PART}?\s?(?<!\d)\d{{1,2}}[:：]\d\d(?:[:：]\d\d)?(?:\s?[ap]\.?m\b\.?)?(?-i:\s[A-Z]{{2,4}}\b)?,?"
    r"|\d+\s?(?:分钟|小时|天|周|个?月|年)前|\d+\s(?:minute|hour|day|week|month|year)s?\sago",
    re.IGNORECASE,
)
_TIME_LABEL = re.compile(
    r"(?:(?:first |last |originally )?(?:published|posted|updated|modified|edited|created)(?: (?:on|at))?|date"
    r"|(?:发[布表]|更新|编辑|修改|刊发|创建)(?:时间|日期|于|在)?|时间|日期)(?=[\s:：]*\|)",
    re.IGNORECASE,
)
# Months and weekdays of an element right behind a name: Dana ReedJanuary 2.
_GLUED = re.compile(
    r"(?<=[a-z])(?=(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,7}\.?\s\d"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6}\b)"
)

# Words before a name, and marks behind it.
_BEFORE = re.compile(
    r"^.{0,40}?\b(?:by|von|par|por|autore?(?:in|en)?|authors?|auteurs?|text|verfasst von|beitrag von)\b\s*:?\s+(?=\S)"
    r"|^(?:原创|beitragvon |von |作\s*者|撰\s*文|文|来\s*源|稿源|记\s*者|采\s*写|执\s*笔)\s*[:：/|｜︱丨]?\s*"
    r"|^(?:(?:本[报刊网台社]|\S{2,6}[报网社])(?:见习|实习|特约)?记\s*者)\s*[:：/|｜︱丨]?\s*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"[|•·»/\n(（\[【©@]|\s[-–—]\s|\s(?:am|on|vom|le|at|in|für|for)\b"
    r"|\s(?:und interview|illustration|kategorien|symbolbild)\b"
    r"|[\s,](?:mon?|die?|tue|mit?|wed|don?|thu|fri?|sat?|sam|son?|sun)[a-z]{0,8}[.,]?\s\d"
    r"|\s\d|\d{1,2}[.:/-]\d|(?<![a-z\d*_-])\d{4}|责任编辑|责编|编辑|发布时间|发表(?:时间|于)|发布于|(?<![\s\u200b])[\s\u200b]++(?:(?:企鹅|头条|百家|搜狐|网易|大鱼)号|关注)(?:$|\s)|\u200b",
    re.IGNORECASE,
)
_NOBODY = re.compile(
    r"(?:\w{0,12}admin|(?:企鹅|头条|百家|搜狐|网易|大鱼)号|"
    r"administrator|(?:about )?the author|staff|user|publisher|editor|root|webmaster|super user|anonymous|an[oó]nimo"
    r"|unknown|autor(?:in)?|author|artikel|beitrag\w*|pressemitteilung|news|datum|redacción|gast"
    r"|guest|name|e-?mail|posted|january|february|march|april|may|june|july|august|september|october|november|december|text|source"
    r"|(?:本文|原文|文章)(?:链接|地址|网址)|未知|佚名|匿名|用户|会员|无|不详|网络|互联网|本站|原创|本站原创|本网|本报|本刊|本台|网友|转载|作者|来源|记者|时间|反馈|日期|\S{0,4}下载\S{0,4}|客户端|.*[!！?？…。]|最后由.*"
    r"|(?:选稿|選稿|编辑|編輯|责编|責編|校对|审核)\s*[:：].*)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?:|\S@\S|^\S+\.[a-z]{2,6}$", re.IGNORECASE)
_DEGREE = re.compile(r"[A-Z]{2}$|[A-Z]{2,4}, ")  # or initials

_SPACED_NAME = re.compile(r"(?<![\u4e00-\u9fff])([\u4e00-\u9fff])\s([\u4e00-\u9fff])(?![\u4e00-\u9fff])")


def may_be_name(text: str) -> bool:
    """Return True if a text could be a name: short, and neither a label nor a control."""
    return 0 < len(text) <= LONGEST_NAME and _NO_NAME.match(text) is None and not COUNTER.fullmatch(text)


def drop_times(text: str) -> str:
    """Return a text with a stroke in place of each date, clock, weekday and word before one (Posted on, 发布于)."""
    if _SIGN_OF_TIME.search(text) is None:
        return text
    return _TIME_LABEL.sub("|", _TIMES.sub("|", DATE.sub("|", _GLUED.sub(" ", text))))


def is_role(name: str) -> bool:
    """Return True for a role or rank of a forum (版主, New Member), which may also be a name."""
    return _ROLE.fullmatch(name) is not None


def has_label(text: str) -> bool:
    """Return True if a text begins with a label of a person's name (by, 投诉人：)."""
    return _LABELLED_NAME.match(text.strip()) is not None


def bare_name(text: str) -> str:
    """Return a text without the words around a name (by, 作者, a colon)."""
    text = text.strip()
    return _AROUND_NAME.sub("", text) if len(text) <= LONGEST_BYLINE else text


def person(text: str) -> str:
    """Return the name in a text that holds little else, or an empty text."""
    text = collapse(text)
    if len(text) > 2 * _LONGEST or _ADDRESS.search(text):
        return ""
    timeless = drop_times(text).strip("| ,.:：·•-–—")
    for one in (text, timeless):
        if given := _GIVEN.match(bare_name(_BEFORE.sub("", one))):
            return given[0]
    name = bare_name(_BEHIND.split(_BEFORE.sub("", timeless), maxsplit=1)[0])
    first, *others = re.split(r"[,，;；]\s*", name)
    first = _SPACED_NAME.sub(r"\1\2", first)
    name = ", ".join([first, *(one for one in others if " " in one)]).strip(" ,.:：-")
    return name if is_name(name) else ""


def is_name(name: str) -> bool:
    """Return True if a text can be an author's name: short, and no address, id, label or role."""
    return (
        1 < len(name) <= _LONGEST
        and len(name.split()) <= _MOST_WORDS
        and may_be_name(name[:40])
        and not is_role(name)
        and not _NOBODY.fullmatch(name)
        and not _ADDRESS.search(name)
        and not _DEGREE.match(name)
    )
