"""Lines of a main text that are its site's: bylines, notices, captions, and what to read next."""

from __future__ import annotations

import re
from collections import Counter

from tasks.reading.controls import is_control

_MOST_LINES = 8
_LINE_CHARS, _NOTICE_CHARS, _CAPTION_CHARS = 80, 300, 120
# A day and its clock or what publishes, alone on a line: no sentence.
_BYLINE = re.compile(
    r"(?:19|20)\d\d\s?[-/.年]\s?\d{1,2}\s?[-/.月]\s?\d{1,2}日?\s*(?:\d{1,2}[:：]\d\d(?:[:：]\d\d)?[^。！？，,!?]{0,50}"
    r"|(?:来源|作者|编辑|责编|责任编辑|字号|浏览|阅读)[^。！？，,!?]{0,50})?"
    r"|(?:\([^)]{2,30}\)\s*)?\d{1,2}:\d\d,? [A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}|\d\d\.\d\d\.\d{4}, \d\d[.:]\d\d Uhr"
)
_CREDIT = re.compile(
    r"\(?(?:web )?editors?\s*:[^.!?]{2,60}|"
    r"[（(\[【]?(?:本文)?(?:来源于?|稿源|责任编辑|责编|编\s?辑|校对|审核|排版|监制)\s*[:：/|︱｜丨]\s*[^。！？!?]{1,50}"
    r"|编辑\s[\u4e00-\u9fff]{2,4}(?:\s[^。！？，,!?]{0,30})?"
)
_NOTICE = re.compile(
    r"仅提供信息存储|不代表\S{0,20}(?:观点|立场)|版权(?:归|属于)\S{0,12}所有|^\S{0,4}声明[:：]|转载\S{0,2}请(?:注明|联系|务必)|请勿转载|(?:不得|禁止)(?:以任何方式)?转载"
    r"|^转载必须注明|侵权\S{0,6}联系|不构成\S{0,4}投资建议|请以\S{0,6}指定媒体|所有文章均为"
    r"|all rights reserved|reflect the views of the(?:ir)? authors?|for more information,? please visit",
    re.IGNORECASE,
)
_FOLLOW = re.compile(
    r"(?:相关|更多)\S{0,40}(?:请)?(?:关注|下载|点击|访问)\s*[:：]?.{0,30}|(?:欢迎|请|长按|扫码)\S{0,6}(?:关注|下载|订阅)\S{0,20}"
    r"|返回\S{1,10}(?:首页|列表)\W*|\S{0,12} ?app download"
    r"|(?:follow|like|join|find) (?:us|\S+) on (?:twitter|facebook|instagram|x|google|youtube|telegram)\b.{0,80}"
    r"|(?:sign up|subscribe)\b.{0,100}|thank you for (?:reading|subscribing|your).{0,60}"
    r"|(?:email|save|post|print|share|tweet|copy link|facebook|twitter|whatsapp|linkedin)",
    re.IGNORECASE,
)
_FURTHER = re.compile(
    r"(?:[为為][你您]推[荐薦]|猜你喜[欢歡]|(?:相关|相關|推荐|推薦|延伸|热门|熱門|精彩|编辑|猜你|往期)(?:推荐|推薦|阅读|閱讀|新闻|新聞|文章|资讯|内容|链接"
    r"|视频|问答|图文|回顾)|大家都?在看"
    r"|更多精彩\S{0,6}|\S{2,6}更多|(?:最新|热门|网友|精彩)(?:评论|跟帖|留言)"
    r"|related(?: (?:articles?|stories|posts?|news|topics|content|links|reading))?|read (?:more|next"
    r"|also)|recommended(?: for you| reading| stories)?"
    r"|you (?:may|might) also (?:like|enjoy|be interested in)|most (?:read|popular|viewed)"
    r"|more (?:stories|news|from\b.{0,40})|trending(?: now)?)\s*[:：>»]*",
    re.IGNORECASE,
)
_REFERENCES = re.compile(
    r"(?:参考(?:文献|资料|来源)|參考(?:文獻|資料|來源)|注释与参考|外部链接|外部連結|references|external links)"
    r"\s*(?:\[编辑\]|\[編輯\]|\[edit\])?",
    re.IGNORECASE,
)
_CAPTION = re.compile(
    r"(?:图注|圖註|图说|圖說|图片说明|[▲△◎]\s*图?|photo(?:graph)?(?: by| credit)?\s*:|image(?: credit)?\s*:"
    r"|illustration\s*:|credits?\s*:|фото\s*:|foto\s*:).{0,110}"
    r"|.{0,70}(?<![拍])(?:视频截图|资料图片?|網頁截圖|网页截图|微博截图|(?:图|文)源[:：]\S{1,20}|图片来源[:：]?.{1,20}|视觉中国\s?(?:资料"
    r"|图)?|[^，。！？]{2,14}\s?供图"
    r"|(?<=[\s/／（(][\u4e00-\u9fff]{2})\s?摄|(?<=[\s/／（(][\u4e00-\u9fff]{3})\s?摄|\[photo/\S+"
    r"|\(?photo(?: by|:)\s?.{2,40}"
    r"|/(?:AFP|AP|Reuters|Getty Images|Xinhua))[)）\]】。]?",
    re.IGNORECASE,
)
_PICTURE = re.compile(
    r"[图圖摄△▲◎]|photo|image|illustration|credit|фото|foto"
    r"|AFP|AP|Reuters|Getty|Xinhua|视频截",
    re.IGNORECASE,
)
_GLUED = re.compile(r"[（(\[【]?(?:返回\S{1,8}首页|责任编辑[:：]\S{2,12})\s*[>»)）\]】]*$")
_LEAST_BEFORE, _LEAST_ARTICLE = 50, 400


