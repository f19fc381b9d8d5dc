"""Authors of pages of one text: elements called an author's, lines before and after the text, its first and last words.

A person comes before who published the text (来源), and both before the site itself. Editors (责编) are no authors, nor
are ids, addresses and what stands beside names (关注, Share).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.bylines import bare_name, is_role, may_be_name
from tasks.reading.dates import DATE
from tasks.reading.markup import collapsed, text_of

_CALLED = ("author", "byline", "autor", "auteur", "verfasser", "writer", "redakteur", "vcard", "source")
_MARKED = '[rel~="author"], [itemprop~="author"], [itemprop~="creator"]'
_ELEMENTS = ", ".join(
    [_MARKED, *(f'[class*="{name}" i]' for name in _CALLED), *(f'[id*="{name}" i]' for name in _CALLED)]
    + [f'a[href*="/{name}/" i]' for name in ("author", "authors", "autor", "autoren", "auteur", "redakteur")]
)
_CALLED_PERSON = re.compile(
    r"(?:^|[-_\s])(?:(?:post|entry|article|news|content|item|meta|the|blog)[-_]*)?"
    r"(?:authors?|by-?line|autor(?:en|in)?|auteurs?|verfasser|writers?|redakteur|vcard)"
    r"(?:[-_]*(?:names?|links?|title|label|text|info|meta|url|vcard|fn))?(?:$|[-_\s])",
    re.IGNORECASE,
)
_CALLED_SOURCE = re.compile(
    r"(?:^|[-_\s])(?:ne_article|art|article|news|post|info)?[-_]?source(?:$|[-_\s])", re.I
)
_ELSEWHERE = re.compile(
    r"(?<!no-)(?<!has-)(?<!with-)(?<!right-)(?<!left-)(?<![a-z])(?:comments?(?!-?(?:s-)?(?:open"
    r"|closed|link|count|meta))|respond|repl(?:y|ies)|side-?bar"
    r"|relat(?:ed|ion)|recommend|teaser|pop-?up|modal|dialog|envelope|red-?packet|most-?read|navi\b|nav\b|navigation|menu)",
    re.IGNORECASE,
)
_OF_TEXT = re.compile(r"post|entry|article|meta|content", re.IGNORECASE)
_CRUMBS = ", ".join(
    f'[{where}*="{name}" i]'
    for where in ("class", "id")
    for name in ("crumb", "curpos", "cur-pos", "weizhi", "current-location")
)
_MOST_CRUMBS = 10
_MOST_ELEMENTS, _MOST_UP, _FEW = 60, 8, 3
_LONGEST, _MOST_WORDS = 60, 6
_SOURCE_RANK = 3

# Words before a name, and marks where it ends.
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
    r"|\s\d|\d{1,2}[.:/-]\d|\d{4}|责任编辑|责编|编辑|发布时间|发表(?:时间|于)|发布于|(?<![\s\u200b])[\s\u200b]++(?:(?:企鹅|头条|百家|搜狐|网易|大鱼)号|关注)(?:$|\s)|\u200b",
    re.IGNORECASE,
)
_NOBODY = re.compile(
    r"(?:\w{0,12}admin|administrator|staff|user|publisher|editor|root|webmaster|super user|anonymous|an[oó]nimo"
    r"|unknown|autor(?:in)?|author|artikel|beitrag\w*|pressemitteilung|news|datum|redacción|gast"
    r"|guest|name|e-?mail|posted|text|source"
    r"|未知|佚名|匿名|无|不详|网络|互联网|本站|原创|本站原创|本网|本报|本刊|本台|网友|转载|作者|来源|记者|时间|反馈|日期|\S{0,4}下载\S{0,4}|客户端|.*[!！?？…。]|最后由.*"
    r"|(?:选稿|選稿|编辑|編輯|责编|責編|校对|审核)\s*[:：].*)",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?:|\S@\S|^\S+\.[a-z]{2,6}$", re.IGNORECASE)
_ALL_NUMBERS = re.compile(r"[\d\W_]+")

_SPACED_NAME = re.compile(r"(?<![\u4e00-\u9fff])([\u4e00-\u9fff])\s([\u4e00-\u9fff])(?![\u4e00-\u9fff])")
_HAN_NAME = r"[\u4e00-\u9fff·]{2,4}"
# Words behind a name: what else somebody did, or how a text begins.
_NEXT_NAME = r"(?!报道|通讯员|摄影|摄像|整理|发自|编辑|责编|[近日昨今][日天前来年]|记者|本报|最近|近期|目前)"
_NEXT_NAME += rf"{_HAN_NAME}(?![\u4e00-\u9fff])"
_HAN_NAMES = rf"{_HAN_NAME}(?:(?:[、,，&]|[^\S\n]|和)+{_NEXT_NAME}){{0,4}}"
_VALUE = (
    r"[^\s:：,，;；。()（）|/<>\[\]【】]{2,20}?"
    r"(?=$|[\s:：,，;；。()（）|/<>\[\]【】]|记者|作者|编辑|责任|责编|发布|时间|日期|浏览|阅读|点击|字号)"
)
_LABELLED = re.compile(
    rf"(?:记\s*者(?=\s*[:：])|(?<=[网报社刊])作者(?=[:：])|(?<![\u4e00-\u9fff])(?:作\s*者|撰\s*文|采\s*写|执\s*笔|投诉人|楼主"
    rf"|发布者|发布人|文(?:/图)?))\s*[:：/|｜︱丨]\s*"
    rf"(?:\S{{0,10}}(?:记者|作者)\s*)?({_HAN_NAMES}(?=\s|$|[，,;；()（）|/\]】])|{_VALUE})"
)
_SIGNED_LINE = re.compile(
    rf"(?<![\u4e00-\u9fff])作者(?!简介|介绍|声明|观点|授权|认为|其他|最新|单位|原创)({_HAN_NAME})(?=$|[\s|｜])|(?:^"
    rf"|\n)(?:《[^》\n]{{1,10}}》)?(?:作\s?者|撰文|文)\s+({_HAN_NAME}(?:[\s、]{_HAN_NAME}){{0,4}})(?=\n|$)"
)
_UNLABELLED_TITLE = re.compile(rf"(?:^|\n)作者\n({_VALUE})(?:\n|$)")
_REPORTER = re.compile(
    rf"(?:[（(]\S{{0,6}}|^\S{{0,8}}|\n\S{{0,8}}|\s)记\s*者[:：\s]*({_HAN_NAMES})(?=[)）\s]|$|报道|通讯员|摄)"
)
_SOURCE = re.compile(rf"(?<!图片)(?<!数据)(?<!资料)(?:来\s*源于?|出处|稿源)\s*[:：|]\s*({_VALUE})")
_EDITOR = re.compile(
    r"(?:责任编辑|责编|编\s*辑|校对)\s{0,3}[:：|/]?\s{0,3}([^\s:：,，;；()（）|/<>\[\]【】_]{2,20})"
)
_WESTERN = re.compile(
    r"(?:^|(?<=\d)\s|[|•·,]\s?"
    r"|\b(?:posted|written|published|geschrieben|veröffentlicht|verfasst|erstellt|publié|text|beitrag)\s)\s?"
    r"(?:[Bb]y|BY|[Vv]on|VON|[Pp]ar|PAR|[Pp]or|POR|[Tt]ext|[Aa]uth?or(?:in)?|[Aa]uteur)\s?:?\s"
    r"((?:[A-ZÀ-Þ][\w’'.-]{0,24}|d[aeiu]l?|van|von|der|zu)(?:\s(?:[A-ZÀ-Þ][\w’'.-]{0,24}|d[aeiu]l?"
    r"|van|von|der|zu)){0,4})"
    r"(?=$|\s?(?:[,|•·(/]|\s[-–—]\s|\d|am\s|on\s|vom\s|le\s))"
)
_LINE_CHARS, _HEAD, _TAIL = 120, 200, 120
_NOT_A_NAME = re.compile(
    r"分享|评论|字号|阅读|浏览|关注|首页|正文|收藏|举报|打印|点击|时间|日期|来源|字体|大小|参与|条|回复|登录|视频|专栏|频道|新闻$|下载|客户端|更新|编辑|最后|facebook|twitter|whatsapp|微博|微信|google|^(?:e-?mail|print|share)$|[:：。？！?!]",
    re.IGNORECASE,
)
_NEAR_DATE = 4
_HAN = re.compile(r"[\u4e00-\u9fff]")


def element_author(tree: LexborHTMLParser, near: str) -> tuple[str, str]:
    """The name in an element that is called an author's, and the one in a source's; empty where there is none.

    Elements in comments, sidebars and lists of other pages are passed over; of the rest the surest comes first: those
    that say so (rel, itemprop), those called so, links to an author's page. Where a page names many authors in one
    way, they are those of comments or of other pages: only one that stands in the lines near the text is its own.
    """
    found: dict[int, dict[str, None]] = {}
    for node in tree.css(_ELEMENTS)[:_MOST_ELEMENTS]:
        rank = _rank(node)
        if rank is None or elsewhere(node) or node.css_first("button") is not None:
            continue
        inner = node.css_first('[itemprop~="name"], .fn, [rel~="author"]')
        text = text_of(inner if inner is not None else node) or (node.attributes.get("content") or "")
        if name := person(text):
            found.setdefault(rank, {})[name] = None
    named = {"": ""}
    for rank in sorted(found, reverse=True):
        names = [name for name in found[rank] if len(found[rank]) <= _FEW or name in near]
        if names:
            named["source" if rank == _SOURCE_RANK else ""] = names[0]
    return named[""], named.get("source", "")


def _rank(node: LexborNode) -> int | None:
    attributes = node.attributes
    if "author" in (attributes.get("rel") or "") or attributes.get("itemprop"):
        return 0
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}"
    if _CALLED_PERSON.search(names):
        return 1
    if node.tag == "a" and "/" in (attributes.get("href") or ""):
        return _SOURCE_RANK if _CALLED_SOURCE.search(names) else 2
    return _SOURCE_RANK if _CALLED_SOURCE.search(names) else None


def elsewhere(node: LexborNode) -> bool:
    """Whether an element stands in comments, a sidebar, a menu or a list of other pages."""
    current: LexborNode | None = node
    for _ in range(_MOST_UP):
        if current is None or current.tag in ("body", "article", "main"):
            return False
        names = f"{current.attributes.get('class') or ''} {current.attributes.get('id') or ''}"
        if current.tag in ("aside", "nav", "footer") and not _OF_TEXT.search(names):
            return True
        if _ELSEWHERE.search(names):
            return True
        if "hentry" in names:
            return False
        current = current.parent
    return False


def person(text: str) -> str:
    """The name in a text that holds little else; empty where it holds none."""
    text = collapsed(text)
    if len(text) > 2 * _LONGEST or _ADDRESS.search(text):
        return ""
    name = bare_name(_BEHIND.split(_BEFORE.sub("", text), maxsplit=1)[0])
    first, *others = re.split(r"[,，;；]\s*", name)
    first = _SPACED_NAME.sub(r"\1\2", first)
    name = ", ".join([first, *(one for one in others if " " in one)]).strip(" ,.:：-")
    return name if is_name(name) else ""


def is_name(name: str) -> bool:
    """Whether a text can be an author's name: no address, id, label or role, and not long."""
    return (
        1 < len(name) <= _LONGEST
        and len(name.split()) <= _MOST_WORDS
        and may_be_name(name[:40])
        and not is_role(name)
        and not _NOBODY.fullmatch(name)
        and not _ADDRESS.search(name)
        and not _ALL_NUMBERS.fullmatch(name)
    )


