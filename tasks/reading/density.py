"""The main text of a page by where its text is dense: long runs with punctuation, few links.

Every block (an element that holds text of its own) counts its characters outside links. A block that reads like a
sentence adds them to the score of the elements around it, less at every step. The element with the highest score,
weakened by its share of links, holds the main text. Method after Readability (Arc90, 2009) and Sun, Song and Liao,
"DOM based content extraction via text density" (SIGIR 2011).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.reading.noise import is_caption, is_noise

_DROPPED = [
    "script", "style", "template", "noscript", "iframe", "svg", "canvas", "video", "audio", "object", "embed",
    "button", "select", "textarea", "head",
]  # fmt: skip
_PUNCTUATION = re.compile(r"[，。！？；：、,.!?;:“”…]")
_INLINE = frozenset((
    "a", "abbr", "b", "bdi", "bdo", "big", "cite", "code", "del", "dfn", "em", "font", "i", "img", "ins", "kbd",
    "label", "mark", "nobr", "q", "s", "samp", "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
    "var", "wbr",
))  # fmt: skip
# Limits of the work on a page made to cost much; ordinary ones have some hundred blocks, twenty deep.
_MOST_BLOCKS = 5000
_MOST_DEEP = 100
_MOST_WIDER = 5

_SENTENCE_CHARS = 20
_STEP = 0.5
_STEPS = 4
# A neighbour with this share of the best one's text belongs to it (a text in several sections).
_NEIGHBOUR = 0.25
# So many characters of a description tell a paragraph; an element with less of the page's sentences is in doubt.
_BEGINNING, _LEAST_SHARE = 15, 0.5
_MOST_LINKS = 0.5
_AROUND = 40
_BREAK = "\x00"  # no text of a page holds one: the parser drops it
_LINES_BEFORE, _LINES_AFTER = 2, 2
# Lines between title and text: date, source, font size.
_BYLINE = re.compile(r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}|来源|字号|责任编辑|浏览|阅读|收藏|分享|评论")
_BOILERPLATE = re.compile(
    r"版权所有|ICP备|ICP证|Copyright|©|All Rights Reserved|未经(?:授权|许可|书面)", re.IGNORECASE
)
# Lines after the last sentence: what to read or do next.
_AFTERWARDS = re.compile(
    r"推荐|正在加载|加载更多|展开|收起|返回|[上下]一[篇页条]|下页|相关(?:阅读|新闻|文章|链接)|点击查看|扫一?扫|分享到|点赞|举报"
    r"|更多(?:精彩|内容|>>)|责任编辑|责编|本文来源"
)
# Breadcrumbs: 首页 > 快讯 > 公司.
_CRUMBS = re.compile(r"(?:您?(?:所在|现在|当前)的?位置|^首页\s*[>»/›])")
_AFTERWARDS_CHARS = 30
# Text of a link that names another page, not its writer or a section.
_HEADLINE_CHARS = 8
# Elements that hold so much of a page's sentences are no noise, whatever their names.
_MOST_NOISE = 0.8


@dataclass(slots=True, eq=False, kw_only=True)
class _Block:
    """An element that is no inline markup, and the text below it that no inner block holds."""

    parent: _Block | None
    noise: bool
    node: LexborNode
    depth: int = 0
    parts: list[str] = field(default_factory=list)
    text: str = ""
    chars: int = 0
    link_chars: int = 0
    score: float = 0.0
    total: int = 0
    total_links: int = 0

    def add(self, text: str, *, linked: bool) -> None:
        self.parts.append(text)
        length = len(text.strip())
        self.chars += length
        self.link_chars += length if linked else 0

    def ancestors(self) -> Iterator[_Block]:
        block: _Block | None = self
        while block is not None:
            yield block
            block = block.parent

    @property
    def shape(self) -> tuple[str | None, str | None]:
        """Marks that elements made alike have in common."""
        return self.node.tag, self.node.attributes.get("class")

    @property
    def links(self) -> float:
        """Share of links in the text of the whole element."""
        return self.total_links / max(1, self.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseText:
    """The text and what stands around it.

    Attributes:
        text: its paragraphs on lines of their own.
        share: of the page's sentences (their characters) that the text holds: 0 to 1.
        of_page: characters of the text by those of the page, links and all: 0 to 1.
        headed: share of the gaps between its sentences in which the headline of another page stands: 0 to 1. Near 1
            where the text is a list of pages with an abstract each.
        sentences: how many blocks of it read like sentences.
        before, after: the lines around it, in the order of the page: where dates and authors are named.
    """

    text: str
    share: float
    of_page: float
    headed: float
    sentences: int
    before: tuple[str, ...]
    after: tuple[str, ...]


def link_share(tree: LexborHTMLParser) -> tuple[float, int]:
    """Share of links in a page's text, and how many characters it has in all; drops elements that are never text."""
    tree.strip_tags(_DROPPED)
    blocks = _blocks(tree)
    chars = _chars(blocks)
    return sum(block.link_chars for block in blocks) / max(1, chars), chars


