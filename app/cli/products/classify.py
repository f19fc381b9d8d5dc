"""`reviewloop review classify`: voice and themes of texts in a file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import click
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, ValidationError

from app.cli.options import json_option
from app.cli.output import printed, say
from app.files.harmless import shown
from app.run.settings import load_settings
from app.views.words import plural
from splitter.errors import InputError, ProductNameError

if TYPE_CHECKING:
    from tasks.domain.themes import Theme

_AT_ONCE = 256
_CATEGORIES = ("goods", "car", "restaurant")
_LONGEST_LINE = 1 << 20


class _Line(BaseModel):
    """A line of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: StrictStr
    rating: Annotated[StrictInt | StrictFloat, Field(ge=1, le=5)] | None = None
    product: StrictStr | None = None


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option(
    "--category",
    type=click.Choice(_CATEGORIES),
    help="Read for the themes of this category. Default: by the product's name, otherwise goods.",
)
@json_option
def classify(file: BinaryIO, category: str | None, as_json: bool) -> None:
    """Show who speaks in each text and what it complains about.

    FILE (- for standard input) has one JSON object a line: text, and optionally rating (1 to 5) and product. Nothing
    is stored. --json prints one object for each line: voice (null for another language), about (true if the text is
    about the product, null without a product) and themes, each with id, sentiment (-1 complaint, 0, 1 praise) and
    quote, the part of the text that shows it. Only Chinese texts are read for themes.

    \b
    Examples:
      reviewloop review classify reviews.jsonl --json
      echo '{"text": "喝到一半发现有黑色颗粒"}' | reviewloop review classify -
    """
    origin = getattr(file, "name", "<stdin>").replace("<stdin>", "standard input")
    load_settings().use_themes()
    not_read = 0
    rows = _read_lines(file, origin)
    while lines := list(islice(rows, _AT_ONCE)):
        for line, document in zip(lines, _classify(lines, category), strict=True):
            not_read += document["themes"] is None
            document["themes"] = document["themes"] or []
            if as_json:
                click.echo(json.dumps(document, ensure_ascii=False))
            else:
                _print(line, document)
    if not_read:
        say(plural("{n} text was not read for themes.", "{n} texts were not read for themes.", not_read))


def _read_lines(file: BinaryIO, origin: str) -> Iterator[_Line]:
    for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE + 1), b""), 1):
        if len(line) > _LONGEST_LINE:
            raise InputError(
                "{file}:{line}: longer than {n} bytes", file=origin, line=number, n=_LONGEST_LINE
            )
        if line.strip(b"\xef\xbb\xbf \t\r\n"):
            yield _read_line(line.removeprefix(b"\xef\xbb\xbf"), origin, number)


def _read_line(line: bytes, origin: str, number: int) -> _Line:
    try:
        return _Line.model_validate_json(line)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise InputError(
            '{file}:{line}: {key}{problem}; write a JSON object, such as {{"text": "...", "rating": 1}}',
            file=origin,
            line=number,
            key="".join(f"{step}: " for step in detail["loc"]),
            problem=detail["msg"],
        ) from error


def _classify(lines: Sequence[_Line], category: str | None) -> list[dict[str, Any]]:
    """Return the documents of lines, in their order; themes are None if they were not read."""
    from tasks.domain.pages import Review
    from tasks.reading.judge.reviews import judge_reviews

    found: list[dict[str, Any]] = [{} for _ in lines]
    sets = [category or _choose_set(line.product) for line in lines]
    for theme_set in dict.fromkeys(sets):
        rows = [row for row, one in enumerate(sets) if one == theme_set]
        reviews = [Review("#0", "", lines[row].text, "", "", None, lines[row].rating) for row in rows]
        for row, (voice, themes) in zip(rows, judge_reviews(reviews, None, theme_set), strict=True):
            line = lines[row]
            found[row] = {
                "voice": voice.voice,
                "about": _is_about(line),
                "themes": None if themes is None else _list_themes(line.text, themes),
            }
    return found


def _choose_set(product: str | None) -> str | None:
    from splitter.category import guess_category
    from tasks.reading.judge.reviews import choose_theme_set

    return choose_theme_set(guess_category(product) if product else None)


def _is_about(line: _Line) -> bool | None:
    if not (line.product and line.product.strip()):
        return None
    from splitter.keywords import product_query
    from tasks.reading.judge.product_match import matchable_text, product_match

    try:
        query = product_query(line.product)
    except ProductNameError:  # it names nothing that could be looked for
        return None
    return product_match(query.keyword_sets, matchable_text("", [("", line.text)])).matches


def _list_themes(text: str, themes: Iterable[Theme]) -> list[dict[str, str | int]]:
    return [
        {"id": one.id, "sentiment": one.sentiment, "quote": text[one.quote_from : one.quote_to]}
        for one in themes
    ]


def _print(line: _Line, document: dict[str, Any]) -> None:
    out = printed()
    out.print(f"{document['voice'] or 'not judged'}: {shown(line.text[:60])}")
    for theme in document["themes"]:
        out.print(f"  {theme['id']} ({theme['sentiment']:+d}): {shown(theme['quote'])}", style="dim")
