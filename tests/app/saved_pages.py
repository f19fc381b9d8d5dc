"""A catalog's rules against saved pages: which of them still read what is there, for tests.

`samples/index.yaml` says which page is read by which rules. Its `shipped` pages are small ones of our own in the known
formats; its `saved` pages are real ones in a folder beside the project, if it is there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict
from selectolax.lexbor import LexborHTMLParser

from app.sites.rule_preview import RuleReading, read_by_rules
from splitter.catalog.model import Catalog
from tasks.domain.pages import Review
from tasks.reading.links import Links

SAMPLES = Path(__file__).with_name("samples")
"""Folder of the pages that come with the project, and of the index."""

_ENOUGH = 0.8
"""Share of the expected records, or of a text, that must be right for rules to fit (of a text's fragments: most)."""

Source = Literal["shipped", "saved"]


class Sample(BaseModel):
    """A page, what it is read by, and what should come of it.

    Attributes:
        file: its name in the folder.
        engine, site, rules: by whose rules it is read: one of the three.
        answer: what kind of answer it is.
        records: hits, reviews or posts in it; None: what the truth beside it says, or at least one.
        found: the number of hits it reports; None: unknown.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    file: str
    engine: str = ""
    site: str = ""
    rules: str = ""
    answer: Literal["records", "empty", "blocked"] = "records"
    records: int | None = None
    found: int | None = None


@dataclass(frozen=True, slots=True)
class SavedPage:
    """A sample where it lies, with what is known about it.

    Attributes:
        truth: what is right for the page, by a person or by the engine's own list; empty where unknown.
    """

    sample: Sample
    path: Path
    source: Source
    truth: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageCheck:
    """The result of rules on a saved page, and whether it is right.

    Attributes:
        kind, name: "engine" or "rules", and which.
        site: whose page it is, where it is a site's.
        file: the page; empty: there is none.
        answer: "records", "empty", "blocked" or "broken"; `should` is what it is.
        expected, took, right: records: that should be there, that were read, that are among the expected; None
            where that is unknown.
        found, found_should: the number of hits that the page reports, as read and as it is.
        verdict: "fits", "does not fit" or "no saved page".
        why: the reason for the verdict, for people.
    """

    kind: str
    name: str
    site: str = ""
    file: str = ""
    source: str = ""
    answer: str = ""
    should: str = ""
    expected: int | None = None
    took: int | None = None
    right: int | None = None
    found: int | None = None
    found_should: int | None = None
    verdict: str = "no saved page"
    why: str = ""


def saved_pages(folder: Path | None) -> list[SavedPage]:
    """The pages that come with the project, then those of the index that are in a folder.

    Args:
        folder: of real pages; None: there is none.
    """
    index = yaml.safe_load((SAMPLES / "index.yaml").read_text("utf-8"))
    shipped, saved = (map(Sample.model_validate, index[source]) for source in ("shipped", "saved"))
    pages = [SavedPage(one, SAMPLES / one.file, "shipped", {}) for one in shipped]
    for one in saved:
        if folder is not None and (path := folder / one.file).is_file():
            pages.append(SavedPage(one, path, "saved", _truth(path)))
    return pages


_TABLES = {"engine": "engines", "site": "sites", "rules": "rules"}


def _truth(path: Path) -> dict[str, Any]:
    """The content of ``expected/`` beside the page: a list of results, or a text."""
    file = path.parent / "expected" / path.name
    if (listed := file.with_suffix(".json")).is_file():
        truth = json.loads(listed.read_text("utf-8"))
        return truth if isinstance(truth, dict) else {}
    if (html := file.with_suffix(".html")).is_file():
        body = LexborHTMLParser(html.read_text("utf-8")).body
        return {"content": body.text(separator=" ")} if body is not None else {}
    text = file.with_suffix(".txt")
    return {"content": text.read_text("utf-8")} if text.is_file() else {}


def check_saved(catalog: Catalog, pages: Sequence[SavedPage], now: datetime) -> list[PageCheck]:
    """Read every page whose engine, site or rules the catalog has; then name those without a page.

    Args:
        now: what relative dates count from.
    """
    checked = [_check(catalog, page, now) for page in pages if _known(catalog, page.sample)]
    with_page = {(one.kind, one.name) for one in checked}
    every = [("engine", name) for name in catalog.engines] + [("rules", name) for name in catalog.rules]
    return checked + [
        PageCheck(kind=kind, name=name) for kind, name in every if (kind, name) not in with_page
    ]


def _known(catalog: Catalog, sample: Sample) -> bool:
    named = [(table, getattr(sample, kind)) for kind, table in _TABLES.items()]
    return all(name in getattr(catalog, table) for table, name in named if name)


def _check(catalog: Catalog, page: SavedPage, now: datetime) -> PageCheck:
    sample, truth = page.sample, page.truth
    kind = "engine" if sample.engine else "rules"
    name = sample.engine or sample.rules or catalog.sites[sample.site].rules
    engine = catalog.engines[name] if sample.engine else None
    read = read_by_rules(
        page.path.read_bytes(),
        {},
        engine.url if engine else f"http://{sample.site or 'example.com'}/page.html",
        engine.results if engine else catalog.rules[name],
        now=now.astimezone(catalog.zone_of(sample.site)),
        hint=catalog.sites[sample.site].encoding if sample.site else "",
        listed=engine is not None and engine.discover == "list",
    )
    right = None
    if engine and read.verdict in ("records", "empty"):
        right = _right_hits(truth, {hit.url for hit in read.records}, engine.url)
    elif read.records:
        right = _right_reviews(truth, read.records)
    expected = sample.records if sample.records is not None else _expected(truth)
    wrong = _wrong(sample, read, right, expected)
    return PageCheck(
        kind=kind,
        name=name,
        site=sample.site,
        file=sample.file,
        source=page.source,
        answer=read.verdict,
        should=sample.answer,
        expected=expected if sample.answer == "records" else None,
        took=len(read.records),
        right=right,
        found=read.found,
        found_should=sample.found,
        verdict="does not fit" if wrong else "fits",
        why="; ".join(str(part) for part in (wrong, read.why if wrong else "") if part),
    )


def _wrong(sample: Sample, read: RuleReading, right: int | None, expected: int | None) -> str:
    """Faults of a reading; empty where there are none."""
    if read.verdict != sample.answer:
        return f"read as {read.verdict}, but it is {sample.answer}"
    if sample.found is not None and read.found != sample.found:
        return f"reports {sample.found:,} hits, read as {'none' if read.found is None else f'{read.found:,}'}"
    if read.records and expected is not None:
        took = len(read.records)
        exact = sample.records is not None and took != expected
        if exact or took < _ENOUGH * expected or (right is not None and right < _ENOUGH * expected):
            return f"{took if right is None else right} of {expected} records"
    return ""


def _listed(truth: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """The records a truth lists; None where it lists none. One without a title is no organic result."""
    results = truth.get("results")
    return [one for one in results if one.get("title") or one.get("mid")] if results is not None else None


def _expected(truth: Mapping[str, Any]) -> int | None:
    listed = _listed(truth)
    if listed is not None:
        return len(listed)
    return 1 if "content" in truth or "must_contain" in truth else None


def _right_hits(truth: Mapping[str, Any], addresses: set[str], url: str) -> int | None:
    listed = _listed(truth)
    if listed is None:
        return None
    urls = ({Links(url).address(str(one.get(key) or "")) for key in ("href", "mu")} for one in listed)
    return sum(bool(right & addresses) for right in urls)


def _right_reviews(truth: Mapping[str, Any], reviews: Sequence[Review]) -> int | None:
    """How many reviews of a page are right; None where that is unknown."""
    listed = _listed(truth)
    if listed is not None:
        by_id = {review.key: review.body for review in reviews}
        return sum(_alike(by_id.get(str(one.get("mid")), ""), one.get("text", "")) for one in listed)
    if "content" in truth:
        return int(_alike(reviews[0].body, truth["content"]))
    if fragments := truth.get("must_contain"):
        squeezed = "".join(reviews[0].body.split())
        there = sum("".join(fragment.split()) in squeezed for fragment in fragments)
        return int(2 * there > len(fragments))
    return None


def _alike(text: str, truth: str) -> bool:
    """Whether two texts share enough of their characters: F1 of their multisets, blanks apart."""
    got, expected = (Counter("".join(one.split())) for one in (text, truth))
    return 2 * (got & expected).total() >= _ENOUGH * (got.total() + expected.total()) > 0
