"""A catalog's rules against saved pages: which still take what stands in them, for `sites check --offline`.

Which page is read by which rules is data: ``app/samples/index.yaml``. Its `shipped` pages are small ones of our own in
the known formats; its `saved` pages are real ones in a folder beside the project, where it is there.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict
from selectolax.lexbor import LexborHTMLParser

from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.domain.address import joined
from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.results import read_results

SAMPLES = Path(__file__).with_name("samples")
"""Folder of the pages that come with the project, and of the index."""

_ENOUGH = 0.8
"""Share of the expected records, or of a text, that must be right for rules to fit (of a text's fragments: most)."""

Source = Literal["shipped", "saved", "yours"]


class Sample(BaseModel):
    """A page, what it is read by, and what should come of it.

    Attributes:
        file: its name in the folder.
        engine, site, rules: by whose rules it is read: one of the three.
        answer: what kind of answer it is.
        records: hits, reviews or posts in it; None: what the truth beside it says, or at least one.
        found: the number of hits it reports; None: nobody said.
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
        truth: what a person or an engine's own list says of the page; empty where nobody does.
    """

    sample: Sample
    path: Path
    source: Source
    truth: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Checked:
    """What rules take from a saved page.

    Attributes:
        kind, name: "engine" or "rules", and which.
        site: whose page it is, where it is a site's.
        file: the page; empty: there is none.
        answer: "records", "empty", "blocked" or "broken"; `should` is what it is.
        expected, took, right: records: that should be there, that were taken, that are among the expected; None
            where nobody told.
        found, found_should: the number of hits that the page reports, as read and as it is.
        verdict: "fits", "does not fit" or "no saved page".
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
    pages = [SavedPage(one, SAMPLES / one.file, "shipped", {}) for one in map(_sample, index["shipped"])]
    for one in map(_sample, index["saved"]):
        if folder is not None and (path := folder / one.file).is_file():
            pages.append(SavedPage(one, path, "saved", _truth(path)))
    return pages


def your_page(catalog: Catalog, text: str) -> SavedPage:
    """A page named on the command line, as ``ENGINE_OR_SITE=FILE``. Raises InputError."""
    name, _, file = text.partition("=")
    path = Path(file)
    if not file or not path.is_file():
        raise InputError(f"--page {text!r}: write ENGINE=FILE or SITE=FILE; {file or 'no file'!r} is no file")
    kind = next((k for k in ("engine", "site", "rules") if name in getattr(catalog, _TABLES[k])), "")
    if not kind:
        raise InputError(f"--page {text!r}: {catalog.name} has no engine, site or rules {name!r}")
    return SavedPage(Sample.model_validate({"file": path.name, kind: name}), path, "yours", _truth(path))


_TABLES = {"engine": "engines", "site": "sites", "rules": "rules"}


def _sample(entry: Mapping[str, Any]) -> Sample:
    return Sample.model_validate(entry)


def _truth(path: Path) -> dict[str, Any]:
    """What ``expected/`` beside the page says of it: a list of results, or a text."""
    folder = path.parent / "expected"
    if (told := folder / f"{path.stem}.json").is_file():
        truth = json.loads(told.read_text("utf-8"))
        return truth if isinstance(truth, dict) else {}
    if (told := folder / f"{path.stem}.html").is_file():
        body = LexborHTMLParser(told.read_text("utf-8")).body
        return {"content": body.text(separator=" ")} if body is not None else {}
    if (told := folder / f"{path.stem}.txt").is_file():
        return {"content": told.read_text("utf-8")}
    return {}


def check_saved(catalog: Catalog, pages: Sequence[SavedPage], now: datetime) -> list[Checked]:
    """Read every page whose engine, site or rules the catalog has; then name what no page tells of.

    Args:
        now: what relative dates count from.
    """
    checked = [_check(catalog, page, now) for page in pages if _known(catalog, page.sample)]
    told = {(one.kind, one.name) for one in checked}
    every = [("engine", name) for name in catalog.engines] + [("rules", name) for name in catalog.rules]
    return checked + [Checked(kind, name) for kind, name in every if (kind, name) not in told]


def _known(catalog: Catalog, sample: Sample) -> bool:
    named = [(table, getattr(sample, kind)) for kind, table in _TABLES.items()]
    return all(name in getattr(catalog, table) for table, name in named if name)


def _check(catalog: Catalog, page: SavedPage, now: datetime) -> Checked:
    sample = page.sample
    kind = "engine" if sample.engine else "rules"
    name = sample.engine or sample.rules or catalog.sites[sample.site].rules
    found: int | None = None
    why, took, right = "", 0, None
    try:
        hint = catalog.sites[sample.site].encoding if sample.site else ""
        text = decode(page.path.read_bytes(), {}, hint).text
        if kind == "engine":
            found, addresses = _results(catalog, name, text)
            took = len(addresses)
            right = _right_hits(page.truth, addresses, catalog.engines[name].url)
        else:
            took, right = _reviews(catalog, name, sample.site, text, page.truth, now)
        answer = "records" if took else "empty"
    except FetchError as error:
        answer, why = ("blocked" if error.error.blocks else "broken"), str(error)
    expected = sample.records if sample.records is not None else _expected(page.truth)
    wrong = _wrong(sample, answer, took, right, expected, found)
    return Checked(
        kind=kind,
        name=name,
        site=sample.site,
        file=sample.file,
        source=page.source,
        answer=answer,
        should=sample.answer,
        expected=expected if sample.answer == "records" else None,
        took=took,
        right=right,
        found=found,
        found_should=sample.found,
        verdict="does not fit" if wrong else "fits",
        why="; ".join(part for part in (wrong, why if wrong else "") if part),
    )


def _wrong(
    sample: Sample, answer: str, took: int, right: int | None, expected: int | None, found: int | None
) -> str:
    """What is wrong with the outcome; empty where nothing is."""
    if answer != sample.answer:
        return f"read as {answer}, but it is {sample.answer}"
    if sample.found is not None and found != sample.found:
        return f"reports {sample.found:,} hits, read as {'none' if found is None else f'{found:,}'}"
    if answer == "records" and expected is not None:
        exact = sample.records is not None and took != expected
        if exact or took < _ENOUGH * expected or (right is not None and right < _ENOUGH * expected):
            return f"{took if right is None else right} of {expected} records"
    return ""


def _results(catalog: Catalog, name: str, text: str) -> tuple[int | None, set[str]]:
    engine = catalog.engines[name]
    page = read_results(text, engine.url, engine.results)
    return page.found, {hit.url for hit in page.hits}


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
    return sum(bool({_absolute(url, one.get(key)) for key in ("href", "mu")} & addresses) for one in listed)


def _absolute(url: str, reference: object) -> str:
    try:
        return joined(url, str(reference)) if reference else ""
    except FetchError:
        return ""


def _reviews(
    catalog: Catalog, name: str, site: str, text: str, truth: Mapping[str, Any], now: datetime
) -> tuple[int, int | None]:
    """How many reviews a page gives, and how many of them are right; None where nobody told."""
    read = read_page(text, f"http://{site or 'example.com'}/", catalog.rules[name], now=now)
    if not read.reviews:
        raise FetchError(ErrorClass.BAD_RULE, "no review in it")
    bodies = [review.body for review in read.reviews]
    listed = _listed(truth)
    if listed is not None:
        by_id = {review.key: review.body for review in read.reviews}
        right = sum(_alike(by_id.get(str(one.get("mid")), ""), one.get("text", "")) for one in listed)
        return len(bodies), right
    if "content" in truth:
        return len(bodies), int(_alike(bodies[0], truth["content"]))
    if fragments := truth.get("must_contain"):
        squeezed = "".join(bodies[0].split())
        there = sum("".join(fragment.split()) in squeezed for fragment in fragments)
        return len(bodies), int(2 * there > len(fragments))
    return len(bodies), None


def _alike(text: str, truth: str) -> bool:
    """Whether two texts share enough of their characters: F1 of their multisets, blanks apart."""
    got, expected = _characters(text), _characters(truth)
    return 2 * (got & expected).total() >= _ENOUGH * (got.total() + expected.total()) > 0


def _characters(text: str) -> Counter[str]:
    return Counter("".join(text.split()))


def broken(checked: Iterable[Checked]) -> list[Checked]:
    """Those whose rules do not fit their page."""
    return [one for one in checked if one.verdict == "does not fit"]
