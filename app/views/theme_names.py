"""Names of themes in the reader's language, from the themes file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from app.views.words import language, translate
from splitter.errors import InputError
from tasks.domain.themes import ALL_THEMES


def name_theme(theme: str) -> str:
    """Return the name of a theme for people; its id if the themes file does not have it any more."""
    if theme == ALL_THEMES:
        return translate("all complaints")
    return _list_names().get(theme, {}).get(language(), theme)


def find_theme(text: str, known: Mapping[str, str] | None = None) -> str:
    """Return the id of a theme that is given by its id or a name, in capital or small letters.

    Args:
        known: names of the themes that it may be, by id; `None`: all themes, by their names in all languages.

    Raises:
        InputError: there is no such theme.
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
    """Return the names of the themes that reviews of a product may have, by id; none if its category has no set."""
    from tasks.reading.judge.reviews import choose_theme_set  # it brings numpy
    from tasks.reading.judge.theme_file import IN_FORCE

    themes = choose_theme_set(category)
    if themes is None:
        return {}
    return {theme: getattr(one, language()) for theme, one in IN_FORCE.get()[0].list_themes(themes).items()}


def _list_names() -> dict[str, dict[str, str]]:
    from tasks.reading.judge.theme_file import IN_FORCE  # it brings pydantic

    _, version = IN_FORCE.get()
    return _load_names(version)


@lru_cache(2)
def _load_names(_version: str) -> dict[str, dict[str, str]]:
    """Return the names of themes by id and language."""
    from tasks.reading.judge.theme_file import CATEGORIES, IN_FORCE

    themes, _ = IN_FORCE.get()
    return {
        name: {"zh": one.zh, "en": one.en}
        for category in reversed(CATEGORIES)
        for name, one in themes.list_themes(category).items()
    }