def line_author(before: Iterable[str], after: Iterable[str], body: str, title: str) -> tuple[str, str]:
    """The author that lines around a text, or its own first and last words, name; and who published it, as they say.

    Args:
        before, after: the lines around the text, in the order of the page.
        title: of the page, below which its author stands beside the day.
    """
    lines = _below(list(before), title)
    short = [line for line in [*lines, *after] if len(line) <= _LINE_CHARS]
    said = "\n".join(short)
    ends = f"{body[:_HEAD]}\n{body[-_TAIL:]}"
    for pattern, text in (
        (_LABELLED, said),
        (_UNLABELLED_TITLE, said),
        (_LABELLED, ends),
        (_SIGNED_LINE, f"{said}\n{body[:_HEAD]}\n{body[-_TAIL:]}"),
        (_REPORTER, said),
        (_REPORTER, ends),
    ):
        if name := _first(pattern, text):
            return name, ""
    western = (
        name
        for line in [*short, *ends.split("\n")]
        if len(line) <= _LINE_CHARS and (name := _first(_WESTERN, line))
    )
    published = _first(_SOURCE, said) or _beside_day(lines, title) or _first(_SOURCE, ends)
    return next(western, ""), published


def sections(tree: LexborHTMLParser) -> set[str]:
    """The sections of a site that a page stands in, as the way there (首页 > 新闻 > 国内) and its metadata say."""
    texts = (text_of(link) for crumbs in tree.css(_CRUMBS)[:_FEW] for link in crumbs.css("a")[:_MOST_CRUMBS])
    said = (node.attributes.get("content") or "" for node in tree.css('meta[property="article:section"]'))
    return {collapsed(text) for text in (*texts, *said)} - {""}


