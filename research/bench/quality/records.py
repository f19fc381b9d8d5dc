"""How right the records of threads are read: how many, by whom, when, and what they say.

Every page that ``research/bench/quality/records.yaml`` marks and that is there: those of the shared data (``pages-2024`` and, for pages
of other public repositories, ``threads``), and the samples of ``research/samples/threads``. A page belongs to the tuning
or to the held-out part by a hash of its name. What was held out once, measured and then looked at (`seen`) is a second
tuning part, and so is that half of later pages that was looked at (`third`). What was marked after a change to the
reading of threads (`fresh`), the half of later pages that was not looked at (`unseen`), and the samples, written for
this project, are parts of their own. Pages of known forum programs (``wcxb-*.html`` of ``threads``) are marked by
`research/bench/quality/engines.yaml`, how each program names author, day and text; those of one half by hash were looked at
(`programs`), those of the other not (`programs_unseen`). Pages that other public projects keep for their tests are
divided likewise (`public`, `public_unseen`); some are shop pages without a review, which are right only if none is
read. Peer: trafilatura with comments, for the text.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from statistics import fmean
from typing import Any

import yaml
from selectolax.lexbor import LexborHTMLParser

from research.tools.pagetruth import NO_SHARED, SAMPLES
from splitter.catalog.rules import PageRules
from splitter.spans import CHINA
from tasks.domain.failures import FetchError
from tasks.domain.pages import Review
from tasks.reading.dates import read_date
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.markup import parse_whole
from tasks.reading.records import Records

_MARKS = Path(__file__).with_name("records.yaml")
_ENGINES = Path(__file__).with_name("engines.yaml")
_NOW = datetime(2024, 6, 1, tzinfo=UTC)
_LATER = datetime(2026, 6, 1, tzinfo=UTC)
_PROGRAM_PAGES = "wcxb-*.html"
_FOLDERS = ("pages-2024", "threads")
_PARTS = {"seen": "second", "fresh": "fresh", "third": "third", "unseen": "unseen"}
_GRAM = 4
_NEAR = 1


@dataclass(frozen=True, slots=True)
class Marked:
    """A page and what a person marked on it.

    Attributes:
        part: "tuning", "held_out", "second", "fresh", "third", "unseen", "samples", or "programs" or "public", with
            "_unseen" behind for the half not looked at.
        records: author and day (ISO; empty: the page has none) of each, in the order of the page.
        content: the marked text of all; empty where it is not known.
        now: the time the page is read as of.
    """

    file: str
    part: str
    raw: bytes
    url: str
    records: tuple[tuple[str, str], ...]
    content: str
    now: datetime = _NOW


@dataclass(frozen=True, slots=True)
class Score:
    """How near a page was read to its marks.

    Attributes:
        found: how many records were read.
        signed: share of the marked records with author and day right; `authors`, `days`: with that alone.
        text: F1 of the multisets of 4-grams; `peer`: trafilatura's; None where the text is not known.
    """

    file: str
    part: str
    marked: int
    found: int
    signed: float
    authors: float
    days: float
    text: float | None
    peer: float | None

    @property
    def near(self) -> bool:
        """Whether the count is right within one; of a page without records, whether none is read."""
        return abs(self.found - self.marked) <= _NEAR if self.marked else not self.found


def part_of(file: str) -> str:
    """Which part a page belongs to, by a hash of its name."""
    return "held_out" if sha256(file.encode()).digest()[-1] % 2 else "tuning"


def marked_pages(shared: Path) -> list[Marked]:
    """The marked pages that are there."""
    marks = yaml.safe_load(_MARKS.read_text("utf-8"))
    found = [_sample(file, mark) for file, mark in marks["samples"].items()]
    for file, mark in marks["pages"].items():
        folder = next((shared / name for name in _FOLDERS if (shared / name / file).is_file()), None)
        if folder is not None:
            expected = folder / "expected" / Path(file).with_suffix(".json")
            content = json.loads(expected.read_text("utf-8"))["content"] if expected.is_file() else ""
            page = _marked(file, _part(file, mark), folder / file, mark, content)
            found.append(replace(page, now=_LATER) if mark.get("public") else page)
    return [*found, *_program_pages(shared / "threads")]


def _part(file: str, mark: dict[str, Any]) -> str:
    if mark.get("public"):
        return "public_unseen" if part_of(file) == "held_out" else "public"
    return next((part for key, part in _PARTS.items() if mark.get(key)), part_of(file))


def _program_pages(folder: Path) -> Iterator[Marked]:
    """The pages of forum programs that are there, those of no known program left out."""
    engines = yaml.safe_load(_ENGINES.read_text("utf-8"))
    for path in sorted(folder.glob(_PROGRAM_PAGES)):
        raw = path.read_bytes()
        try:
            tree = parse_whole(decode(raw, {}).text)
        except FetchError:
            continue
        found = next(filter(None, (_by_program(tree, rules) for rules in engines.values())), [])
        if found:
            yield Marked(
                path.name,
                "programs_unseen" if part_of(path.stem) == "held_out" else "programs",
                raw,
                json.loads((folder / "expected" / f"{path.stem}.json").read_text("utf-8"))["url"],
                tuple((author, day) for author, day, _ in found),
                "\n".join(body for *_, body in found),
                _LATER,
            )


def _by_program(tree: LexborHTMLParser, rules: dict[str, str]) -> list[tuple[str, str, str]]:
    """Author, day and text of each record as a program marks them; those without a text left out."""
    records = Records(tree, rules["review"])
    columns = (records.values(rules[name]) for name in ("author", "date", "body"))
    return [
        (author, date.date().isoformat() if date else "", body)
        for author, said, body in zip(*columns, strict=True)
        if body
        for date in (read_date(said, _LATER),)
    ]


def _sample(file: str, mark: dict[str, Any]) -> Marked:
    texts = "\n".join(record[2] for record in mark["records"])
    return _marked(file, "samples", SAMPLES / "threads" / file, mark, texts)


def _marked(file: str, part: str, path: Path, mark: dict[str, Any], content: str) -> Marked:
    records = tuple((str(author), str(day)) for author, day, *_ in mark["records"])
    return Marked(file, part, path.read_bytes(), mark["url"], records, content)


def score_of(page: Marked) -> Score:
    """Read a page and score it."""
    text = decode(page.raw, {}).text
    try:
        reviews = read_page(text, page.url, PageRules(main_text=True), now=page.now).reviews
    except FetchError:
        reviews = ()
    known = bool(page.content)
    return Score(
        file=page.file,
        part=page.part,
        marked=len(page.records),
        found=len(reviews),
        signed=_share(page.records, [(review.author, day) for review in reviews for day in _days(review)]),
        authors=_share([(author,) for author, _ in page.records], [(review.author,) for review in reviews]),
        days=_share([(day,) for _, day in page.records], [(day,) for one in reviews for day in _days(one)]),
        text=gram_f1("\n".join(review.body for review in reviews), page.content) if known else None,
        peer=gram_f1(_trafilatura(text), page.content) if known else None,
    )


def _days(review: Review) -> set[str]:
    """The day of a review, where the page's clock stands and in China; an empty one where it has none."""
    if review.date is None:
        return {""}
    days: set[date] = {review.date.date(), review.date.astimezone(CHINA).date()}
    return {day.isoformat() for day in days}


