"""Authors of texts, by elements that are called a person or link to one, and by labels (作者：, 记者, By).

A person comes before who published the text (来源), and both before the site itself. Editors (责编) are no authors, nor
are ids, addresses and what stands next to names (关注, Share).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from itertools import islice
from urllib.parse import urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.dates import DATE, read_date
from tasks.reading.days import date_of, is_its_day
from tasks.reading.markup import collapse, text_of
from tasks.reading.names import bare_name, drop_times, is_role, may_be_name, person
from tasks.reading.outline import Outline
from tasks.reading.roles import Role, is_called, roles

# Of an address in lower case between two strokes.
_PERSON_LINK = re.compile(
    r"[/?&.](?:(?:[\w-]+[-_])?(?:users?|members?|profiles?|authors?|contributors?|writers?|people|person|userinfo"
    r"|user_profile|memberlist|customer|account)[/?=.&-]"
    r"|(?<=[/.])(?:u|space|i|home\.php|home/main|index\.php\?action=profile)[/?=&-]|(?<=./)[@~]\w)"
    r"|space-uid-\d|weibo\.com/(?:u/)?\d"
)
_AUTHOR_LINK = re.compile(r"/(?:authors?|contributors?|writers?)/[^/]", re.IGNORECASE)
_ID = re.compile(r"\d{8,}")
# Elements around a text whose names are its own: a whole post may be called after the rank of its author.
_OWN = 2

SURELY = 100
"""The score of an element that can only be a person; several that may be one add up to less."""
# Texts above another that may name its author; the nearer counts for more.
_NEAR, _FIRST_TEXTS, _CLOSE, _AROUND, _ABOVE = 40, 3, 5, 3, 8
_LEAST_STRENGTH = 1.9
_BEGINNING = 60
_POST_PATH = re.compile(
    r"/(?:threads?|topics?|forums?|bbs|questions?|discussions?|discuss|posts?|status|answers?|t|p)(?:[/-]|$)",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?<!no-)(?<!has-)(?<!with-)(?<!right-)(?<!left-)(?<![a-z])(?:comments?(?!-?(?:s-)?(?:open"
    r"|closed|link|count|meta))|respond|repl(?:y|ies)|side-?bar"
    r"|relat(?:ed|ion)|recommend|teaser|pop-?up|modal|dialog|envelope|red-?packet|most-?read|navi\b|nav\b|navigation|menu)",
    re.IGNORECASE,
)
_NOT_BY = re.compile(r"(?:edit|review|check|updat)(?:ed|or)\W+(?:by\W*)?$", re.IGNORECASE)
_CRUMBS = ", ".join(
    f'[{where}*="{name}" i]'
    for where in ("class", "id")
    for name in ("crumb", "curpos", "cur-pos", "weizhi", "current-location")
)
_MOST_CRUMBS, _MOST_UP, _FEW, _MOST_BELOW = 10, 8, 3, 20
_HAN_NAME = r"[\u4e00-\u9fff·]{2,4}"
# Words behind a name that are no name: another task, or the beginning of a text.
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
_LABEL_ABOVE = re.compile(
    rf"(?:^|\n)(?:作者\n({_VALUE})|(?i:(?:(?:written|article|words|text|story)\s)?by|author):?\n([^\n]{{2,60}}))(?=\n|$)"
)
_REPORTER = re.compile(
    rf"(?:[（(]\S{{0,6}}|^\S{{0,8}}|\n\S{{0,8}}|\s)记\s*者[:：\s]*({_HAN_NAMES})(?=[)）\s]|$|报道|通讯员|摄)"
)
_SOURCE = re.compile(rf"(?<!图片)(?<!数据)(?<!资料)(?:来\s*源于?|出处|稿源)\s*[:：|]\s*({_VALUE})")
_EDITOR = re.compile(
    r"(?:责任编辑|责编|编\s*辑|校对)\s{0,3}[:：|/]?\s{0,3}([^\s:：,，;；()（）|/<>\[\]【】_]{2,20})"
)
_WESTERN = re.compile(
    r"(?:^|(?<=\d)\s|[|•·,]\s?"
    r"|\b(?i:posted|written|published|article|words|story|geschrieben|veröffentlicht|verfasst|erstellt|publié|text"
    r"|beitrag)\s)\s?"
    r"(?:[Bb]y|BY|[Vv]on|VON|[Pp]ar|PAR|[Pp]or|POR|[Tt]ext|[Aa]uth?or(?:in)?|[Aa]uteur)\s?:?\s"
    r"((?:[A-ZÀ-Þ][\w’'.-]{0,24}|d[aeiu]l?|van|von|der|zu)(?:\s(?:[A-ZÀ-Þ][\w’'.-]{0,24}|d[aeiu]l?"
    r"|van|von|der|zu)){0,4})"
    r"(?=$|\s?(?:[,|•·(/]|\s[-–—]\s|\d|am\s|at\s|on\s|vom\s|le\s))"
)
_LINE_CHARS, _HEAD, _TAIL = 120, 200, 120
_NOT_A_NAME = re.compile(
    r"分享|评论|字号|阅读|浏览|关注|首页|正文|收藏|举报|打印|点击|时间|日期|来源|字体|大小|参与|条|回复|登录|视频|专栏|频道|新闻$|下载|客户端|更新|编辑|最后|facebook|twitter|whatsapp|微博|微信|google|^(?:e-?mail|print|share)$|[:：。？！?!]",
    re.IGNORECASE,
)
_NEAR_DATE = 4
_HAN = re.compile(r"[\u4e00-\u9fff]")


def is_person(page: Outline, element: int) -> int:
    """Return how surely an element is called a person's name or links to a person: 0, 1 (perhaps) or `SURELY`."""
    if not page.persons:
        page.persons.extend(map(_is_person, page.tags, page.attributes, page.roles))
        for one in page.pictured:
            page.persons[one] = SURELY
    return page.persons[element]


