"""The main text of a page by where its text is dense: long runs with punctuation, few links.

Every block (an element that holds text of its own) counts its characters outside links. A block that reads like a
sentence adds them to the score of the elements around it, less at every step. The element with the highest score,
weakened by its share of links, holds the main text. Method after Readability (Arc90, 2009) and Sun, Song and Liao,
"DOM based content extraction via text density" (SIGIR 2011).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, islice

from tasks.reading.outline import INLINE, Outline
from tasks.reading.roles import is_caption, is_layout, is_noise

_PUNCTUATION = re.compile(r"[，。！？；：、,.!?;:“”…]")
# Limits of the work on a page made to cost much; ordinary ones have some hundred blocks, twenty deep.
_MOST_BLOCKS = 5000
_FIRST_ELEMENTS = 8
_LEAST_ARTICLE = 0.1
_HEADINGS = frozenset(("h2", "h3", "h4"))
_PARAGRAPHS = frozenset(("p", "ul", "ol", "dl", "blockquote", "pre", "table"))

_SENTENCE_CHARS = 20
_STEP = 0.5
_STEPS = 4
# A neighbour with this share of the best one's text belongs to it (a text in several sections).
_NEIGHBOUR = 0.25
# Characters of a description that identify a paragraph; share of the page's sentences in an element without doubt.
_BEGINNING, _LEAST_SHARE = 15, 0.5
_MOST_LINKS, _MENU = 0.5, 0.8
_AROUND = 40
_AROUND_TEXT, _LINES_INSIDE = 2, 8
_DAY = re.compile(r"\d{4}[-/.年]\d{1,2}[-/.月]\d{1,2}")
# Text of a link that names another page, not its writer or a section.
_HEADLINE_CHARS = 8
# Elements with this share of a page's sentences are no noise, whatever their names.
_MOST_NOISE = 0.8
_PART = 0.3
"""An element with a smaller share of a page's sentences is only a part of its text."""
_FRAMED = 400
"""Minimum number of characters in an element that is taken for a layout by its name alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """Texts in one element that have only inline markup between them.

    Attributes:
        first, last: the range of its texts.
        chars, link_chars: without blanks around each text.
        links: most of it is links.
        sentence: it reads like one or several.
    """

    element: int
    first: int
    last: int
    text: str
    chars: int
    link_chars: int
    links: bool
    sentence: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseText:
    """The text and what stands around it.

    Attributes:
        text: its paragraphs on lines of their own.
        share: of the page's sentences (their characters) that the text holds: 0 to 1.
        of_page: characters of the text by those of the page, links and all: 0 to 1.
        headed: share of the gaps between its sentences that hold the headline of another page: 0 to 1. It is near 1
            for a list of pages with an abstract each.
        sentences: how many blocks of it read like sentences.
        before, beginning, after: the lines around it, in the order of the page. They name dates and authors.
    """

    text: str
    share: float
    of_page: float
    headed: float
    sentences: int
    before: tuple[str, ...]
    beginning: tuple[str, ...]
    after: tuple[str, ...]


def dense_text(page: Outline, description: str = "", *, end: int | None = None) -> DenseText | None:
    """Return the main text of a page; None if no text is dense.

    Args:
        description: the page's own description. A paragraph above the text that repeats it belongs to the text.
        end: number of the first text that is not looked at.
    """
    return _Density(page, len(page.texts) if end is None else end).find(description)


class _Density:
    def __init__(self, page: Outline, end: int) -> None:
        self._page, self._end = page, end
        self._around: list[int] = []
        """The nearest element around each element, itself included, that is no inline markup."""
        for element, tag in enumerate(page.tags):
            inline = tag in INLINE and element > 0
            self._around.append(self._around[page.parents[element]] if inline else element)
        self._blocks = list(self._all_blocks())

    def find(self, description: str) -> DenseText | None:
        every = [block for block in self._blocks if block.sentence]
        every = every or [one for one in self._blocks if not one.links and one.chars >= _HEADLINE_CHARS]
        if not every:
            return None
        noise = self._are_called(is_noise, self._find_frames(every))
        described = [one for one in self._find_described(description) if not noise[one.element]]
        sentences = [block for block in every if not noise[block.element]]
        if _chars(sentences) < (1 - _MOST_NOISE) * _chars(every):
            noise = noise if described else self._are_called(is_caption)
            sentences = [one for one in every if not noise[one.element]]
            sentences = [*sentences, *(one for one in described if not one.sentence)]
        if not sentences:
            noise, sentences = [False] * len(noise), every
        best = self._text_element(sentences)
        if _chars(self._inner(best, sentences)) < _PART * _chars(sentences):
            around = next((one for one, _ in self._around_most(sentences)), best)
            best = best if self._is_apart(around, sentences) else around
        lead: list[_Block] = []
        if described and not self._inner(best, described) and self._is_apart(best, sentences):
            best = self._text_element(described)
        elif described and not self._is_apart(best, sentences):
            first_said = next((block for block in described if block.sentence), None)
            if first_said is not None and not self._inner(best, [first_said]):
                lead = self._inner(self._outer(first_said.element), sentences)
        inside = self._inner(best, self._blocks)
        own = [one for one in inside if not noise[one.element] and one.link_chars < _MENU * one.chars]
        kept = _main_range(own, {one.first for one in (*every, *described)})
        kept = [*(one for one in lead if one.first < kept[0].first), *kept]
        places = {block.first: place for place, block in enumerate(self._blocks)}
        first, last = places[kept[0].first], places[kept[-1].first]
        chosen = {block.first for block in kept}
        return DenseText(
            text="\n".join(block.text for block in kept),
            share=_chars(one for one in sentences if one.first in chosen) / _chars(sentences),
            of_page=_chars(kept) / max(1, _chars(self._blocks)),
            headed=_headline_share(self._blocks[first : last + 1], chosen),
            sentences=sum(one.sentence for one in kept),
            before=tuple(block.text for block in self._blocks[max(0, first - _AROUND) : first]),
            beginning=tuple(block.text for block in self._blocks[first : first + _LINES_INSIDE]),
            after=tuple(block.text for block in self._blocks[last : last + _AROUND]),
        )

    def _text_element(self, sentences: list[_Block]) -> int:
        best = self._densest(sentences)
        if self._page.tags[best] == "p" and self._outer(best) > 0:  # more of its text is beside it
            best = self._outer(best)
        first_of_page = self._first_article(best, sentences)
        return self._widen(best, sentences) if first_of_page is None else first_of_page

    def _is_apart(self, best: int, sentences: list[_Block]) -> bool:
        """Whether an element holds little of the page's text, or abstracts of other pages."""
        inside = self._inner(best, sentences)
        return (
            _chars(inside) < _LEAST_SHARE * _chars(sentences)
            or _headline_share(self._inner(best, self._blocks), {one.first for one in inside}) >= _LEAST_SHARE
        )

    def _find_described(self, description: str) -> list[_Block]:
        """Return the blocks that are part of the page's description, or begin with it."""
        squeezed = "".join(description.split())
        beginning = squeezed[:_BEGINNING]
        if len(beginning) < _BEGINNING:
            return []
        texts = ((block, "".join(block.text.split())) for block in self._blocks if not block.links)
        return [
            block
            for block, text in texts
            if beginning in text or (len(text) >= _HEADLINE_CHARS and text in squeezed)
        ]

    def _all_blocks(self) -> Iterator[_Block]:
        """Yield the blocks in the order of the page; text behind an inner block is a block of its own."""
        texts, around = self._page.texts, self._around
        first = 0
        for _ in range(_MOST_BLOCKS):
            while first < self._end and texts[first].text.isspace():
                first += 1
            if first >= self._end:
                return
            element, last = around[texts[first].owner], first + 1
            while last < self._end and around[texts[last].owner] == element:
                last += 1
            yield self._block(element, first, last)
            first = last

    def _block(self, element: int, first: int, last: int) -> _Block:
        text = self._page.join_texts(self._page.texts[first:last])
        chars, link_chars = self._page.count_chars(first, last)
        links = link_chars > _MOST_LINKS * chars
        return _Block(
            element=element,
            first=first,
            last=last,
            text=text,
            chars=chars,
            link_chars=link_chars,
            links=links,
            sentence=not links
            and chars - link_chars >= _SENTENCE_CHARS
            and _PUNCTUATION.search(text) is not None
            and _has_letters(text),
        )

    def _are_called(
        self, is_called: Callable[[str, str], bool], frames: frozenset[int] = frozenset()
    ) -> list[bool]:
        """Return for each element whether it, or one around it, is called so; `frames` are called nothing."""
        page = self._page
        named: list[bool] = []
        for element, (tag, called, parent) in enumerate(
            zip(page.tags, page.called, page.parents, strict=True)
        ):
            around = parent >= 0 and named[parent]
            named.append(around or (tag not in INLINE and element not in frames and is_called(tag, called)))
        return named

    def _find_frames(self, sentences: list[_Block]) -> frozenset[int]:
        """Return the elements around most of a page's sentences that have its heading, or a layout's name."""
        page = self._page
        heading = next((one for one, tag in enumerate(page.tags) if tag == "h1" and page.chars(one)), -1)
        return frozenset(
            one
            for one, chars in self._around_most(sentences, _LEAST_SHARE)
            if one <= heading < page.ends[one]
            or (chars >= max(_FRAMED, _MOST_NOISE * _chars(sentences)) and is_layout(page.called[one]))
        )

    def _around_most(self, sentences: list[_Block], share: float = _MOST_NOISE) -> Iterator[tuple[int, int]]:
        """Yield the elements that hold a share of the sentences, over a half, with the characters of these.

        The innermost element is the first.
        """
        page = self._page
        starts = [block.first for block in sentences]
        before = [0, *accumulate(block.chars for block in sentences)]
        middle = bisect_left(before, before[-1] / 2) - 1
        for one in self._ancestors(sentences[max(0, middle)].element):
            first, last = (bisect_left(starts, place[one]) for place in (page.first_text, page.last_text))
            if before[last] - before[first] >= share * before[-1]:
                yield one, before[last] - before[first]

    def _outer(self, element: int) -> int:
        """Return the element around another; -1 around the outermost."""
        parent = self._page.parents[element]
        return self._around[parent] if parent >= 0 else -1

    def _ancestors(self, element: int) -> Iterator[int]:
        while element >= 0:
            yield element
            element = self._outer(element)

    def _inner(self, element: int, blocks: list[_Block]) -> list[_Block]:
        end = self._page.ends[element]
        return [block for block in blocks if element <= block.element < end]

    def _child(self, block: _Block, parent: int) -> int:
        """Return the element in `parent` that holds a block; `parent` itself if the block stands directly in it."""
        element = block.element
        while element != parent and (outer := self._outer(element)) != parent:
            element = outer
        return element

    def _densest(self, sentences: list[_Block]) -> int:
        """Return the element with the most sentences near it, weakened by its share of links."""
        scores: dict[int, float] = defaultdict(float)
        for block in sentences:
            own = block.chars - block.link_chars
            for step, element in enumerate(islice(self._ancestors(block.element), _STEPS + 1)):
                scores[element] += own * _STEP ** max(0, step - 1)
        page = self._page
        return max(scores, key=lambda one: scores[one] * (1 - page.link_chars(one) / max(1, page.chars(one))))

    def _first_article(self, best: int, sentences: list[_Block]) -> int | None:
        """Return the first of several articles below each other, each with a heading of its own; None if there is one.

        Pages that load the next article below the requested one hold both.
        """
        for one in self._ancestors(best):
            outer = self._outer(one)
            if outer < 0 or not self._is_headed(one):
                continue
            beside = dict.fromkeys(self._child(block, outer) for block in self._inner(outer, sentences))
            least = _LEAST_ARTICLE * _chars(self._inner(one, sentences))
            articles = [
                other
                for other in beside
                if self._page.tags[other] == self._page.tags[one]
                and self._is_headed(other)
                and _chars(self._inner(other, sentences)) >= least
            ]
            if len(articles) > 1:
                return articles[0]
        return None

    def _is_headed(self, element: int) -> bool:
        """Whether an element begins an article: a heading of the first rank stands in it, not as a link."""
        page = self._page
        inside = page.tags[element : page.ends[element]]
        rank = "h1" if "h1" in inside else "h2"
        if rank not in inside or (rank == "h2" and page.tags[element] != "article"):
            return False
        heading = element + inside.index(rank)
        return page.link_chars(heading) == 0 and page.chars(heading) >= _HEADLINE_CHARS

    def _widen(self, best: int, sentences: list[_Block]) -> int:
        """Return the element around the best one that also holds the other sections of its text."""
        joined = best
        inside = _chars(self._inner(best, sentences))
        while (outer := self._outer(best)) >= 0:
            chars: dict[int, int] = defaultdict(int)
            for block in self._inner(outer, sentences):
                chars[self._child(block, outer)] += block.chars
            chars.pop(best, None)
            beside = sum(count for child, count in chars.items() if self._is_section(child, best))
            if beside >= _NEIGHBOUR * inside:
                joined = outer
                inside += beside
            best = outer
        return joined

    def _is_section(self, element: int, best: int) -> bool:
        """Return True if a sibling holds text of the same kind: alike, a paragraph, or under a heading."""
        page = self._page
        tag = page.tags[element]
        names, other = set(page.names[element]), set(page.names[best])
        alike = tag == page.tags[best] and 2 * len(names & other) >= len(names | other)
        return alike or tag in _PARAGRAPHS or self._begins_with_heading(element)

    def _begins_with_heading(self, element: int) -> bool:
        page = self._page
        inside = page.tags[element : min(page.ends[element], element + _FIRST_ELEMENTS)]
        heading = next((element + n for n, tag in enumerate(inside) if tag in _HEADINGS), None)
        return heading is not None and page.link_chars(heading) == 0 and page.chars(heading) > 0


