"""Distinguish author names that identify an account of a site from names that many people share.

Shared names identify nobody: none at all, one that the site masks (j***n, 张**), one that it gives
to whoever has not chosen any (匿名, 用户123, tb8812345, Amazon Customer), or one that is only a title (李女士).
"""

from __future__ import annotations

import re
import unicodedata

_MASK = re.compile(
    r"[*∗⁎✱×●○■□▇█※\ufffd]|\.\.|··|\?\?"  # j***n, 张×, 1●●8, a...n
    r"|(?<=[\d\u4e00-\u9fff])xx|某"  # 138xxxx1234, 张xx, 王某某
)
# Of a name that identifies somebody (`tasks.worker.pseudonyms`).
_PSEUDONYM = re.compile(r"author-[a-z2-7]{12}")
_ANYWHERE = re.compile(r"匿名|anonym|an[oó]nim|佚名|无名氏|注销|deleted")
# A word for any user; before it the name of a site, behind it a number that the site gave: 京东用户_5f3a, guest 12.
_USER_HAN = (
    r"(?:用户|用戶|网友|網友|游客|遊客|访客|訪客|过客|路人[甲乙丙]?|会员|會員|买家|買家|顾客|顧客|客户|客戶|消费者|消費者|投诉人|吧友|书友|车友"
    r"|楼主|作者|发布者|小红薯)"
)
_USER = r"(?:users?|guest|visitor|member|customer|buyer|client|reviewer|someone|somebody|momo)"
_NUMBER = r"(?:[a-z]{0,4}\d[0-9a-z]*)?"
_DEFAULT = re.compile(
    rf"[\u4e00-\u9fff]{{0,6}} ?{_USER_HAN} ?[0-9a-z]*"
    rf"|(?:[a-z]{{1,12}} ){{0,2}}{_USER} ?{_NUMBER}"
    r"|(?:jd|tb|mt|dpuser|bili|wx|wxid|qq|id|uid|ctrip|xhs|suning|sn|pdd|vip) ?\d[0-9a-f]{3,}"
    r"|(?:jd|wxid) ?[0-9a-z]{8,}"
    r"|admin|administrator|管理员|小编|编辑|客服|本站|本网|网站|来源|未知|不详|没有|昵称|未命名|默认"
    r"|null|none|nil|undefined|unknown|na|n a|nan|name|nickname|nobody|noname"
)
_TITLE = re.compile(r"[\u4e00-\u9fff]{0,2}(?:先生|女士|小姐|太太|同学|师傅|老师|阿姨|大姐|大哥)")


def identity(site: str, author: str) -> str | None:
    """Return what identifies an author among those of all sites, or `None` if the name identifies nobody.

    Blanks around and between the words of a name, and the width of its characters, make no difference. The same name on
    another site is another author.
    """
    name = " ".join(unicodedata.normalize("NFKC", author).split())
    if is_nobody(name):
        return None
    return f"{site}\0{name}"


def is_nobody(author: str) -> bool:
    """Return True if many people may have this name."""
    name = unicodedata.normalize("NFKC", author).casefold()
    if _PSEUDONYM.fullmatch(name):
        return False
    words = "".join(one if one.isalnum() else " " for one in name).split()
    letters = "".join(words)
    return (
        len(letters) < 2
        or _MASK.search(name) is not None
        or _ANYWHERE.search(letters) is not None
        or _DEFAULT.fullmatch(" ".join(words)) is not None
        or _TITLE.fullmatch(letters) is not None
    )
