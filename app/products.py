"""Products as people give them: arguments, CSV files, one name a line. Reads and checks; stores nothing."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from splitter.errors import InputError
from splitter.query import product_query
from tasks.store.products import NewProduct

MOST_PAGES = 1000
_MOST_PRIORITY = 1_000_000
_SHORTEST_RECRAWL = timedelta(minutes=1)
_PERIOD = re.compile(r"(\d{1,5})\s*([mhdw])", re.IGNORECASE)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class RefusedProduct:
    """A product that was not taken.

    Attributes:
        name: as it was given.
        line: of the file, from 1; None where it came as an argument.
    """

    name: str
    why: str
    line: int | None = None


def new_product(
    name: str,
    *,
    keywords: Sequence[str] = (),
    aliases: Sequence[str] = (),
    priority: int = 0,
    pages: int | None = None,
    recrawl: timedelta | None = None,
) -> NewProduct:
    """A product, split into its keywords. Raises InputError for a name or alias that gives no query."""
    for text in (name, *aliases, *keywords):
        if any(unicodedata.category(char) in ("Cc", "Cs") for char in text.strip()):
            raise InputError(f"{text[:40]!r} holds a control character or a broken one; write plain text")
    query = product_query(name, keywords=keywords, aliases=aliases)
    return NewProduct(
        name=query.product,
        keywords=query.keywords,
        own_keywords=query.keywords if keywords else (),
        aliases=tuple(alias.strip() for alias in aliases),
        alias_keywords=query.aliases,
        priority=priority,
        pages=pages,
        recrawl_every=recrawl,
    )


def named_products(names: Iterable[str], **options: Any) -> list[NewProduct | RefusedProduct]:
    """Each name as a product with these options (see `new_product`), or refused with the reason."""
    products: list[NewProduct | RefusedProduct] = []
    for name in names:
        try:
            products.append(new_product(name, **options))
        except InputError as error:
            products.append(RefusedProduct(name, str(error)))
    return products


def period(text: str) -> timedelta:
    """Read 7d, 12h, 30m or 2w. Raises InputError."""
    match = _PERIOD.fullmatch(text.strip())
    if match is None:
        raise InputError(f"{text!r} is no period; write a number and m, h, d or w: 12h, 7d")
    value = timedelta(**{_UNITS[match[2].lower()]: int(match[1])})
    if value < _SHORTEST_RECRAWL:
        raise InputError(f"{text!r} is too short a period; the shortest is 1m")
    return value


def read_products(data: bytes, origin: str) -> Iterator[tuple[int, NewProduct | RefusedProduct]]:
    """Read a file of products: CSV with a header that begins with ``name``, or one name a line.

    A CSV file may also have keywords, aliases, priority, pages, recrawl; other columns are passed over. Separators
    within a cell are ``|``. UTF-8 (with or without mark) and GB18030 are read. Blank lines and, in plain files,
    lines that begin with # are passed over.

    Yields:
        The line's number and what became of it.

    Raises:
        InputError: the file is no text in one of these encodings.
    """
    text = _text(data, origin)
    first = next((line for line in text.splitlines() if line.strip()), "")
    if first.partition(",")[0].strip(' "').lower() == "name":
        yield from _rows(text)
        return
    for number, line in enumerate(text.splitlines(), 1):
        name = line.strip()
        if name and not name.startswith("#"):
            yield number, _checked(number, {"name": name})


def _text(data: bytes, origin: str) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{origin}: is UTF-16; save it as UTF-8")
    if b"\0" in data:
        raise InputError(f"{origin}: is no text; give a CSV file, or one product name a line")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
    try:
        return data.decode("gb18030")
    except UnicodeDecodeError:
        raise InputError(
            f"{origin}:{line}: is neither UTF-8 nor GB18030 (GBK, GB2312); save it as UTF-8"
        ) from None


def _rows(text: str) -> Iterator[tuple[int, NewProduct | RefusedProduct]]:
    reader = csv.reader(io.StringIO(text, newline=""))
    header: list[str] = []
    try:
        for row in reader:
            if not any(value.strip() for value in row):
                continue
            if not header:
                header = [name.strip().lower() for name in row]
                continue
            yield reader.line_num, _row(reader.line_num, header, row)
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: is no CSV: {error}") from None


def _row(line: int, header: Sequence[str], row: Sequence[str]) -> NewProduct | RefusedProduct:
    if len(row) > len(header):
        why = f"has {len(row)} cells, the header {len(header)}; put a cell that holds a comma in quotes"
        return RefusedProduct(row[0], why, line)
    return _checked(line, {name: value.strip() for name, value in zip(header, row, strict=False)})


def _checked(line: int, cells: Mapping[str, str]) -> NewProduct | RefusedProduct:
    name = cells.get("name", "")
    try:
        return new_product(
            name,
            keywords=_parts(cells.get("keywords", "")),
            aliases=_parts(cells.get("aliases", "")),
            priority=_number(cells, "priority", -_MOST_PRIORITY, _MOST_PRIORITY) or 0,
            pages=_number(cells, "pages", 1, MOST_PAGES),
            recrawl=period(cells["recrawl"]) if cells.get("recrawl") else None,
        )
    except InputError as error:
        return RefusedProduct(name, str(error), line)


def _parts(cell: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in cell.split("|") if part.strip())


def _number(cells: Mapping[str, str], column: str, lowest: int, highest: int) -> int | None:
    text = cells.get(column, "")
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise InputError(f"{column} {text!r} is no whole number") from None
    if not lowest <= value <= highest:
        raise InputError(f"{column} {value} is not between {lowest} and {highest}")
    return value