def _has_letters(text: str) -> bool:
    """Return True if half of the characters of the shortest sentence are letters; most texts begin with as many."""
    return any(2 * sum(map(str.isalpha, part)) >= _SENTENCE_CHARS for part in (text[:_AROUND], text))


def _headline_share(blocks: list[_Block], chosen: set[int]) -> float:
    """Return the share of the gaps between kept sentences with a headline that is a link."""
    gaps = headed = 0
    inside = link = False
    for block in blocks:
        if block.first in chosen and block.sentence:
            gaps += inside
            headed += inside and link
            inside, link = True, False
        elif block.chars >= _HEADLINE_CHARS and block.links:
            link = True
    return headed / gaps if gaps else 0.0


def _chars(blocks: Iterable[_Block]) -> int:
    return sum(block.chars for block in blocks)


def _main_range(blocks: list[_Block], said: set[int]) -> list[_Block]:
    """Return the blocks from the first one in `said` to the last, and two on either side; none with a day in front."""
    places = [place for place, block in enumerate(blocks) if block.first in said]
    if not places:
        return blocks
    first, last = places[0], places[-1] + 1
    before = [one for one in blocks[max(0, first - _AROUND_TEXT) : first] if not _DAY.search(one.text)]
    return [*before, *blocks[first : last + _AROUND_TEXT]]
