"""Texts of the mixed sources that `research/bench/voice-sources.yaml` names, from files of public repositories.

Files lie in the folder `voices` of the shared data as ``OWNER+NAME/PATH``; a file that is not there has no texts. An
entry:

    source: 汽车之家口碑              # what labels and figures call it
    repository: owner/name
    commit: 0123456789ab
    licence: MIT                      # as the repository says; "none" where it says nothing
    files: [data/a.csv, data/b.csv]   # within the repository
    kind: csv                         # csv, tsv, lines, json, jsonl, sheet, sheets, script, elements
    field: 3                          # column of a table or sheet; of json the way to the text: data.*.content;
                                      # of sheets columns, of a script names of its strings, of a page a CSS selector
    encoding: gb18030                 # utf-8-sig where nothing is said
    held_back: true                   # nothing is learned from it
    group: app stores                 # held out together with others of the group: the same posts, site or subject
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from openpyxl import load_workbook
from selectolax.lexbor import LexborHTMLParser

LIST = Path(__file__).parents[2] / "bench" / "voice-sources.yaml"


@dataclass(frozen=True, slots=True)
class MixedSource:
    """Where the texts of a mixed source are.

    Attributes:
        files: within the repository.
        field: a column's number, or of JSON the way to the text: names with dots, `*` for each of a list.
    """

    source: str
    repository: str
    commit: str
    licence: str
    files: Sequence[str]
    kind: str
    field: int | str
    encoding: str = "utf-8-sig"
    held_back: bool = False
    group: str = ""

    def texts(self, folder: Path) -> Iterator[str]:
        """The texts in a folder of repositories."""
        for file in self.files:
            # Without a repository it is a file of the shared data.
            path = (folder / self.repository.replace("/", "+") if self.repository else folder.parent) / file
            if path.exists():
                yield from (str(text).strip() for text in _READERS[self.kind](path, self) if text)


def sources(path: Path = LIST) -> list[MixedSource]:
    """The mixed sources of a list."""
    return [MixedSource(**entry) for entry in yaml.safe_load(path.read_text("utf-8")) or ()]


def _table(path: Path, source: MixedSource) -> Iterator[Any]:
    csv.field_size_limit(1 << 24)
    with path.open(encoding=source.encoding, errors="replace", newline="") as file:
        rows = csv.reader(
            (line.replace("\0", "") for line in file), delimiter="\t" if source.kind == "tsv" else ","
        )
        yield from (row[int(source.field)] for row in rows if len(row) > int(source.field))


def _lines(path: Path, source: MixedSource) -> Iterator[Any]:
    yield from path.read_text(source.encoding, "replace").splitlines()


def _json(path: Path, source: MixedSource) -> Iterator[Any]:
    yield from _along(json.loads(path.read_text(source.encoding, "replace")), str(source.field).split("."))


def _json_lines(path: Path, source: MixedSource) -> Iterator[Any]:
    for line in path.read_text(source.encoding, "replace").splitlines():
        if line.strip():
            yield from _along(json.loads(line), str(source.field).split("."))


def _sheet(path: Path, source: MixedSource) -> Iterator[Any]:
    for row in load_workbook(path, read_only=True).worksheets[0].iter_rows(values_only=True):
        if len(row) > int(source.field):
            yield row[int(source.field)]


def _sheets(path: Path, source: MixedSource) -> Iterator[Any]:
    for sheet in load_workbook(path, read_only=True).worksheets:
        for row in sheet.iter_rows(values_only=True):
            yield from (row[column] for column in map(int, str(source.field).split(",")) if len(row) > column)


def _script(path: Path, source: MixedSource) -> Iterator[Any]:
    """Strings in double quotes, by the names before them."""
    found = rf'"?\b(?:{source.field})"?\s*:\s*("(?:[^"\\\n]|\\.)*")'
    for text in re.findall(found, path.read_text(source.encoding, "replace")):
        yield json.loads(text, strict=False)


def _elements(path: Path, source: MixedSource) -> Iterator[Any]:
    tree = LexborHTMLParser(path.read_text(source.encoding, "replace"))
    yield from (node.text(separator=" ", strip=True) for node in tree.css(str(source.field)))


def _along(value: Any, way: Sequence[str]) -> Iterator[Any]:
    """The values at the end of a way into JSON."""
    if not way:
        yield value
    elif way[0] == "*":
        for one in value.values() if isinstance(value, Mapping) else value or ():
            yield from _along(one, way[1:])
    elif isinstance(value, Mapping) and way[0] in value:
        yield from _along(value[way[0]], way[1:])


_READERS = {
    "csv": _table,
    "tsv": _table,
    "lines": _lines,
    "json": _json,
    "jsonl": _json_lines,
    "sheet": _sheet,
    "sheets": _sheets,
    "script": _script,
    "elements": _elements,
}
