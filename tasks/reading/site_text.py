"""Text that a page puts around what its author wrote: buttons, counters, bylines, credits, further pages.

Each pattern has a place: at the ends of any text, above or below a main text, anywhere in it, at its end, or alone.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable

from tasks.reading.dates import DATE

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

_PLACE = (
    r"(?:(?:来自|发布于|IP\s?属地[:：]?)\s?[\u4e00-\u9fff]{2,6}"
    r"|北京|天津|上海|重庆|河北|山西|辽宁|吉林|黑龙江|江苏|浙江|安徽|福建|江西|山东|河南|湖北|湖南|广东|海南|四川|贵州|云南"
    r"|陕西|甘肃|青海|台湾|内蒙古|广西|西藏|宁夏|新疆|中国香港|中国澳门|中国台湾)"
)
# Posts without a text of their own: a place, a number of likes, or a number of replies with a day.
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
    r"|uploaded files:?|attachments?:?|advertisements?|广告|(?:正在)?播放|暂停|倍速|听(?:全文|新闻)|朗读"
    r"|listen to this (?:article|story)\W*(?:[\d:]+.{0,12})?|\d(?:\.\d+)?x|\d\d:\d\d\s?/\s?\d\d:\d\d"
    r"|(?:estimated )?(?:reading time:? )?\d+[\s-]?min(?:ute)?s?\.?(?: read)?"
    r"|(?:last |first )?(?:published|updated|posted)(?: on)?:? [A-Z\d][\w\s,:.]{5,30}"
    r"|(?:最后|最近)?(?:发布|发表|更新|编辑|編輯|修改)(?:时间|日期|于|於)\s*[:：]?[\s\d年月日:/.前昨今天小时分钟-]*"
    r"[\u4e00-\u9fff]{0,4}|[\d\s年月日/.-]{0,14}\d{1,2}:\d\d(?::\d\d)?\s?(?:发布|发表|更新|提问|回答)"
    r"|(?:last )?(?:edited|updated)(?: on)?:? [^.!?]{0,20}\d[^.!?]{0,16}|[^.!?]{3,24} · edited",
    re.IGNORECASE,
)
# Marks of the subjects of a post, behind its last sentence or several in a row: #空气炸锅 #fail. A topic between two
# marks (#空气炸锅#) is a part of a sentence.
_TAG = r"\s{0,4}+[#＃](?!\d+\b)[^\s#＃]{1,30}+(?!\s{0,4}[#＃](?:\s|$))"
_TAGS = re.compile(rf"(?:(?:(?<=[。！？.!?…~～)）”\"])|^){_TAG}|(?:{_TAG}){{2}})(?:{_TAG})*+\s*+$")
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
    r"|分享让更多人看到|like this:|(?:like )?loading\W*|we apologize, but this video has failed to load\W*"
    r"|(?:try refreshing your browser|tap here to see other videos).{0,40}|返回\S{1,10}(?:首页|列表)\W*"
    r"|\S{0,12} ?app download"
    r"|(?:follow|like|join|find) (?:us|\S+) on (?:twitter|facebook|instagram|x|google|youtube|telegram)\b.{0,80}"
    r"|(?:sign up|subscribe)\b.{0,100}|thank you for (?:reading|subscribing|your).{0,60}"
    r"|(?:email|save|post|print|share|tweet|copy link|facebook|twitter|whatsapp|linkedin)",
    re.IGNORECASE,
)
_FURTHER = re.compile(
    r"(?:[为為][你您]推[荐薦]|猜你喜[欢歡]|(?:相关|相關|推荐|推薦|延伸|热门|熱門|精彩|编辑|猜你|往期|重点){1,3}(?:推荐|推薦|阅读|閱讀|新闻|新聞|文章|资讯|内容|链接"
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
_GLUED = re.compile(r"[（(\[【]?(?:返回\S{1,8}首页|责任编辑[:：]\S{2,12})\s*[>»)）\]】]*$")
_CAPTION = re.compile(
    r"(?:图为|图[一二三四五六七八九十\d]{0,2}\s?[:：]|资料图|题图|配图|视频截图).*|.{0,80}(?:[\s）)。]\S{0,8}(?:摄|摄影|供图)|图源|资料图片)[)）。]?"
)
_PHOTO_CREDIT = re.compile(
    r"\b(?:photo(?:graph)?|image|picture|credit)s?(?: by|\s?[:/]).{2,60}$", re.IGNORECASE
)
_LONGEST_BEFORE_CREDIT = 120
_CONTROL_WORD = re.compile(
    r"播放|暂停|倍速|音量|静音|全屏|字号|字体|正常|[大中小](?=\W|$)|分享|收藏|打印|微信|微博|朋友圈|扫一扫|本页|朗读|收听|听全文|关闭|展开|收起|举报|复制链接"
    r"|登[录陆]|注册|账号|请先|已有|后?查看|更多|精彩|内容|作者|来源|记者|发布|时间"
    r"|\b(?:listen(?: to)?|this article|play(?:back)?|paused?|speed|volume|mute|unmute|share|save|print|full ?screen"
    r"|minutes?|min|text size|font|small|medium|large|increase|decrease|settings|audio|read aloud|sign in|log in|by"
    r"|published|posted|updated|on|x)\b",
    re.IGNORECASE,
)
_SHOP = re.compile(
    r"本店|全场|正品|[7七]天无理由|支持退换|发货|包邮|下单|限购|货到付款|以实物为准|色差|联系(?:我们的?)?客服|放心(?:购买|选购)|购物愉快|温馨提示"
    r"|欢迎(?:光临|选购|咨询)|敬请|偏远地区|优惠券|领券|如有(?:任何)?(?:问题|疑问)|^亲(?=\W)"
    r"|\borders?\b.{0,20}\bships?|free (?:returns|shipping|delivery)|within \d+ (?:hours|(?:working )?days)"
    r"|contact us|please note|shipping costs?|our customer service|colou?rs may (?:vary|differ)|not refunded"
    r"|full refund|in stock|购买须知|售后说明|退换|运费|定制商品|快递",
    re.IGNORECASE | re.MULTILINE,
)
_OWN_WORDS = re.compile(
    r"我(?!们)|俺|咱|[买用喝吃]了|失望|投诉|差评|不理|后悔|上当|不知道|是不是|没人|态度|[慢坏漏骗裂]|假货|不给|太|不错|推荐|好[用吃喝看]"
    r"|\b(?:I|my|me|mine|arrived|leak(?:s|ed|ing)?|broken?|cracked|disappoint\w+)\b|\bwe (?:bought|ordered|got)\b"
)
_SHOP_WORDS, _FEW_LETTERS, _LONGEST_NOTE = 2, 4, 300
_LONGEST_LINE, _LONGEST_HEADING, _LONGEST_NOTICE = 120, 80, 300
_MOST_LINES = 8
"""Lines at an end of a text that may be the site's."""
_LEAST_BEFORE, _LEAST_ARTICLE = 50, 400