def dense_text(tree: LexborHTMLParser, description: str = "") -> DenseText | None:
    """The main text of a page; None where no text is dense. Drops elements from the tree that are never text.

    Args:
        description: what the page says it is about. A paragraph apart that says it, too, leads the text, where that
            is most of the page.
    """
    tree.strip_tags(_DROPPED)
    blocks = _blocks(tree)
    every = [block for block in blocks if _is_sentence(block)]
    if not every:
        return None
    sentences = [block for block in every if not block.noise]
    if _chars(sentences) < (1 - _MOST_NOISE) * _chars(every):
        for block in blocks:
            block.noise = is_caption(block.node)
        sentences = [block for block in every if not block.noise] or every
    best = _densest(blocks, sentences)
    first_of_page = _first_article(best, sentences)
    best = _widened(best, sentences) if first_of_page is None else first_of_page
    lead = _lead(best, sentences, description)
    inside = _chars(block for block in sentences if best in block.ancestors()) if lead is not None else 0
    if inside < _LEAST_SHARE * _chars(sentences):
        lead = None  # the text may stand elsewhere, in parts: a paragraph is not to take its place
    kept = _trimmed([block for block in blocks if _belongs(block) and best in block.ancestors()])
    if lead is not None:
        above = blocks[: blocks.index(kept[0])]
        kept = [block for block in above if _is_sentence(block) and lead in block.ancestors()] + kept
    first, last = blocks.index(kept[0]), blocks.index(kept[-1])
    chosen = set(map(id, kept))
    return DenseText(
        text="\n".join(block.text for block in kept),
        share=_chars(block for block in sentences if id(block) in chosen) / _chars(sentences),
        of_page=_chars(kept) / max(1, _chars(blocks)),
        headed=_headed(blocks[first : last + 1], chosen),
        sentences=sum(map(_is_sentence, kept)),
        before=tuple(block.text for block in blocks[max(0, first - _AROUND) : first + 4]),
        after=tuple(block.text for block in blocks[last : last + _AROUND]),
    )


def _lead(best: _Block, sentences: list[_Block], description: str) -> _Block | None:
    """The element with the paragraph that says what the page is about, where that stands outside the best one."""
    beginning = "".join(description.split())[:_BEGINNING]
    if len(beginning) < _BEGINNING:
        return None
    said = next((block for block in sentences if beginning in "".join(block.text.split())), None)
    if said is None or said.parent is None or best in said.ancestors() or said.parent in best.ancestors():
        return None
    return said.parent


def _headed(blocks: list[_Block], chosen: set[int]) -> float:
    """Share of the gaps between kept sentences with a headline that is a link."""
    gaps = headed = 0
    inside = link = False
    for block in blocks:
        if id(block) in chosen and _is_sentence(block):
            gaps += inside
            headed += inside and link
            inside, link = True, False
        elif block.chars >= _HEADLINE_CHARS and block.link_chars > _MOST_LINKS * block.chars:
            link = True
    return headed / gaps if gaps else 0.0


def _chars(blocks: Iterable[_Block]) -> int:
    return sum(block.chars for block in blocks)


def _densest(blocks: list[_Block], sentences: list[_Block]) -> _Block:
    """The element with the most sentences near it, weakened by its share of links."""
    for block in blocks:
        for ancestor in block.ancestors():
            ancestor.total += block.chars
            ancestor.total_links += block.link_chars
    scored: dict[int, _Block] = {}
    for block in sentences:
        own = block.chars - block.link_chars
        for step, ancestor in enumerate(islice(block.ancestors(), _STEPS + 1)):
            ancestor.score += own * _STEP ** max(0, step - 1)
            scored[id(ancestor)] = ancestor
    return max(scored.values(), key=lambda block: block.score * (1 - block.links))


def _is_sentence(block: _Block) -> bool:
    own = block.chars - block.link_chars
    if own < _SENTENCE_CHARS or block.link_chars > _MOST_LINKS * block.chars:
        return False
    return _PUNCTUATION.search(block.text) is not None and _BOILERPLATE.search(block.text) is None