def editors(text: str) -> set[str]:
    """The editors that a text names."""
    return set(_EDITOR.findall(text))


def _first(pattern: re.Pattern[str], text: str) -> str:
    named = (collapsed(match[1] or match[match.lastindex or 1]) for match in pattern.finditer(text))
    return next((name for name in named if is_name(name)), "")


def _below(lines: list[str], title: str) -> list[str]:
    """The lines below a page's heading, heading included; all where it is not among them."""
    squeezed = "".join(title.split())
    headings = [place for place, line in enumerate(lines) if squeezed and squeezed in "".join(line.split())]
    return lines[headings[-1] :] if headings else lines


def _beside_day(lines: list[str], title: str) -> str:
    """A short text beside the day below the heading: who published it, where nothing says so."""
    if not lines or not _HAN.search(title) or "".join(title.split()) not in "".join(lines[0].split()):
        return ""
    dated = next(
        (
            place
            for place, line in enumerate(lines[: 2 * _NEAR_DATE])
            if place and DATE.search(line) and len(line) <= 60
        ),
        None,
    )
    if dated is None:
        return ""
    for line in [DATE.sub(" ", lines[dated]), *reversed(lines[1:dated]), *lines[dated + 1 : dated + 2]]:
        for part in re.split(r"[\s/|\[\]【】]+", line):
            if (
                2 <= len(part) <= 16
                and (part := person(part))
                and re.search(r"[\u4e00-\u9fff]|^[A-Za-z]{4,}$", part)
                and not _NOT_A_NAME.search(part)
            ):
                return part
    return ""