def _is_person(tag: str, attributes: Mapping[str, str], found: frozenset[Role]) -> int:
    sure = (
        "person" in found
        or attributes.get("itemprop") in ("author", "creator")
        or attributes.get("rel") == "author"
        or (tag == "a" and _leads_to_person(attributes.get("href", "")))
    )
    return SURELY if sure else int("perhaps person" in found or attributes.get("itemprop") == "name")


@lru_cache(maxsize=4096)
def _leads_to_person(address: str) -> bool:
    return _PERSON_LINK.search(f"/{address.lower()}/") is not None


def person_strength(page: Outline, owner: int, record: int, *, article: bool = False) -> float:
    """Return how much an element and the three around it, inside a record, are called a person; 0 if not at all.

    Args:
        article: whether elements that are called an author count more than other persons.
    """
    element, strength = owner, 0.0
    for step in range(4):
        attributes = page.attributes[element]
        person = is_person(page, element)
        if step < _OWN and (_is_of_person(page, element)):
            return 0.0
        if person:
            link = page.tags[element] == "a" and _leads_to_person(attributes.get("href", ""))
            strong = "author" in (attributes.get("itemprop"), attributes.get("rel"))
            strong = strong or (article and _is_author(page, element))
            strength += (1.5 if link else 1.0) / (step + 1) + strong
        element = page.parents[element]
        if element < record:
            break
    return strength


def _is_author(page: Outline, element: int) -> bool:
    """Return True if an element is called an author, or links to an author's page."""
    link = _AUTHOR_LINK.search(page.attributes[element].get("href", ""))
    return link is not None or is_called("author", page.called[element])


def _is_of_person(page: Outline, element: int) -> bool:
    return "of person" in page.roles[element] or page.attributes[element].get("itemprop") == "jobTitle"


def as_name(page: Outline, number: int) -> float:
    """Return how surely a text names a person, by the names and links of its elements; 0 if it does not."""
    text = page.texts[number]
    name = bare_name(text.text)
    if page.dates[number] or not may_be_name(name) or is_role(name):
        return 0.0
    return person_strength(page, text.owner, 0)


def name_of(page: Outline, number: int) -> str:
    """Return the name in a text without the words around it (by, 作者); empty if it is an id."""
    name = " ".join(bare_name(page.texts[number].text).split())
    return "" if _ID.fullmatch(name) else name


