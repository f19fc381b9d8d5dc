"""Saved pages and their known truth, and F1 measures of a text against it.

The pages are those of the shared data (``pages``, ``pages-2024``, ``wcxb``), or, if it is not there, the samples of
``research/samples``. Other threads that people marked are read if they are in the folder ``threads`` of the shared data
under the names that records.yaml gives them.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from selectolax.lexbor import LexborHTMLParser

from tasks.reading.dates import read_date
from tasks.reading.decode import decode
from tasks.reading.markup import parse_whole
from tasks.reading.records import Records

SAMPLES = Path(__file__).parents[1] / "samples"
"""Small data with known answers, written for this project."""

NO_SHARED = Path("/nonexistent")
"""A folder without shared data: a bench reads the samples."""

_MARKS = Path(__file__).parents[1] / "bench" / "quality"
# gb2312 and gbk are read by the table that browsers use for them, which holds both.
_TABLES = {"gb2312": "gb18030", "gbk": "gb18030"}
_HAN = r"\u3400-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[{_HAN}]|[^\W{_HAN}_]+")
_WORD = re.compile(r"\w+")
_GRAM = 4
_KINDS = {
    "article": "article.zh",
    "forum": "thread.zh",
    "forum-list": "list",
    "portal": "home",
    "snippet": "home",
    "serp": "results",
    "weibo-search": "microblog",
    "weibo-comments": "microblog",
}
_ENGLISH_KINDS = {"article": "article.en", "forum": "thread.en", "product": "shop"}
_NOW, _LATER = datetime(2024, 6, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
"""Reading times: of Chinese pages, and of pages saved later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A saved page and its known truth.

    Attributes:
        kind: what it is, with its language if there are pages in both (`article.zh`).
        now: time as of which it is read.
        site: name of the site whose rules read it; empty if it is read without rules.
        text: its bytes in their real charset; empty if that is not known.
        title: expected title; of a feed, the title of its channel; empty if unknown.
        page_title: content of its `title` element; empty if unknown.
        body: expected text; empty if unknown, or if only fragments are known.
        fragments: texts that must be in the body, and texts that must not.
        authors: any of these names is right; empty if the page names no author, None if unknown.
        day: ISO date of the first text; empty if unknown.
        posts: author and day (ISO) of each post, an empty text if the page has none; empty if unknown.
        hits: expected hits or posts of a search-result page; None for other pages.
    """

    id: str
    kind: str
    raw: bytes
    url: str
    now: datetime = _NOW
    site: str = ""
    text: str = ""
    title: str = ""
    page_title: str = ""
    body: str = ""
    fragments: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    authors: tuple[str, ...] | None = None
    day: str = ""
    posts: tuple[tuple[str, str], ...] = ()
    hits: tuple[dict[str, Any], ...] | None = None


def all_pages(shared: Path) -> list[Page]:
    """Return every page of the shared data, or the samples if it is not there."""
    if not (shared / "pages").is_dir():
        return [*saved_pages(SAMPLES / "pages"), *_threads(SAMPLES / "threads", "samples", "thread.zh")]
    folders = (saved_pages(shared / name) for name in ("pages", "pages-2024"))
    others = _threads(shared / "threads", "pages", "thread.more")
    return [*chain.from_iterable(folders), *_wcxb(shared / "wcxb"), *others]


def saved_pages(folder: Path) -> Iterator[Page]:
    """Yield the pages of a folder's index.csv, with the marks that people made of their authors and posts."""
    by_hand = folder / "by-hand.json"
    marks = json.loads(by_hand.read_text("utf-8")) if by_hand.is_file() else {}
    for row in _rows(folder):
        mark = marks.get(row["file"], {})
        raw = (folder / row["file"]).read_bytes()
        expected = _expected(folder, row["expected_body_file"])
        authors = mark.get("authors", _marks("authors.yaml").get(row["file"]))
        date = read_date(row.get("expected_date") or mark.get("date", ""), _NOW)
        charset = row.get("real_charset", "")
        channel = row.get("html_title", "") if row["kind"] == "feed" else ""
        yield Page(
            id=row["file"],
            kind=_KINDS.get(row["kind"], row["kind"]),
            raw=raw,
            url=row.get("url") or f"http://{row.get('site') or 'example.com'}/page.html",
            site=row.get("site", ""),
            text=raw.decode(_TABLES.get(charset, charset)).removeprefix("\ufeff") if charset else "",
            title=channel or row.get("expected_title") or mark.get("title", ""),
            page_title=row.get("html_title", ""),
            body=expected.get("content", ""),
            fragments=(tuple(expected.get("must_contain", ())), tuple(expected.get("must_not_contain", ()))),
            authors=None if authors is None else tuple(authors),
            day=date.date().isoformat() if date else "",
            posts=_posts(_marks("records.yaml")["pages"].get(row["file"])),
            hits=tuple(expected["results"]) if "results" in expected else None,
        )


