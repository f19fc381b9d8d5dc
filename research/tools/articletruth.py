"""Articles whose author, title and day people marked, and how many of each are read right, beside trafilatura.

Marks: ``research/bench/quality/authors.yaml`` (Chinese pages, authors only), ``by-hand.json`` of ``pages-2024``, and trafilatura's own
``evaldata.json`` (mostly German and English) in the folder ``articles`` of the shared data. A page belongs to the
tuning or to the held-out part by a hash of its name, as `research.bench.quality.records` has it; ``by-hand.json`` is all for tuning.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import yaml

from research.bench.quality.records import part_of
from tasks.domain.failures import FetchError
from tasks.reading.dates import read_date
from tasks.reading.decode import decode
from tasks.reading.maintext import main_text

_MARKS = Path(__file__).parents[1] / "bench" / "quality" / "authors.yaml"
_FOLDERS = ("pages", "pages-2024", "articles")
_NOW = datetime(2024, 6, 1, tzinfo=UTC)
_WORD = re.compile(r"\w+")
_HAN = re.compile(r"[\u4e00-\u9fff]")

Read = tuple[str, str, str]
"""Author, title and day (ISO) of a page; empty where there is none."""


@dataclass(frozen=True, slots=True)
class Article:
    """A saved article and its marks.

    Attributes:
        part: "zh" or "other", with "tuning" or "held_out".
        authors: any is right; empty: the page names none.
        title, day: empty where they are not marked.
    """

    path: Path
    part: str
    authors: tuple[str, ...]
    title: str
    day: str


def marked_articles(shared: Path) -> Iterator[Article]:
    """Those whose page is there."""
    for file, authors in yaml.safe_load(_MARKS.read_text("utf-8")).items():
        path = next((shared / name / file for name in _FOLDERS if (shared / name / file).is_file()), None)
        if path is not None:
            yield Article(path, f"zh.{part_of(file)}", tuple(authors), "", "")
    by_hand = shared / "pages-2024" / "by-hand.json"
    for file, mark in json.loads(by_hand.read_text("utf-8")).items() if by_hand.is_file() else ():
        yield Article(
            by_hand.with_name(file), "zh.tuning", tuple(mark["authors"]), mark["title"], mark["date"]
        )
    marks: Path = shared / "articles" / "evaldata.json"
    for mark in json.loads(marks.read_text("utf-8")).values() if marks.is_file() else ():
        page = marks.with_name(mark["file"])
        if "author" in mark and page.is_file():
            said = mark["author"] or ""
            authors = said if isinstance(said, list) else said.split(";")
            named = tuple(name for name in authors if name.strip())
            yield Article(page, f"other.{part_of(page.name)}", named, mark["title"] or "", mark["date"] or "")


def read_right(
    shared: Path, peer: Callable[[str], Read], *, of: Iterable[str] = ("held_out",)
) -> dict[str, float]:
    """Share of authors, titles and days read right, ours and a peer's, by part, with how many there are."""
    right: dict[str, list[bool]] = defaultdict(list)
    for article in marked_articles(shared):
        if article.part.partition(".")[2] not in of:
            continue
        text = decode(article.path.read_bytes(), {}).text
        for who, reader in (("ours", _ours), ("peer", peer)):
            author, title, day = reader(text)
            named = f"{article.part}.author_{'named' if article.authors else 'none'}"
            verdict = _is_author(author, article.authors)
            right[f"{article.part}.author.{who}"].append(verdict)
            right[f"{named}.{who}"].append(verdict)
            if article.title:
                right[f"{article.part}.title.{who}"].append(_words(title) == _words(article.title))
            if article.day:
                right[f"{article.part}.day.{who}"].append(day == article.day)
    figures = {name: round(sum(values) / len(values), 3) for name, values in sorted(right.items())}
    counts = {f"{name[:-5]}.of": len(values) for name, values in right.items() if name.endswith(".ours")}
    return {**figures, **counts}


def _ours(text: str) -> Read:
    try:
        found = main_text(text, "", lambda _text, _url: "")
    except FetchError:
        return "", "", ""
    date = read_date(found.date_text, _NOW)
    return found.author, found.metadata.title, date.date().isoformat() if date else ""


def _is_author(found: str, marked: tuple[str, ...]) -> bool:
    if not marked or not found:
        return not marked and not found
    if _HAN.search("".join(marked)):
        return any(name in found or found in name for name in marked)
    return set(_words(found)) <= set(_words(" ".join(marked)))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
