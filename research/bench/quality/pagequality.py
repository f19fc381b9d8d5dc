"""How right pages are read, as a number, and what it costs: every saved page, by kind of page.

Encodings against the real ones; title and body by token F1 (see `research.tools.pagetruth`). Search-result pages are read
by the rules in pagequality.yaml (their titles and abstracts as one text each, their addresses as a set), all others as
main text; a list, a portal or a home page is right where no review is read in it. Authors, titles and days of articles
that people marked are counted by `research.tools.articletruth`, on its held-out part. Without the shared data, the pages
are the samples of ``research/samples/pages``. Peers: bs4's UnicodeDammit for the encoding, trafilatura (its fast mode) for
the main text, both on the same pages in the same run.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any

from bs4.dammit import UnicodeDammit

from research.tools.articletruth import Read, read_right
from research.tools.pagetruth import NO_SHARED, Truth, fragment_f1, page_folder, token_f1, truths
from splitter.catalog.load import load_catalog
from splitter.spans import CHINA
from tasks.domain.failures import FetchError
from tasks.domain.pages import PageRead, ResultPage
from tasks.reading.dates import read_date
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.maintext import MainText, main_text
from tasks.reading.results import read_results

_CATALOG = load_catalog(Path(__file__).with_name("pagequality.yaml"))
_LISTS = frozenset({"portal", "list", "forum-list", "snippet"})
_NOW = datetime(2022, 12, 31, tzinfo=UTC)
_UNITS = {
    "title": "_f1",
    "body": "_f1",
    "urls": "_f1",
    "date": "_right",
    "page_title": "_f1",
    "refused": "_right",
}
_PLAIN_BYTES = 17_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How near a page was read to its truth, 0 to 1; None where the truth is unknown.

    Attributes:
        urls: F1 of the set of addresses, of a search-result page.
        date: whether the day is right.
        page_title: how near the page's own title is, of a page without another truth.
        refused: of a page that is a list and holds no review, whether none is read.
    """

    file: str
    kind: str
    encoding: bool
    title: float | None = None
    body: float | None = None
    urls: float | None = None
    date: float | None = None
    page_title: float | None = None
    refused: float | None = None


def scores(folder: Path) -> list[Score]:
    """Read every page of the folder and score it."""
    return [_score(truth) for truth in truths(folder)]


def _score(truth: Truth) -> Score:
    text = decode(truth.raw, {}).text
    right = text == truth.text
    if truth.kind == "serp":
        return Score(file=truth.file, kind=truth.kind, encoding=right, **_of_results(truth, text))
    site = truth.site if truth.site in _CATALOG.sites else "baidu.com"
    url = f"http://{truth.site or 'example.com'}/"
    try:
        read = read_page(text, url, _CATALOG.rules_of(site), now=_NOW)
    except FetchError:
        read = PageRead("", ())
    if truth.records is not None:
        return Score(file=truth.file, kind=truth.kind, encoding=right, body=_of_posts(truth, read))
    if truth.kind in _LISTS:
        return Score(file=truth.file, kind=truth.kind, encoding=right, refused=float(not read.reviews))
    return Score(file=truth.file, kind=truth.kind, encoding=right, **_of_text(truth, read))


def _of_results(truth: Truth, text: str) -> dict[str, float]:
    engine = _CATALOG.engine_of(truth.site)
    try:
        page = read_results(text, engine.url, engine.results)
    except FetchError:
        page = ResultPage(None, (), empty=False, more=False)
    records = [record for record in truth.records or () if record["title"]]
    if not records:
        return dict.fromkeys(("title", "body", "urls"), float(page.empty))
    expected = {record["href"] for record in records}
    common = len(expected & {hit.url for hit in page.hits})
    near = {
        "title": token_f1(_joined(hit.title for hit in page.hits), _joined(r["title"] for r in records)),
        "urls": 2 * common / (len(expected) + len(page.hits)),
    }
    if any("abstract" in record for record in records):
        abstracts = _joined(record.get("abstract", "") for record in records)
        near["body"] = token_f1(_joined(hit.abstract for hit in page.hits), abstracts)
    return near


def _of_posts(truth: Truth, read: PageRead) -> float:
    bodies = {review.key: review.body for review in read.reviews}
    posts = truth.records or ()
    return fmean(token_f1(bodies.get(post["mid"], ""), post["text"]) for post in posts)


def _of_text(truth: Truth, read: PageRead) -> dict[str, float | None]:
    first = read.reviews[0] if read.reviews else None
    near: dict[str, float | None] = {}
    if truth.title:
        title = read.title if truth.kind == "feed" or first is None else first.title
        near["title"] = token_f1(title, truth.title)
    elif truth.page_title:
        near["page_title"] = token_f1(read.title, truth.page_title)
    near["body"] = _of_body(truth, first.body if first else "")
    due = read_date(truth.date_text, _NOW)
    if due is not None:
        found = first.date if first else None
        near["date"] = float(found is not None and found.astimezone(CHINA).date() == due.date())
    return near


