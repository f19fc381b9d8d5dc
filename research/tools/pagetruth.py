"""Saved pages with what is known about them, and how near a reading is to that.

The pages are those of the shared data, or, where it is not there, the small ones in ``research/samples/pages``.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborHTMLParser

# gb2312 and gbk are read by the table that browsers use for them, which holds both.
_TABLES = {"gb2312": "gb18030", "gbk": "gb18030"}
_TOKEN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]|[^\W\u3400-\u9fff\uf900-\ufaff_]+")
_BLANKS = re.compile(r"\s+")

SAMPLES = Path(__file__).parents[1] / "samples"
"""Small data with known answers, written for this project."""


NO_SHARED = Path("/nonexistent")
"""A folder without shared data: a bench reads the samples."""


def page_folder(shared: Path) -> Path:
    """Return the folder of the saved pages: of the shared data, or of the samples if that is missing."""
    return shared / "pages" if (shared / "pages").is_dir() else SAMPLES / "pages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """A saved page and what is known about it.

    Attributes:
        text: its bytes, read with their real charset.
        title: expected; of a feed, its channel's; empty where unknown.
        page_title: of the `title` element, as the index has it.
        date_text: expected; empty where unknown.
        body: expected text; empty where unknown, or where only fragments are known.
        fragments: which must, and which must not be in the body, where only those are known.
        records: expected hits or posts, of a search-result page; None for other pages.
    """

    file: str
    kind: str
    site: str
    raw: bytes
    text: str
    title: str
    page_title: str
    date_text: str
    body: str
    fragments: tuple[tuple[str, ...], tuple[str, ...]]
    records: tuple[dict[str, Any], ...] | None


def truths(folder: Path) -> list[Truth]:
    """Every page of the folder's index.csv."""
    with (folder / "index.csv").open(encoding="utf-8") as file:
        return [_truth(folder, row) for row in csv.DictReader(file)]


def _truth(folder: Path, row: dict[str, str]) -> Truth:
    raw = (folder / row["file"]).read_bytes()
    expected: dict[str, Any] = {}
    name = row["expected_body_file"]
    if name:
        source = (folder / name).read_text("utf-8")
        expected = json.loads(source) if name.endswith(".json") else {"content": _text(source, name)}
    return Truth(
        file=row["file"],
        kind=row["kind"],
        site=row["site"],
        raw=raw,
        text=raw.decode(_TABLES.get(row["real_charset"], row["real_charset"])).removeprefix("\ufeff"),
        title=row["html_title"] if row["kind"] == "feed" else row["expected_title"],
        page_title=row["html_title"],
        date_text=row["expected_date"],
        body=expected.get("content", ""),
        fragments=(tuple(expected.get("must_contain", ())), tuple(expected.get("must_not_contain", ()))),
        records=tuple(expected["results"]) if "results" in expected else None,
    )


def _text(source: str, name: str) -> str:
    body = LexborHTMLParser(source).body if name.endswith(".html") else None
    return body.text(separator=" ") if body is not None else source


def token_f1(text: str, truth: str) -> float:
    """F1 of the multisets of tokens: one a Chinese character, one a word or number of other scripts, lower case.

    Characters, not words of a segmenter: two segmentations of one text differ by its surroundings, and the score would
    be of the segmenter as well.
    """
    got, expected = Counter(_TOKEN.findall(text.lower())), Counter(_TOKEN.findall(truth.lower()))
    if not got and not expected:
        return 1.0
    return 2 * (got & expected).total() / (got.total() + expected.total())


def fragment_f1(text: str, must: tuple[str, ...], must_not: tuple[str, ...]) -> float:
    """F1 over fragments, blanks apart: right are those found that must be there, wrong those that must not."""
    squeezed = _BLANKS.sub("", text)
    right = sum(_BLANKS.sub("", fragment) in squeezed for fragment in must)
    wrong = sum(_BLANKS.sub("", fragment) in squeezed for fragment in must_not)
    return 2 * right / (right + wrong + len(must))
