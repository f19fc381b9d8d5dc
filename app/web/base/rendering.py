"""Render templates. All values are escaped, and control characters are removed from texts from the web."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from app.files.harmless import shown, web_link
from app.run.version import VERSION
from app.views.durations import seconds
from app.views.fields import STYLE_OF, format_value, label, list_columns
from app.views.moments import clock_text, written_text, zone_name
from app.views.words import LANGUAGES, describe, describe_reason, plural, translate

_MARKS = {"green": "good", "yellow": "warn", "red": "warn", "dim": "faint"}


@cache
def _environment(language: str) -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parents[1] / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.globals |= {
        "t": translate,
        "link": link,
        "p": plural,
        "list_columns": list_columns,
        "label": label,
        "format_value": format_value,
        "lang": language,
        "version": VERSION,
        "zone": zone_name,
        "languages": LANGUAGES,
    }
    made.filters |= {
        "length": length,
        "moment": moment,
        "written": written_text,
        "describe": describe,
        "describe_reason": describe_reason,
        "highlight": highlight,
        "mark": mark,
        "length_of": len,
        "number": number,
        "percent": percent,
        "change": change,
        "short": short,
        "web_link": web_link,
        "quoted": lambda text: quote(str(text), safe=""),
    }
    return made


def render_page(template: str, language: str, **values: Any) -> str:
    """Render a template and return the page as text."""
    return _environment(language).get_template(template).render(**values)


def link(kept: Sequence[tuple[str, str]], **values: object) -> str:
    """Return a query string of the parameters `kept`, changed by `values`. An empty value removes a parameter."""
    rest = [(name, value) for name, value in kept if name not in values and value]
    return urlencode([*rest, *((name, value) for name, value in values.items() if value)])


def _finalize(value: Any) -> Any:
    if value is None:
        return "–"
    return shown(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def mark(value: object) -> str:
    """Return the CSS class for a state: good, warn or faint; empty if the state has none."""
    style = STYLE_OF.get(value, "") if isinstance(value, str) else ""
    return _MARKS.get(style, "")


def moment(when: datetime | None) -> str:
    """Return date and clock time in the zone of the settings; a dash for `None`."""
    return "–" if when is None else clock_text(when)


def length(value: float | None) -> str:
    """Return a number of seconds as a duration in words; a dash for `None`."""
    return seconds(value) or "–"


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with separated thousands; a dash for `None`."""
    return "–" if value is None else f"{value:,.{digits}f}"


def percent(share: float | None) -> str:
    """Return a share in [0, 1] as a percentage; a dash for `None`."""
    return "–" if share is None else f"{share:.0%}"


def change(share: float | None) -> str:
    """Return a change as a percentage with its sign; a dash for `None`."""
    return "–" if share is None else f"{share:+.0%}"


def short(text: str, most: int) -> str:
    """Return a text on one line, cut if it has more than `most` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def highlight(text: str, words: Sequence[str]) -> Markup:
    """Return a text as escaped markup, with these words highlighted."""
    plain = shown(text)
    if not words:
        return escape(plain)
    pattern = re.compile(
        "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True)), re.IGNORECASE
    )
    parts, end = [], 0
    for found in pattern.finditer(plain):
        parts += [escape(plain[end : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
        end = found.end()
    return Markup("").join([*parts, escape(plain[end:])])
