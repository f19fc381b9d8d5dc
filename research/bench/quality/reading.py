"""How right pages of every kind are read, with a floor under each figure, and what reading a page costs.

The bench decodes and reads every saved page (see `research.tools.pagetruth`) as a node does, and scores the records that a
node would store: all together, and the first alone. A page without a stored record scores 0. Lists and home pages hold no
review, so nothing may be stored from them, and from a shop's page only reviews with a rating. Result pages and posts of
Weibo are read by the rules in reading.yaml. Figures are means over the pages of a kind with a known truth.

The floors are in reading-floors.yaml, one set for the shared data and one for the samples.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from importlib import import_module
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import Any

import click
import yaml

from research.tools import pagetruth
from research.tools.pagetruth import Page, gram_f1, token_f1, word_f1
from splitter.catalog.load import load_catalog
from splitter.errors import InputError
from splitter.spans import CHINA
from tasks.domain.failures import FetchError
from tasks.domain.pages import PageRead, ResultPage, Review
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.results import read_results

FLOORS = Path(__file__).with_name("reading-floors.yaml")
_CATALOG = load_catalog(Path(__file__).with_name("reading.yaml"))
_PER_POST = frozenset({"authors", "days", "signed"})
"""Measures whose mean is over posts, not over pages."""
_ERROR = 0.5
"""F1 below which a page is an error."""
_WITHOUT_FLOOR = ("errors_in_least_confident_tenth", ".of", ".wrong", ".storing", ".ms_mean", ".ms_median")
_COLUMNS = {
    "pages": ("pages",),
    "stored": ("storing", "stored"),
    "wrong": ("wrong",),
    "F1": ("f1", "fragments"),
    "first": ("first",),
    "title": ("title",),
    "author": ("authors", "author"),
    "day": ("days", "day"),
    "count": ("count",),
    "CPU ms": ("ms_mean", "ms"),
}
"""Columns of the tables; a cell shows the first of these figures that is known."""
_PAGE_COLUMNS = ("F1", "first", "stored", "author", "day", "count", "CPU ms")


@dataclass(frozen=True, slots=True)
class Result:
    """The scores of one page.

    Attributes:
        stored: number of records.
        posts: number of marked posts.
        ms: CPU time of decoding and reading, in milliseconds.
        confidence: as the reader states it; 0 if it read nothing.
        marks: how right it was read, 0 to 1 by measure; a measure without a known truth is left out. `right`: something
            is stored from a page with a text, and nothing wrong from another. `f1`, `first`: text of all records, of the
            first. `title`, `author`, `day`: of the first record. `count`: the number of records is right within one; of
            a result page, F1 of the addresses. `authors`, `days`, `signed`: share of posts with author, day, both right.
    """

    id: str
    kind: str
    stored: int
    posts: int
    ms: float
    confidence: float
    marks: Mapping[str, float]


def as_product(text: str, page: Page) -> PageRead:
    """Read a page as a node does."""
    site = page.site if page.site in _CATALOG.sites else "baidu.com"
    return read_page(text, page.url, _CATALOG.rules_of(site), now=page.now)


def _as_trafilatura(text: str, page: Page) -> PageRead:  # noqa: ARG001
    """Read a page into one review as trafilatura does, with comments as part of the text."""
    document = import_module("trafilatura").bare_extraction(text, fast=True, with_metadata=True)
    if document is None or not document.text:
        return PageRead("", ())
    title, author, body = (
        document.title or "",
        document.author or "",
        _join((document.text, document.comments or "")),
    )
    day = datetime.fromisoformat(document.date).replace(tzinfo=UTC) if document.date else None
    return PageRead(title, (Review("#0", title, body, author, "", day, None),))


def score(page: Page, read: Callable[[str, Page], PageRead] = as_product) -> Result:
    """Read a page and score it."""
    begin_s = time.process_time()
    text, found, listed = "", PageRead("", ()), ResultPage(None, (), empty=False, more=False)
    try:
        text = decode(page.raw, {}).text
        if page.kind == "results":
            engine = _CATALOG.engine_of(page.site)
            listed = read_results(text, engine.url, engine.results)
        else:
            found = read(text, page)
    except FetchError:
        pass  # nothing is stored
    ms = 1000 * (time.process_time() - begin_s)
    marks = _result_marks(page, listed) if page.kind == "results" else _page_marks(page, found)
    if page.text:
        marks["encoding"] = float(text == page.text)
    confidence = found.confidence if found.title or found.reviews or found.no_review else 0.0
    stored = len(listed.hits) + len(found.reviews)
    return Result(page.id, page.kind, stored, len(page.posts), ms, confidence, marks)


def _result_marks(page: Page, read: ResultPage) -> dict[str, float]:
    expected = [hit for hit in page.hits or () if hit["title"]]
    if not expected:
        return {"right": float(read.empty)}
    urls = {hit["href"] for hit in expected}
    common = len(urls & {hit.url for hit in read.hits})
    marks = {
        "right": float(bool(read.hits)),
        "title": token_f1(_join(hit.title for hit in read.hits), _join(hit["title"] for hit in expected)),
        "count": 2 * common / (len(urls) + len(read.hits)),
    }
    if abstracts := [hit["abstract"] for hit in expected if "abstract" in hit]:
        marks["f1"] = token_f1(_join(hit.abstract for hit in read.hits), _join(abstracts))
    return marks


def _page_marks(page: Page, read: PageRead) -> dict[str, float]:
    if page.kind in ("list", "home"):
        return {"right": float(not read.reviews)}
    if page.kind.startswith("shop"):
        return {"right": float(all(review.rating is not None for review in read.reviews))}
    return {
        "right": float(bool(read.reviews)),
        **_texts(page, read),
        **_signature(page, read),
        **_posts(page, read),
    }


def _join(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def _texts(page: Page, read: PageRead) -> dict[str, float]:
    first = read.reviews[0].body if read.reviews else ""
    if page.hits is not None:
        by_key = {review.key: review.body for review in read.reviews}
        return {"f1": fmean(token_f1(by_key.get(post["mid"], ""), post["text"]) for post in page.hits)}
    if page.fragments[0]:
        return {"fragments": pagetruth.fragment_f1(first, *page.fragments)}
    if not page.body:
        return {}
    f1 = word_f1 if page.kind.endswith(".en") else gram_f1
    whole = {"f1": f1(_join(review.body for review in read.reviews), page.body)}
    return whole | {"first": f1(first, page.body)} if page.kind.startswith("article") else whole


def _signature(page: Page, read: PageRead) -> dict[str, float]:
    """Score title, author and day of the first record; all are wrong if nothing is stored."""
    first = read.reviews[0] if read.reviews else None
    marks = {}
    if page.title:
        own = first.title if first and page.kind != "feed" else ""
        marks["title"] = token_f1(own or read.title, page.title)
    if page.authors is not None:
        marks["author"] = float(first is not None and is_author(first.author, page.authors))
    if page.day:
        marks["day"] = float(first is not None and page.day in _days(first))
    return marks


def is_author(found: str, marked: tuple[str, ...]) -> bool:
    """Return True if the author is one of those marked; if none is marked, if none was found."""
    if not marked or not found:
        return not marked and not found
    if not "".join(marked).isascii():
        return any(name in found or found in name for name in marked)
    return set(pagetruth.words(found)) <= set(pagetruth.words(" ".join(marked)))


def _days(review: Review) -> set[str]:
    """Return the day of a review by the clock of the page and by that of China; an empty one if it has none."""
    if review.date is None:
        return {""}
    days: set[date] = {review.date.date(), review.date.astimezone(CHINA).date()}
    return {day.isoformat() for day in days}


def _posts(page: Page, read: PageRead) -> dict[str, float]:
    if not page.posts:
        return {}
    found = [(review.author, day) for review in read.reviews for day in _days(review)]
    return {
        "count": float(abs(len(read.reviews) - len(page.posts)) <= 1),
        "authors": _share((author for author, _ in page.posts), (review.author for review in read.reviews)),
        "days": _share((day for _, day in page.posts), (day for _, day in found)),
        "signed": _share(page.posts, found),
    }


def _share(marked: Iterable[object], found: Iterable[object]) -> float:
    due = Counter(marked)
    return (due & Counter(found)).total() / due.total()


def figures_of(results: Iterable[Result]) -> dict[str, float]:
    """Return the figures of every kind of page."""
    kinds: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        kinds[result.kind].append(result)
    figures = {f"{kind}.{name}": value for kind in sorted(kinds) for name, value in _summarize(kinds[kind])}
    return {**figures, "errors_in_least_confident_tenth": _errors_in_tenth(list(chain(*kinds.values())))}


def _errors_in_tenth(results: list[Result]) -> float:
    """Return the share of the errors that the tenth of the pages with the least confidence holds."""
    read = [result for result in results if result.kind not in ("results", "microblog", "feed")]
    wrong = [result for result in read if not result.marks["right"] or result.marks.get("f1", 1.0) < _ERROR]
    tenth = sorted(read, key=lambda result: result.confidence)[: len(read) // 10]
    return round(sum(result in wrong for result in tenth) / max(1, len(wrong)), 3)


def _summarize(results: list[Result]) -> Iterator[tuple[str, float]]:
    yield "pages", len(results)
    yield "marks", sum(len(result.marks) for result in results)
    for name in sorted({name for result in results for name in result.marks}):
        known = [result for result in results if name in result.marks]
        weights = [result.posts if name in _PER_POST else 1 for result in known]
        yield name, round(fmean((result.marks[name] for result in known), weights), 3)
        if sum(weights) != len(results):
            yield f"{name}.of", sum(weights)
    yield "wrong", sum(not result.marks["right"] for result in results)
    yield "storing", sum(result.stored > 0 for result in results)
    yield "ms_mean", round(fmean(result.ms for result in results), 1)
    yield "ms_median", round(median(result.ms for result in results), 1)


def read_floors(part: str) -> dict[str, float]:
    """Return the floor of each figure, of the part "shared" or "samples"."""
    floors: dict[str, float] = yaml.safe_load(FLOORS.read_text("utf-8"))[part]
    return floors


def _write_floors(part: str, floors: Mapping[str, float]) -> None:
    text = FLOORS.read_text("utf-8")
    comment = text[: text.index("\n\n") + 2]
    FLOORS.write_text(comment + yaml.safe_dump({**yaml.safe_load(text), part: dict(floors)}), "utf-8")


def below(figures: Mapping[str, float], floors: Mapping[str, float]) -> list[str]:
    """Return a line for each figure that is below its floor, or missing."""
    missed = {name: floor for name, floor in floors.items() if figures.get(name, -1) < floor}
    return [
        f"{name} is {figures.get(name, 'missing')}; its floor is {floor}" for name, floor in missed.items()
    ]


def move_floors(
    floors: Mapping[str, float], figures: Mapping[str, float], *, raised: bool, lowered: Iterable[str]
) -> dict[str, float]:
    """Return the floors after a run.

    Args:
        raised: whether a floor rises to its figure, and a figure without a floor gets one.
        lowered: figures whose floor becomes what the run gave; it goes if the run has no such figure.

    Raises:
        InputError: a name in `lowered` has no floor.
    """
    if unknown := set(lowered) - floors.keys():
        raise InputError(f"--lower-floor: there is no floor of {', '.join(sorted(unknown))}")
    # Pages that the shared data don't hold ("more") have none.
    held = {
        name: value
        for name, value in figures.items()
        if not name.endswith(_WITHOUT_FLOOR) and ".more." not in name
    }
    higher = {name: max(value, floors.get(name, value)) for name, value in held.items()} if raised else {}
    moved = {**floors, **higher, **{name: figures.get(name) for name in lowered}}
    return {name: value for name, value in sorted(moved.items()) if value is not None}


@click.option("--pages", "by_page", is_flag=True, help="Print a line per page, the worst first.")
@click.option("--peers", is_flag=True, help="Read the pages by trafilatura as well.")
@click.option("--raise-floors", is_flag=True, help="Raise the floors to the figures of this run.")
@click.option(
    "--lower-floor",
    multiple=True,
    metavar="FIGURE",
    help="Lower its floor to the figure of this run. Repeatable.",
)
def run(
    shared: Path,
    smallest: bool,
    by_page: bool = False,
    peers: bool = False,
    raise_floors: bool = False,
    lower_floor: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Score every saved page; with `smallest` the samples.

    Returns:
        ``ratios``: F1 of the texts, and the share of pages that are rightly stored or not; ``figures``: those of every
        kind, with ``.of`` for the number of pages or posts in a mean if that is not all, trafilatura's and every
        page's result if they are asked for, and ``below``: the figures below their floors.
    """
    part = "samples" if smallest or not (shared / "pages").is_dir() else "shared"
    pages = pagetruth.all_pages(pagetruth.NO_SHARED if smallest else shared)
    results = [score(page) for page in pages]
    found = figures_of(results)
    if raise_floors or lower_floor:
        _write_floors(part, move_floors(read_floors(part), found, raised=raise_floors, lowered=lower_floor))
    figures: dict[str, Any] = {"part": part, **found}
    if peers:
        without_rules = (page for page in pages if page.kind not in ("feed", "results", "microblog"))
        figures["trafilatura"] = figures_of(score(page, _as_trafilatura) for page in without_rules)
    if by_page:
        figures["by_page"] = [asdict(result) for result in sorted(results, key=_rank)]
    figures["below"] = below(found, read_floors(part))
    ratios = {name: value for name, value in found.items() if name.endswith((".f1", ".first", ".right"))}
    return {"bench": "reading", "ratios": ratios, "figures": figures}