def _share(marked: Iterable[tuple[str, ...]], found: Iterable[tuple[str, ...]]) -> float:
    due = Counter(marked)
    return (due & Counter(found)).total() / max(1, due.total())


def gram_f1(text: str, truth: str) -> float:
    """F1 of the multisets of 4-grams of characters, blanks apart, lower case."""
    got, due = _grams(text), _grams(truth)
    return 2 * (got & due).total() / max(1, got.total() + due.total())


def _grams(text: str) -> Counter[str]:
    text = "".join(text.split()).lower()
    return Counter(text[place : place + _GRAM] for place in range(len(text) - _GRAM + 1))


def _trafilatura(text: str) -> str:
    # Imported here: it takes half a second.
    from trafilatura import bare_extraction

    document = bare_extraction(text, fast=True, include_comments=True)
    if document is None or isinstance(document, dict):
        return ""
    return f"{document.text or ''}\n{document.comments or ''}"


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score every marked page; with `smallest` the samples.

    Returns:
        ``ratios``: of the unseen part, of the held-out one, or of the samples, the first that is there, the share of
        pages whose count is right within one, the share of records with author and day right, F1 of the text, and that
        by trafilatura's;
        ``figures``: the same of every part, and a line for every page.
    """
    scores = [score_of(page) for page in marked_pages(NO_SHARED if smallest else shared)]
    parts: dict[str, list[Score]] = {}
    for score in scores:
        parts.setdefault(score.part, []).append(score)
    figures: dict[str, Any] = {}
    for part, members in parts.items():
        figures.update({f"{part}.{name}": value for name, value in _means(members).items()})
    shown = next((part for part in ("unseen", "held_out") if part in parts), "samples")
    ratios = {name: figures[f"{shown}.{name}"] for name in ("count_near", "signed", "text_f1")}
    ratios["text_f1_vs_trafilatura"] = round(ratios["text_f1"] / figures[f"{shown}.trafilatura_f1"], 3)
    figures["part"] = shown
    figures.update({score.file: _line(score) for score in scores})
    return {"bench": "records", "ratios": ratios, "figures": figures}


def _means(scores: list[Score]) -> dict[str, float]:
    records = sum(score.marked for score in scores)

    def of_records(values: Iterable[float]) -> float:
        right = sum(value * score.marked for value, score in zip(values, scores, strict=True))
        return round(right / max(1, records), 3)

    texts = [
        (score.text, score.peer) for score in scores if score.text is not None and score.peer is not None
    ]
    return {
        "pages": len(scores),
        "records": records,
        "count_near": round(fmean(score.near for score in scores), 3),
        "signed": of_records(score.signed for score in scores),
        "authors": of_records(score.authors for score in scores),
        "days": of_records(score.days for score in scores),
        "text_f1": round(fmean(text for text, _ in texts), 3),
        "trafilatura_f1": round(fmean(peer for _, peer in texts), 3),
    }


def _line(score: Score) -> str:
    text = f", text {score.text:.3f} (trafilatura {score.peer:.3f})" if score.text is not None else ""
    return f"{score.found} of {score.marked} records, {score.signed:.0%} signed right{text}"