def is_site_text(text: str) -> bool:
    """Return True if a post holds only what its site put there."""
    return _LEFT.fullmatch(text) is not None


def is_control(line: str) -> bool:
    """Return True for a button, a counter or a blank line."""
    line = line.strip()
    return not line or COUNTER.fullmatch(line) is not None or _CONTROL.fullmatch(line) is not None


def strip_controls(text: str) -> str:
    """Return a text without the buttons and counters at its ends, and the tags; a text of these alone (赞) stays."""
    lines = _trim(
        text.split("\n"), is_control, lambda line: is_control(line) or _TAGS.match(line) is not None
    )
    if lines and ("#" in lines[-1] or "＃" in lines[-1]):
        lines[-1] = _TAGS.sub("", lines[-1])
    return "\n".join(lines) or text


def strip_site_lines(text: str) -> str:
    """Return a main text without lines of its site; a text of such lines alone stays.

    At its ends these are bylines, credits of editors and sources, notices (版权, 声明) and invitations to follow;
    anywhere a button that stands there more than once (编辑 at every heading); below it what to read next, if no longer
    text follows, and references.
    """
    lines = text.split("\n")
    lines = lines[: _end(lines)]
    again = {line for line, count in Counter(lines).items() if count > 1 and is_control(line)}
    kept = [line for line in lines if line not in again]
    kept = _trim(kept, lambda line: not line.strip() or _is(_BYLINE, line), _is_below)
    if not kept:
        return text
    kept[-1] = _GLUED.sub("", kept[-1])
    return "\n".join(kept)


def says_nothing(text: str, known: Iterable[str]) -> bool:
    """Return True if a main text holds nothing but what is known, captions, buttons, or a shop's note.

    Args:
        known: the page's title and the author.
    """
    if len(text) > _LONGEST_NOTE:
        return False
    if _OWN_WORDS.search(text) is None and len(set(_SHOP.findall(text))) >= _SHOP_WORDS:
        return True
    lines = [line for line in text.split("\n") if not _is_caption(line)]
    rest = DATE.sub(" ", "\n".join(lines))
    for one in filter(None, known):
        rest = rest.replace(one, " ")
    return sum(map(str.isalpha, _CONTROL_WORD.sub(" ", rest))) <= _FEW_LETTERS


def _trim(lines: list[str], above: Callable[[str], bool], below: Callable[[str], bool]) -> list[str]:
    first, last = 0, len(lines)
    while first < min(last, _MOST_LINES) and above(lines[first]):
        first += 1
    while last > max(first, len(lines) - _MOST_LINES) and below(lines[last - 1]):
        last -= 1
    return lines[first:last]


def _end(lines: list[str]) -> int:
    """Return the line where further pages or references begin; the number of lines if neither does."""
    chars = 0
    long = max((place for place, line in enumerate(lines) if len(line) > _LONGEST_HEADING), default=-1)
    for place, line in enumerate(lines):
        if chars >= _LEAST_ARTICLE and _is(_REFERENCES, line):
            return place
        if chars >= _LEAST_BEFORE and place > long and _is(_FURTHER, line):
            return place
        chars += len(line)
    return len(lines)


def _is(pattern: re.Pattern[str], line: str) -> bool:
    return len(line) <= _LONGEST_LINE and pattern.fullmatch(line.strip()) is not None


def _is_caption(line: str) -> bool:
    if _is(_CAPTION, line):
        return True
    credit = _PHOTO_CREDIT.search(line.strip()) if len(line) <= _LONGEST_LINE else None
    return credit is not None and credit.start() <= _LONGEST_BEFORE_CREDIT


def _is_below(line: str) -> bool:
    """Return True for a credit, a notice, an invitation or a blank line."""
    is_notice = len(line) <= _LONGEST_NOTICE and _NOTICE.search(line.strip()) is not None
    return not line.strip() or is_notice or _is(_CREDIT, line) or _is(_FOLLOW, line)