def _rank(result: Result) -> tuple[float, str, str]:
    return min(result.marks["right"], result.marks.get("f1", 1.0)), result.kind, result.id


def figure_lines(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the table by kind of page, and a line for each page if the figures hold them."""
    for title, part in (("kind", figures), ("trafilatura", figures.get("trafilatura", {}))):
        kinds = [name.removesuffix(".pages") for name in part if name.endswith(".pages")]
        yield from [_row(title, {}, _COLUMNS)] if kinds else ()
        for kind in kinds:
            own = {name.removeprefix(f"{kind}."): value for name, value in part.items()}
            yield _row(kind, own, _COLUMNS)
    yield "wrong: nothing is stored from a page with a text, or something that is no review from another"
    pages = figures.get("by_page", ())
    yield from [_row("kind", {}, _PAGE_COLUMNS)] if pages else ()
    yield from (f"{_row(page['kind'], page | page['marks'], _PAGE_COLUMNS)}  {page['id']}" for page in pages)


def _row(label: str, values: Mapping[str, Any], columns: Iterable[str]) -> str:
    """Return a line of a table; without values, its head."""
    cells = [next((values[name] for name in _COLUMNS[column] if name in values), "") for column in columns]
    numbers = (f"{cell:.{1 if cell > 1 else 3}f}" if isinstance(cell, float) else cell for cell in cells)
    return f"{label:12}" + "".join(f"{text:>7}" for text in (numbers if values else columns))