def _belongs(block: _Block) -> bool:
    return not block.noise and block.link_chars <= _MOST_LINKS * block.chars


def _first_article(best: _Block, sentences: list[_Block]) -> _Block | None:
    """The first of several articles one below the other, each under a heading of its own; None where there is one.

    Pages that load the next article below the one that was asked for hold both.
    """
    for one in best.ancestors():
        if one.parent is None or not _is_headed(one.node):
            continue
        beside: dict[int, _Block] = {}
        for block in sentences:
            around = next((outer for outer in block.ancestors() if outer.parent is one.parent), None)
            if around is not None and around.node.tag == one.node.tag and _is_headed(around.node):
                beside.setdefault(around.node.mem_id, around)
        if len(beside) > 1:
            return next(iter(beside.values()))
    return None


def _is_headed(node: LexborNode) -> bool:
    """Whether an element begins an article: a heading of the first rank stands in it, not as a link to another page."""
    heading = node.css_first("h1") or (node.css_first("h2") if node.tag == "article" else None)
    return (
        heading is not None
        and heading.css_first("a[href]") is None
        and len(heading.text().strip()) >= _HEADLINE_CHARS
    )


def _widened(best: _Block, sentences: list[_Block]) -> _Block:
    """The element around the best one as long as much of the text stands beside it, in elements of its shape."""
    for _ in range(_MOST_WIDER):
        parent = best.parent
        if parent is None or parent.parent is None:
            break
        inside = beside = 0
        for block in sentences:
            for ancestor in block.ancestors():
                if ancestor is best:
                    inside += block.chars
                    break
                if ancestor.parent is parent:
                    beside += block.chars if ancestor is block or ancestor.shape == best.shape else 0
                    break
        if beside < _NEIGHBOUR * inside:
            return best
        best = parent
    return best


def _trimmed(blocks: list[_Block]) -> list[_Block]:
    """Without what stands before the first sentence and after the last, but for a line or two."""
    places = [place for place, block in enumerate(blocks) if _is_sentence(block)]
    if not places:
        return blocks
    first, last = places[0], places[-1]
    before = [
        block
        for block in blocks[max(0, first - _LINES_BEFORE) : first]
        if not (_BYLINE.search(block.text) or _CRUMBS.search(block.text))
    ]
    after: list[_Block] = []
    for block in blocks[last + 1 : last + 1 + _LINES_AFTER]:
        if len(block.text) <= _AFTERWARDS_CHARS and _AFTERWARDS.search(block.text):
            break
        after.append(block)
    return [*before, *blocks[first : last + 1], *after]


def _joined(parts: list[str]) -> str:
    lines = (" ".join(line.split()) for line in "".join(parts).split(_BREAK))
    return "\n".join(line for line in lines if line)


def _blocks(tree: LexborHTMLParser) -> list[_Block]:
    """Blocks with text of their own, in the order of the page; text after an inner block is a block apart."""
    places: dict[int, tuple[_Block, bool]] = {}
    found: list[_Block] = []
    outer = None
    for node in tree.body.traverse(include_text=True) if tree.body is not None else ():
        if not node.is_text_node:
            if node.tag == "br" and found:
                found[-1].parts.append(_BREAK)
            continue
        text = node.text_content
        if not text or text.isspace() or node.parent is None:
            continue
        block, linked = _place(node.parent, places)
        if block is not outer:
            if len(found) == _MOST_BLOCKS:
                break
            outer = block
            found.append(_Block(parent=block, noise=block.noise, node=block.node) if block.parts else block)
        found[-1].add(text, linked=linked)
    for block in found:
        block.text = _joined(block.parts)
    return found


def _place(element: LexborNode, places: dict[int, tuple[_Block, bool]]) -> tuple[_Block, bool]:
    """The block that text in an element belongs to, and whether it is in a link; each element is looked at once."""
    chain: list[LexborNode] = []
    current: LexborNode | None = element
    while current is not None and current.mem_id not in places:
        chain.append(current)
        current = current.parent
    place = places[current.mem_id] if current is not None else None
    for node in reversed(chain):
        if place is None:
            place = _Block(parent=None, noise=is_noise(node), node=node), False
        else:
            block, linked = place
            if node.tag not in _INLINE and block.depth < _MOST_DEEP:
                noise = block.noise or is_noise(node)
                block = _Block(parent=block, noise=noise, node=node, depth=block.depth + 1)
            place = block, linked or node.tag == "a"
        places[node.mem_id] = place
    assert place is not None  # an element without a place of its own is in the chain
    return place
