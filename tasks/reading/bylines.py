"""Names and days as pages show them: texts that name a person, texts that say a day, and the name and date in them."""

from __future__ import annotations

import re
from datetime import datetime

from tasks.reading.dates import DATE, read_date
from tasks.reading.outline import Outline
from tasks.reading.roles import roles
from tasks.reading.site_text import COUNTER

_PERSON_LINK = re.compile(
    r"(?:^|[/?&.])(?:[\w-]+[-_])?(?:users?|members?|profiles?|authors?|people|person|userinfo"
    r"|user_profile|memberlist|customer|account)(?:[/?=.&-]|$)"
    r"|(?:^|[/.])(?:u|space|i|home\.php|home/main|index\.php\?action=profile)(?:[/?=&-]|$)|/@\w|/~\w"
    r"|space-uid-\d|weibo\.com/(?:u/)?\d",
    re.IGNORECASE,
)
NOT_ITS_DAY = re.compile(
    r"\bjoin|regist|\bsince\b|注册|註冊|加入|入会|入站|来到|最后|最後|\blast|(?<![(（])edit|编辑|編輯|修改|更新|seen|active|活动|在线|在線",
    re.IGNORECASE,
)
"""Words in or around a date that say another day than a record's: joined, last edited."""
_NO_NAME = re.compile(
    r"^(?:[\W_]*+(?:\d{1,4}[\W_]*+)?|楼主|作者|沙发|板凳|地板|回复|引用|举报|只看\S*|发[表布]于?.*|.*发布|posted.*|author|op"
    r"|reply|by|says?:?|said:?|asked|answered|edited|commented|posted"
    r"|wrote:?|user|username|name"
    r"|(?:赞|顶|踩|回复|举报|收藏|转发|评论|支持|反对|有用|没用|关注|推荐|最新评论|热门)\S{0,2}[\s\[(（]*\d*.?"
    r"|登[录入]\S*|注[册冊]|log ?in|sign (?:in|up)|register|create an account|我的.*"
    r"|about(?: me| us)?|个人.*|.*中心|.*首页|home|.*投诉|名片|原创"
    r"|联系(?:作者|我们|客服).*|.*扫码.*|精华帖?|加精|置顶|热帖|精品|悬赏|公告|(?:已|未)(?:解决|采纳)|最佳答案"
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
_AROUND_NAME = re.compile(
    r"^[-–—・•\s]++|^(?:(?:posted |started |asked |answered |created )?by\s+|作者[:：]?\s*|楼主[:：]?\s*|来自[:：]?\s*"
    r"|用户[:：]?\s*|[(（]?@)"
    r"|(?<![\s:：,，·»)）])(?:\s++(?:says|said|wrote|发表于|回复|评论|楼主))?[\s:：,，·»)）]*+$",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[，。；！？]|[a-z]{2}[,;]\s[a-z]{1,20}\s[a-z]{1,20}\s[a-z]|[a-z]{3}[.!?]$")
_ID = re.compile(r"\d{8,}")
LONGEST_NAME = 40
LONGEST_BYLINE = 120
"""Characters of a text with a name or a date and what stands around it."""
_SHORT_DATE, _BESIDE_DAY = 40, 20
# Elements around a text whose names are its own; a whole post may be called by the rank of its author.
_OWN = 2
_LETTER_WORTH = 0.2  # it stands for a portrait

SURELY = 100
"""The score that `is_person` gives an element that can be nothing else; many that perhaps are one add up to less."""


def is_person(page: Outline, element: int) -> int:
    """How an element is called like a person's name, or links to a person's page: 0 not, 1 perhaps, SURELY."""
    attributes = page.attributes[element]
    if attributes.get("itemprop") in ("author", "creator") or attributes.get("rel") == "author":
        return SURELY
    if element in page.pictured:
        return SURELY
    if page.tags[element] == "a" and _PERSON_LINK.search(attributes.get("href", "")):
        return SURELY
    found = roles(*page.names[element])
    if "person" in found:
        return SURELY
    return int(attributes.get("itemprop") == "name" or "perhaps person" in found)


def date_of(page: Outline, number: int, now: datetime) -> str:
    """A date as the page writes it: in full, where the element around the text says so, else the text."""
    element = page.texts[number].owner
    for _ in range(2):
        attributes = page.attributes[element]
        for name in ("datetime", "content", "title", "data-time", "data-timestamp"):
            value = attributes.get(name, "")
            if value and read_date(value, now) is not None and (name == "datetime" or DATE.search(value)):
                return value
        element = max(0, page.parents[element])
    text = page.texts[number].text
    match = DATE.search(text)
    return " ".join(text[match.start() if match and len(text) > _SHORT_DATE else 0 :].split())[:60]


def person_strength(page: Outline, owner: int, record: int) -> float:
    """How much an element and the three around it, inside a record, are called a person; 0: not at all."""
    element, strength = owner, 0.0
    for step in range(4):
        attributes = page.attributes[element]
        person = is_person(page, element)
        if step < _OWN and (
            attributes.get("itemprop") == "jobTitle"
            or (page.tags[element] == "dd" and not person)
            or "of person" in roles(*page.names[element])
        ):
            return 0.0
        if person:
            link = page.tags[element] == "a" and _PERSON_LINK.search(attributes.get("href", ""))
            strong = attributes.get("itemprop") == "author" or attributes.get("rel") == "author"
            strength += (1.5 if link else 1.0) / (step + 1) + strong
        element = page.parents[element]
        if element < record:
            break
    return strength


def as_name(page: Outline, number: int) -> float:
    """How surely a text names a person, by what its elements are called and link to; 0: it does not."""
    text = page.texts[number]
    name = bare_name(text.text)
    if page.dates[number] or not may_be_name(name) or is_role(name):
        return 0.0
    return person_strength(page, text.owner, 0) * (_LETTER_WORTH if len(name) == 1 else 1.0)


def is_its_day(page: Outline, number: int) -> bool:
    """Whether a text is a date, and not one of something else (last reply, joined)."""
    said = "".join(page.texts[n].text for n in range(max(0, number - 1), number + 1))
    text, owner = page.texts[number].text, page.texts[number].owner
    said += "".join(page.attributes[one].get("title", "") for one in (owner, max(0, page.parents[owner])))
    beside = len(DATE.sub("", text))
    return (
        page.dates[number]
        and len(text) <= LONGEST_NAME
        and beside <= _BESIDE_DAY
        and not NOT_ITS_DAY.search(said)
    )


def in_sentence(text: str) -> bool:
    """Whether a date stands in a sentence: it tells of a day, and is not the day it was said."""
    around = DATE.sub("", text[:LONGEST_BYLINE])
    return len(around) > _BESIDE_DAY and _SENTENCE.search(around) is not None


def may_be_name(text: str) -> bool:
    """Whether a text could be a name: short, and no label or control that stands beside names."""
    return 0 < len(text) <= LONGEST_NAME and _NO_NAME.match(text) is None and not COUNTER.fullmatch(text)


def is_role(name: str) -> bool:
    """Whether a text is a role or rank of a forum (版主, New Member); somebody may be called so, too."""
    return _ROLE.fullmatch(name) is not None


def bare_name(text: str) -> str:
    """A text without what stands around names (by, 作者, a colon)."""
    text = text.strip()
    return _AROUND_NAME.sub("", text) if len(text) <= LONGEST_BYLINE else text


def name_of(page: Outline, number: int) -> str:
    """The name in a text, without what stands around names (by, 作者); empty where it is an id."""
    name = " ".join(bare_name(page.texts[number].text).split())
    return "" if _ID.fullmatch(name) else name