def _of_body(truth: Truth, body: str) -> float | None:
    if truth.body:
        return token_f1(body, truth.body)
    return fragment_f1(body, *truth.fragments) if truth.fragments[0] else None


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(texts)


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score and time every saved page; with `smallest` the samples, once.

    Returns:
        ``ratios``: share of right encodings, title and body F1 (means over all pages with a truth), how many times as
        long UnicodeDammit takes, and trafilatura for the main text; ``figures``: scores by kind of page with their
        counts, trafilatura's scores, microseconds a page and milliseconds a main text.
    """
    shared = NO_SHARED if smallest else shared
    folder = page_folder(shared)
    every = scores(folder)
    pages = truths(folder)
    articles = [page for page in pages if page.kind == "article"]
    decoding, reading = (
        _decoding_costs(pages, 1 if smallest else 3),
        _reading_costs(articles, 1 if smallest else 2),
    )
    peer = _trafilatura_scores(articles, [page for page in pages if page.kind in _LISTS])
    signed = {f"articles.{name}": value for name, value in read_right(shared, _trafilatura).items()}
    figures: dict[str, Any] = {
        "pages": str(folder),
        **_by_kind(every),
        **decoding,
        **reading,
        **peer,
        **signed,
    }
    ratios = {
        "encodings": round(fmean(score.encoding for score in every), 3),
        "title_f1": _mean(score.title for score in every),
        "body_f1": _mean(score.body for score in every),
        "article_body_f1_vs_trafilatura": round(
            figures["article.body_f1"] / figures["trafilatura.article.body_f1"], 3
        ),
        "decode_times_faster_than_dammit": round(decoding["dammit_us_mean"] / decoding["decode_us_mean"], 1),
        "decode_times_faster_than_dammit_17kb": round(
            decoding["dammit_utf8_17kb_us_mean"] / decoding["decode_utf8_17kb_us_mean"], 1
        ),
        "main_text_times_faster_than_trafilatura": round(
            reading["trafilatura_ms_mean"] / reading["main_text_ms_mean"], 1
        ),
    }
    return {"bench": "pagequality", "ratios": ratios, "figures": figures}


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return round(fmean(known), 3) if known else 0.0


def _by_kind(every: list[Score]) -> dict[str, Any]:
    kinds: dict[str, list[Score]] = defaultdict(list)
    for score in every:
        kinds[score.kind].append(score)
    figures: dict[str, Any] = {}
    for kind, members in sorted(kinds.items()):
        figures[f"{kind}.pages"] = len(members)
        figures[f"{kind}.encodings"] = sum(score.encoding for score in members)
        for name, unit in _UNITS.items():
            known = [value for score in members if (value := getattr(score, name)) is not None]
            if known:
                key = f"{kind}.{name}{unit}"
                figures[key], figures[f"{key}.of"] = round(fmean(known), 3), len(known)
    return figures


def _decoding_costs(pages: list[Truth], times: int) -> dict[str, float]:
    def ours(raw: bytes) -> None:
        decode(raw, {})

    def dammit(raw: bytes) -> None:
        UnicodeDammit(raw, is_html=True)

    plain = [page.text.encode()[:_PLAIN_BYTES].decode("utf-8", "ignore").encode() for page in pages]
    long = [raw for raw in plain if len(raw) > _PLAIN_BYTES - 4]
    if not long:  # the samples are shorter
        long = [(raw * _PLAIN_BYTES)[:_PLAIN_BYTES].decode("utf-8", "ignore").encode() for raw in plain]
    figures: dict[str, float] = {}
    for name, raws in (("", [page.raw for page in pages]), ("_utf8_17kb", long)):
        for peer, action in (("decode", ours), ("dammit", dammit)):
            figures |= _spent(f"{peer}{name}_us", [1e6 * _seconds(action, raw, times) for raw in raws])
    same = [UnicodeDammit(page.raw, is_html=True).unicode_markup == page.text for page in pages]
    return {**figures, "dammit_same_text": sum(same)}


def _reading_costs(articles: list[Truth], times: int) -> dict[str, float]:
    def ours(text: str) -> MainText:
        return main_text(text, "")

    figures: dict[str, float] = {}
    for name, action in (("main_text", ours), ("trafilatura", _trafilatura)):
        figures |= _spent(f"{name}_ms", [1000 * _seconds(action, page.text, times) for page in articles])
    texts = [ours(page.text) for page in articles]
    figures["second_opinions"] = sum(len(text.candidates) > 1 for text in texts)
    figures["second_opinions_taken"] = sum(text.strategy != "density" for text in texts)
    return figures


def _spent(name: str, each: list[float]) -> dict[str, float]:
    return {f"{name}_mean": round(fmean(each), 2), f"{name}_median": round(median(each), 2)}


def _extracted(text: str) -> Any:
    # Imported here: it takes half a second.
    from trafilatura import bare_extraction

    document = bare_extraction(text, fast=True, include_comments=False, with_metadata=True)
    return None if isinstance(document, dict) else document


def _trafilatura(text: str) -> Read:
    """Return author, title and day as trafilatura reads them."""
    document = _extracted(text)
    if document is None:
        return "", "", ""
    return document.author or "", document.title or "", (document.date or "")[:10]


def _trafilatura_scores(articles: list[Truth], lists: list[Truth]) -> dict[str, float]:
    def read(page: Truth) -> tuple[str, str]:
        document = _extracted(page.text)
        return ((document.title or "", document.text or "")) if document is not None else ("", "")

    titles, bodies = [], []
    for page in articles:
        title, body = read(page)
        titles.append(token_f1(title, page.title) if page.title else None)
        bodies.append(_of_body(page, body))
    return {
        "trafilatura.article.title_f1": _mean(titles),
        "trafilatura.article.body_f1": _mean(bodies),
        "trafilatura.lists.refused_right": _mean(float(not read(page)[1]) for page in lists),
    }


def _seconds(action: Callable[[Any], object], argument: str | bytes, times: int) -> float:
    """The least of several runs: what is over it is another process's."""
    spent = []
    for _ in range(times):
        begin = time.perf_counter()
        action(argument)
        spent.append(time.perf_counter() - begin)
    return min(spent)
