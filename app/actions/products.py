"""Products as people give them: arguments, CSV files, one name a line. Reads and checks; stores nothing."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.files.table_files import TableRow, is_workbook, read_table, text_of
from splitter.errors import InputError
from splitter.normalize import split_list, split_words
from splitter.query import product_query
from tasks.store.content.products import NewProduct

MOST_PAGES = 1000
_MOST_PRIORITY = 1_000_000
_SHORTEST_RECRAWL = timedelta(minutes=1)
_PERIOD = re.compile(r"(\d{1,5})\s*([mhdw])", re.IGNORECASE)
_FIELDS = {
    word: field
    for field, words in {
        "name": "name product productname producttitle itemname goodsname "
        "商品名称 商品名 商品 商品标题 产品名称 产品名 产品 品名 名称",
        "keywords": "keywords keyword 关键词 关键字",
        "aliases": "aliases alias 别名",
        "priority": "priority 优先级",
        "pages": "pages 页数",
        "recrawl": "recrawl 重采 重采周期",
    }.items()
    for word in words.split()
}
"""Headers of columns, in lower case and without blanks, by what they hold."""
_NO_NAMES = {
    "a number or a price": re.compile(r"(?:[¥￥$]\s*+)?[\d.,]++\s*+(?:元|%|rmb)?", re.IGNORECASE),
    "an address": re.compile(r"(?:https?://|www\.)\S+", re.IGNORECASE),
    "a day or a time": re.compile(
        r"\d{2,4}[-/.年]\d{1,2}(?:[-/.月]\d{1,2}日?)?(?:[ T]\d{1,2}:\d{2}(?::\d{2})?)?"
    ),
}
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
    sites: tuple[str, ...] | None = None,
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
        sites=sites,
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


def read_products(
    data: bytes, origin: str, column: str | None = None
) -> Iterator[tuple[int, NewProduct | RefusedProduct]]:
    """Read a file of products: a table whose header names the column of names, or one name a line.

    A table may also have keywords, aliases, priority, pages, recrawl; columns may be named in English or Chinese
    (商品名称, 关键词, 别名, 优先级, 页数, 重采), others are passed over. Keywords and aliases of a cell are split by `split_words` and `split_list`. What is
    read: see `app.files.table_files.read_table`. Blank lines are passed over; in plain files those that begin with #
    are, too.

    Args:
        column: of the names, where its header says something else.

    Yields:
        The line's number and what became of it.

    Raises:
        InputError: the file can't be read, or no column of it is known to hold names.
    """
    rows = list(read_table(data, origin))
    if not rows:
        return
    header = _header(rows[0].cells, column)
    if header is None:
        _refuse_unknown_table(rows, origin, column)
        yield from _plain(data, origin, rows)
        return
    for row in rows[1:]:
        yield row.line, _row(row.line, header, row.cells)


def _header(cells: Sequence[str], column: str | None) -> list[str] | None:
    """The field of each column, or its own name where it has none; None where the row is no header."""
    named = [cell.casefold().replace(" ", "").replace("_", "") for cell in cells]
    fields = [_FIELDS.get(name, name) for name in named]
    if column is not None:
        if column not in cells:
            return None
        fields = ["" if field == "name" else field for field in fields]
        fields[cells.index(column)] = "name"
    if fields.count("name") > 1:
        first = fields.index("name")
        fields = [field if field != "name" or place == first else "" for place, field in enumerate(fields)]
    return fields if "name" in fields else None


def _refuse_unknown_table(rows: Sequence[TableRow], origin: str, column: str | None) -> None:
    """Raise InputError where a file is a table, and it can't be known which column holds the names."""
    first = rows[0]
    columns = ", ".join(cell for cell in first.cells if cell)
    if column is not None:
        raise InputError(f"{origin}:{first.line}: there is no column {column!r}; it has {columns}")
    widths = {len(row.cells) for row in rows}
    if len(rows) > 1 and len(widths) == 1 and widths != {1}:
        raise InputError(
            f"{origin}:{first.line}: none of the columns {columns} is known to hold product names; "
            "name it with --column, or call it name"
        )


def _plain(
    data: bytes, origin: str, rows: Sequence[TableRow]
) -> Iterator[tuple[int, NewProduct | RefusedProduct]]:
    if is_workbook(data):
        lines = [(row.line, row.cells[0]) for row in rows]
    else:
        lines = list(enumerate(text_of(data, origin).splitlines(), 1))
    for number, line in lines:
        name = line.strip()
        if name and not name.startswith("#"):
            yield number, _checked(number, {"name": name})


def _row(line: int, header: Sequence[str], row: Sequence[str]) -> NewProduct | RefusedProduct:
    if len(row) > len(header):
        why = f"has {len(row)} cells, the header {len(header)}; put a cell that holds a comma in quotes"
        return RefusedProduct(row[0], why, line)
    return _checked(line, dict(zip(header, row, strict=False)))


def not_a_name(name: str) -> str:
    """The kind of a cell that is no product's name; empty where it may be one."""
    for said, pattern in _NO_NAMES.items():
        if pattern.fullmatch(name):
            return said
    return ""


def _checked(line: int, cells: Mapping[str, str]) -> NewProduct | RefusedProduct:
    name = cells.get("name", "")
    if looks := not_a_name(name):
        return RefusedProduct(name, f"{name[:40]!r} looks like {looks}, not like a product's name", line)
    try:
        return new_product(
            name,
            keywords=split_words(cells.get("keywords", "")),
            aliases=split_list(cells.get("aliases", "")),
            priority=_number(cells, "priority", -_MOST_PRIORITY, _MOST_PRIORITY) or 0,
            pages=_number(cells, "pages", 1, MOST_PAGES),
            recrawl=period(cells["recrawl"]) if cells.get("recrawl") else None,
        )
    except InputError as error:
        return RefusedProduct(name, str(error), line)


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