def without_site_lines(text: str) -> str:
    """A main text without lines of its site.

    At its ends bylines, credits of editors and sources, notices (版权, 声明) and invitations to follow; anywhere
    captions of pictures that say so, and a button that stands in it more than once (编辑 beside every heading); below
    it what to read next, where no longer text follows, and references. A text that is nothing else stays.
    """
    lines = text.split("\n")
    lines = lines[: _end(lines)]
    again = {line for line, count in Counter(lines).items() if count > 1 and is_control(line)}
    kept = [line for line in lines if line not in again and not _is_caption(line)]
    first, last = 0, len(kept)
    while first < min(last, _MOST_LINES) and (_matches(_BYLINE, kept[first]) or not kept[first].strip()):
        first += 1
    while last > max(first, len(kept) - _MOST_LINES) and _is_behind(kept[last - 1]):
        last -= 1
    kept = kept[first:last]
    if not kept:
        return text
    kept[-1] = _GLUED.sub("", kept[-1])
    return "\n".join(kept)


def _end(lines: list[str]) -> int:
    """The line where what to read next begins, or references; the number of lines where neither does."""
    said = 0
    long = max((place for place, line in enumerate(lines) if len(line) > _LINE_CHARS), default=-1)
    for place, line in enumerate(lines):
        if said >= _LEAST_ARTICLE and len(line) <= _LINE_CHARS and _REFERENCES.fullmatch(line.strip()):
            return place
        if said >= _LEAST_BEFORE and place > long and _FURTHER.fullmatch(line.strip()):
            return place
        said += len(line)
    return len(lines)


def _matches(pattern: re.Pattern[str], line: str) -> bool:
    return len(line) <= _CAPTION_CHARS and pattern.fullmatch(line.strip()) is not None


def _is_behind(line: str) -> bool:
    """Whether a last line is no text: a credit, a notice, an invitation."""
    line = line.strip()
    return (
        not line
        or _matches(_CREDIT, line)
        or (len(line) <= _LINE_CHARS + 40 and _FOLLOW.fullmatch(line) is not None)
        or (len(line) <= _NOTICE_CHARS and _NOTICE.search(line) is not None)
    )


def _is_caption(line: str) -> bool:
    short = len(line) <= _CAPTION_CHARS and _PICTURE.search(line) is not None
    return short and _CAPTION.fullmatch(line.strip()) is not None