def element_authors(page: Outline, body: str) -> tuple[str, str]:
    """Return the name above a text, or in its first lines, in an element called its author, and the one of its source.

    Elements in comments, sidebars and lists of other pages are passed over, and names of who edited or reviewed a text.
    """
    authors: dict[float, str] = {}
    sources: dict[float, str] = {}
    for order, number in enumerate(_near(page, body, len(page.texts))):
        owner = page.texts[number].owner
        if not (name := person(page.texts[number].text)):
            continue
        if (strength := _author_strength(page, number)) >= _LEAST_STRENGTH:
            authors.setdefault(strength / (_CLOSE + order), name)
        if any(is_called("source", page.called[one]) for one in islice(page.above(owner), _AROUND)):
            sources.setdefault(1 / (_CLOSE + order), name)
    return authors.get(max(authors, default=0.0), ""), sources.get(max(sources, default=0.0), "")


def author_below(page: Outline, body: str) -> str:
    """Return the only name in elements called an author below the first lines of a text, or an empty text."""
    near = _near(page, body, len(page.texts))
    below = range(max(near, default=len(page.texts)) + 1, len(page.texts))
    called = (number for number in below if _author_strength(page, number) >= _LEAST_STRENGTH)
    names = {person(page.texts[number].text) for number in islice(called, _MOST_BELOW)}
    names = {name for name in names if not name[:1].islower()} - {""}
    return names.pop() if len(names) == 1 else ""


def _author_strength(page: Outline, number: int) -> float:
    """Return the strength of a person who may have written the page's article; 0 for one in an aside, or an editor."""
    owner = page.texts[number].owner
    strength = person_strength(page, owner, 0, article=True)
    label = page.texts[number - 1].text if number else ""
    return 0.0 if strength and (_NOT_BY.search(label) or elsewhere(page.nodes[owner])) else strength


def signer(page: Outline, end: int, body: str, now: datetime) -> tuple[str, str]:
    """Return the author and the day that stand nearest to a text, before the text with the number `end`."""
    near = _near(page, body, end, most=end)
    dates = (date_of(page, n, now) for n in near if is_its_day(page, n))
    date_text = next((date for date in dates if read_date(date, now)), "")
    author = _best_name(page, {n: as_name(page, n) / (_CLOSE + order) for order, n in enumerate(near)})
    return author, date_text


def find_poster(page: Outline, url: str, body: str) -> str:
    """Return who posted the only text of a forum's page: a person above it for sure, or in its first lines.

    Empty unless the address or the elements around the text say that it is a post.
    """
    near = _near(page, body, len(page.texts))
    at = place_of(page, len(page.texts), body)
    if at is None or not (_POST_PATH.search(urlsplit(url).path) or _is_in_topic(page, at)):
        return ""
    names = {n: as_name(page, n) / (_CLOSE + order) for order, n in enumerate(near) if _is_sure(page, n)}
    plain = {n: score for n, score in names.items() if not page.texts[n].text.strip().startswith("@")}
    called = {n: score for n, score in names.items() if "name" in roles(*page.names[page.texts[n].owner])}
    handles = {n: score for n, score in names.items() if n not in plain}
    return next(filter(None, (_best_name(page, one) for one in (handles, called, plain))), "")


def _best_name(page: Outline, scores: Mapping[int, float]) -> str:
    best = max(scores, key=lambda n: scores[n], default=-1)
    return name_of(page, best) if scores.get(best) else ""


def _is_in_topic(page: Outline, number: int) -> bool:
    return any(
        "topic" in roles(*page.names[one]) for one in islice(page.above(page.texts[number].owner), _ABOVE)
    )


def _is_sure(page: Outline, number: int) -> bool:
    around = islice(page.above(page.texts[number].owner), _AROUND)
    return any(is_person(page, element) == SURELY for element in around)


def _near(page: Outline, body: str, end: int, most: int = _FIRST_TEXTS) -> list[int]:
    """Return the texts above a body from the nearest, then its first ones; none if it does not begin before `end`."""
    at = place_of(page, end, body)
    return [] if at is None else [*range(at - 1, max(-1, at - _NEAR), -1), *range(at, min(at + most, end))]


