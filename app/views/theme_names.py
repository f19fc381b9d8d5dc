"""Names of themes in the reader's language, from the themes file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from app.views.words import language, translate
from splitter.errors import InputError
from tasks.domain.themes import ALL_THEMES

if TYPE_CHECKING:
    from tasks.store.queue.notices import AlertRow


def name_theme(theme: str) -> str:
    """Return the name of a theme in the reader's language. If the themes file lacks the theme, return its id."""
    if theme == ALL_THEMES:
        return translate("all complaints")
    return _list_names().get(theme, {}).get(language(), theme)


def name_alert(row: AlertRow) -> AlertRow:
    """Return an alert to show to people: in an alert about a rising theme, the theme's name replaces its id."""
    if row.rule != "rising":
        return row
    product, colon, theme = row.subject.rpartition(": ")
    parameters = dict(row.because.parameters)
    if "theme" in parameters:
        parameters["theme"] = name_theme(str(parameters["theme"]))
    return replace(
        row,
        subject=f"{product}{colon}{name_theme(theme)}",
        because=replace(row.because, parameters=parameters),
    )


def find_theme(text: str, known: Mapping[str, str] | None = None) -> str:
    """Return the id of a theme given by id or name, ignoring case.

    Args:
        known: names of allowed themes by id; `None` allows all themes by their names in all languages.

    Raises:
        InputError: the theme is unknown.
    """
    if known is None:
        of_each = {theme: tuple(names.values()) for theme, names in _list_names().items()}
    else:
        of_each = {theme: (name,) for theme, name in known.items()}
    ids = {name.casefold(): theme for theme, names in of_each.items() for name in names}
    ids |= {theme: theme for theme in of_each}
    if text.strip().casefold() not in ids:
        raise InputError.unknown("there is no theme {name!r}", text, ids, "docs/themes.md")
    return ids[text.strip().casefold()]


def list_theme_names(category: str | None) -> dict[str, str]:
    """Return the names of a product category's themes by id; empty if the category has no themes."""
    from tasks.reading.judge.reviews import choose_theme_set  # loads numpy
    from tasks.reading.judge.theme_file import IN_FORCE

    themes = choose_theme_set(category)
    if themes is None:
        return {}
    return {theme: getattr(one, language()) for theme, one in IN_FORCE.get()[0].list_themes(themes).items()}


def _list_names() -> dict[str, dict[str, str]]:
    from tasks.reading.judge.theme_file import IN_FORCE  # loads pydantic

    _, version = IN_FORCE.get()
    return _load_names(version)


@lru_cache(2)
def _load_names(_version: str) -> dict[str, dict[str, str]]:
    """Return the names of all themes, by id and language."""
    from tasks.reading.judge.theme_file import CATEGORIES, IN_FORCE

    themes, _ = IN_FORCE.get()
    return {
        name: {"zh": one.zh, "en": one.en}
        for category in reversed(CATEGORIES)
        for name, one in themes.list_themes(category).items()
    }