def _rows(folder: Path) -> Iterator[dict[str, str]]:
    if (index := folder / "index.csv").is_file():
        yield from csv.DictReader(index.read_text("utf-8").splitlines())


def _expected(folder: Path, name: str) -> dict[str, Any]:
    """Return what is expected of a page: JSON, or its text alone, as HTML or plain."""
    source = (folder / name).read_text("utf-8") if name else "{}"
    body = LexborHTMLParser(source).body if name.endswith(".html") else None
    plain = {"content": body.text(separator=" ") if body else source}
    found: dict[str, Any] = plain if name.endswith((".html", ".txt")) else json.loads(source)
    return found


@cache
def _marks(name: str) -> dict[str, Any]:
    marks: dict[str, Any] = yaml.load((_MARKS / name).read_text("utf-8"), yaml.CSafeLoader)
    return marks


def _posts(mark: Mapping[str, Any] | None) -> tuple[tuple[str, str], ...]:
    return tuple((str(author), str(day)) for author, day, *_ in mark["records"]) if mark else ()


def _threads(folder: Path, part: str, kind: str) -> Iterator[Page]:
    """Yield the marked threads of records.yaml that lie in the folder."""
    for file, mark in _marks("records.yaml")[part].items():
        path, expected = folder / file, f"expected/{Path(file).stem}.json"
        if path.is_file():
            content = _expected(folder, expected if (folder / expected).is_file() else "").get("content", "")
            yield Page(
                id=file,
                kind=kind if mark["records"] else "shop.more",
                raw=path.read_bytes(),
                url=mark["url"],
                now=_LATER if mark.get("public") else _NOW,
                body=content or "\n".join(text for _, _, *texts in mark["records"] for text in texts),
                posts=_posts(mark),
            )


def _wcxb(folder: Path) -> Iterator[Page]:
    """Yield the English pages; the posts of a thread are known if it is of a forum program in engines.yaml."""
    if not folder.is_dir():
        return
    contents = json.loads(gzip.decompress((folder / "content.json.gz").read_bytes()))
    for row in _rows(folder):
        raw = gzip.decompress((folder / "html" / f"{row['id']}.html.gz").read_bytes())
        yield Page(
            id=f"wcxb-{row['id']}",
            kind=_ENGLISH_KINDS[row["kind"]],
            raw=raw,
            url=row["url"],
            now=_LATER,
            title=row["title"],
            body=contents[row["id"]],
            authors=(row["author"],) if row["author"] else None,
            day=row["day"],
            posts=_program_posts(raw) if row["kind"] == "forum" else (),
        )


def _program_posts(raw: bytes) -> tuple[tuple[str, str], ...]:
    """Return author and day of each post that has a text, by the first program whose rules match the page."""
    tree = parse_whole(decode(raw, {}).text)
    for rules in _marks("engines.yaml").values():
        records = Records(tree, rules["review"])
        columns = (records.values(rules[name]) for name in ("author", "date", "body"))
        posts = [
            (author, read_date(date, _LATER)) for author, date, body in zip(*columns, strict=True) if body
        ]
        if posts:
            return tuple((author, date.date().isoformat() if date else "") for author, date in posts)
    return ()


def _f1(got: Iterable[str], expected: Iterable[str]) -> float:
    both = Counter(got), Counter(expected)
    total = both[0].total() + both[1].total()
    return 2 * (both[0] & both[1]).total() / total if total else 1.0


def token_f1(text: str, truth: str) -> float:
    """F1 of the multisets of tokens: one a Chinese character, one a word or number of other scripts, lower case.

    Characters, not words of a segmenter: two segmentations of one text differ by its surroundings, and the score would
    be of the segmenter as well.
    """
    return _f1(_TOKEN.findall(text.lower()), _TOKEN.findall(truth.lower()))


def gram_f1(text: str, truth: str) -> float:
    """F1 of the multisets of 4-grams of letters and digits, lower case; blanks and punctuation are left out."""
    return _f1(_grams(text), _grams(truth))


def _grams(text: str) -> Iterator[str]:
    text = "".join(words(text))
    return (text[place : place + _GRAM] for place in range(len(text) - _GRAM + 1))


def word_f1(text: str, truth: str) -> float:
    """F1 of the multisets of words, lower case, as WCXB scores a page."""
    return _f1(words(text), words(truth))


def words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def fragment_f1(text: str, must: tuple[str, ...], must_not: tuple[str, ...]) -> float:
    """F1 over fragments, without blanks: right are those found that must be there, wrong those that must not."""
    squeezed = "".join(text.split())
    right, wrong = (sum("".join(one.split()) in squeezed for one in those) for those in (must, must_not))
    return 2 * right / (right + wrong + len(must))