def place_of(page: Outline, end: int, body: str) -> int | None:
    """Return the number of the text that a body begins with; None if it does not begin before `end`."""
    beginning = body.partition("\n")[0][:_BEGINNING]
    texts = ((n, page.texts[n].text.lstrip()) for n in range(end))
    likely = ((n, " ".join(text.split())[:_BEGINNING]) for n, text in texts if text[:1] == beginning[:1])
    return next((n for n, text in likely if text and beginning.startswith(text)), None)


def elsewhere(node: LexborNode) -> bool:
    """Return True if an element stands in comments, a sidebar, a menu or a list of other pages."""
    current: LexborNode | None = node
    for _ in range(_MOST_UP):
        if current is None or current.tag in ("body", "main"):
            return False
        names = f"{current.attributes.get('class') or ''} {current.attributes.get('id') or ''}"
        if _ELSEWHERE.search(names):
            return True
        if current.tag == "article":
            return False
        current = current.parent
    return False


def line_author(before: Iterable[str], after: Iterable[str], body: str, title: str) -> tuple[str, str]:
    """Return the author named in lines around a text, or in its first and last words, and the publisher.

    Args:
        before, after: the lines around the text, in the order of the page.
        title: of the page; the author stands below it, next to the day.
    """
    lines = _below(list(before), title)
    short = [line for line in [*lines, *after] if len(line) <= _LINE_CHARS]
    said = drop_times("\n".join(_drop_title(short, title)))
    ends = drop_times("\n".join(_drop_title([*body[:_HEAD].split("\n"), *body[-_TAIL:].split("\n")], title)))
    for pattern, text in (
        (_LABELLED, said),
        (_LABEL_ABOVE, said),
        (_LABELLED, ends),
        (_SIGNED_LINE, f"{said}\n{ends}"),
        (_REPORTER, said),
        (_REPORTER, ends),
    ):
        if name := _first(pattern, text):
            return name, ""
    western = (
        name
        for line in f"{said}\n{ends}".split("\n")
        if len(line) <= _LINE_CHARS and (name := _first(_WESTERN, line))
    )
    published = _first(_SOURCE, said) or _name_near_day(lines, title) or _first(_SOURCE, ends)
    return next(western, ""), published


def sections(tree: LexborHTMLParser) -> set[str]:
    """Return the sections of a site that a page belongs to, by its breadcrumbs (首页 > 新闻) and its metadata."""
    texts = (text_of(link) for crumbs in tree.css(_CRUMBS)[:_FEW] for link in crumbs.css("a")[:_MOST_CRUMBS])
    said = (node.attributes.get("content") or "" for node in tree.css('meta[property="article:section"]'))
    return {collapse(text) for text in (*texts, *said)} - {""}


def editors(text: str) -> set[str]:
    """Return the editors that a text names."""
    return set(_EDITOR.findall(text))


def _first(pattern: re.Pattern[str], text: str) -> str:
    named = (match[match.lastindex or 1] for match in pattern.finditer(text))
    return next(filter(None, map(person, named)), "")


def _below(lines: list[str], title: str) -> list[str]:
    """Return the lines from a page's heading on; all if it is not among them."""
    squeezed = "".join(title.split())
    headings = [place for place, line in enumerate(lines) if squeezed and squeezed in "".join(line.split())]
    return lines[headings[-1] :] if headings else lines


def _drop_title(lines: list[str], title: str) -> list[str]:
    """Return lines without the page's title, and without those that hold most of it alone."""
    squeezed = "".join(title.split())
    if not squeezed:
        return lines
    kept = [line.replace(title, "|") for line in lines]
    return [line for line in kept if not _is_part_of_title("".join(line.split()), squeezed)]


def _is_part_of_title(line: str, title: str) -> bool:
    return 2 * len(line) >= len(title) and line.strip(".…") in title


def _name_near_day(lines: list[str], title: str) -> str:
    """Return a short text next to the day below the heading: the publisher, if no label names it."""
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
                and part not in title
            ):
                return part
    return ""
