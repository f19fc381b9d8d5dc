"""The command `reviewloop review classify`: judge voice and themes of texts in a file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO

import click
from pydantic import BaseModel, ConfigDict, Field, StrictFloat, StrictInt, StrictStr, ValidationError
from rich.text import Text

from app.cli.command import App, command
from app.cli.options import ReadableFile
from app.cli.output import say
from app.cli.render import LinesView, Part, text
from app.files.harmless import shown
from app.views.theme_names import name_theme
from app.views.words import name_text, plural, translate
from splitter.catalog.wrong_values import explain_wrong_value
from splitter.errors import InputError, ProductNameError

if TYPE_CHECKING:
    from tasks.domain.themes import Theme

_AT_ONCE = 256
_CATEGORIES = ("goods", "car", "restaurant")
_LONGEST_LINE = 1 << 20
_SHOWN = 60
"""Maximum number of shown characters of a text."""


class _Line(BaseModel):
    """A line of the input file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: StrictStr
    rating: Annotated[StrictInt | StrictFloat, Field(ge=1, le=5)] | None = None
    product: StrictStr | None = None


@dataclass(frozen=True, slots=True)
class QuotedTheme:
    """A theme of a text, with the part of the text that expresses it."""

    id: str
    sentiment: int
    quote: str


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """The judgement on a text: its voice, its themes, and whether it is about its product."""

    voice: str | None
    about: bool | None
    themes: Sequence[QuotedTheme]


@dataclass(frozen=True, slots=True)
class ClassifiedView(LinesView):
    """A text with its result."""

    text: str
    lines: tuple[ClassifiedText]


@command(None, "classify", db=False)
@click.argument("file", type=ReadableFile())
@click.option(
    "--category",
    type=click.Choice(_CATEGORIES),
    help="Read for the themes of this category. Default: by the product's name, otherwise goods.",
)
def classify(app: App, file: BinaryIO, category: str | None) -> Iterator[ClassifiedView]:
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
    origin = getattr(file, "name", "<stdin>").replace("<stdin>", translate("standard input"))
    app.settings.use_themes()
    not_read = 0
    rows = _read_lines(file, origin)
    while lines := list(islice(rows, _AT_ONCE)):
        for line, (voice, themes) in zip(lines, _judge(lines, category), strict=True):
            not_read += themes is None
            quoted = list(_quote_themes(line.text, themes or ()))
            yield ClassifiedView(line.text, (ClassifiedText(voice, _is_about(line), quoted),))
    if not_read:
        say(plural("{n} text was not read for themes.", "{n} texts were not read for themes.", not_read))


@text.register
def _(view: ClassifiedView) -> Iterator[Part]:
    (result,) = view.lines
    yield name_text(translate(result.voice or "not judged"), shown(view.text[:_SHOWN]))
    for theme in result.themes:
        name = translate("{name} ({why})", name=name_theme(theme.id), why=f"{theme.sentiment:+d}")
        yield Text(f"  {name_text(name, shown(theme.quote))}", style="dim")


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
            problem=explain_wrong_value(detail),
        ) from error


def _judge(lines: Sequence[_Line], category: str | None) -> list[tuple[str | None, Sequence[Theme] | None]]:
    """Return voice and themes of each line, in order. Themes are `None` if the text was not searched for themes."""
    from tasks.domain.pages import Review
    from tasks.reading.judge.reviews import judge_reviews

    found: list[tuple[str | None, Sequence[Theme] | None]] = [(None, None)] * len(lines)
    sets = [category or _choose_set(line.product) for line in lines]
    for theme_set in dict.fromkeys(sets):
        rows = [row for row, one in enumerate(sets) if one == theme_set]
        reviews = [Review("#0", "", lines[row].text, "", "", None, lines[row].rating) for row in rows]
        for row, (voice, themes) in zip(rows, judge_reviews(reviews, None, theme_set), strict=True):
            found[row] = voice.voice, themes
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
    except ProductNameError:  # the name contains no keyword
        return None
    return product_match(query.keyword_sets, matchable_text("", [("", line.text)])).matches


def _quote_themes(text: str, themes: Iterable[Theme]) -> Iterator[QuotedTheme]:
    for one in themes:
        yield QuotedTheme(one.id, one.sentiment, text[one.quote_from : one.quote_to])
