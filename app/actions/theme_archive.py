"""Archive a theme of a product until it rises, and record it in the audit log. Used by command and dashboard."""

from __future__ import annotations

from dataclasses import dataclass

from app.views.theme_names import find_theme, name_theme
from app.views.words import translate
from splitter.errors import InputError
from tasks.store.content import archived_themes, products
from tasks.store.queue import notices
from tasks.store.sql.database import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeArchiving:
    """A theme of a product, with `archived` True if it is archived now, False if it was taken out of the archive."""

    product: str
    theme: str
    archived: bool

    @property
    def sentence(self) -> str:
        """A sentence for people about what was done."""
        theme = name_theme(self.theme)
        if self.archived:
            return translate(
                "“{theme}” of {product} is archived until it rises.", theme=theme, product=self.product
            )
        return translate("“{theme}” of {product} is no longer archived.", theme=theme, product=self.product)


def archive_theme(store: Store, product: str, theme: str, who: str, *, undo: bool = False) -> ThemeArchiving:
    """Archive a theme of a product until it rises, or take it out of the archive if `undo`.

    Args:
        theme: id or name of the theme.

    Raises:
        InputError: there is no such product or theme, or the theme is not archived.
    """
    name = find_theme(theme)
    with store.begin() as tx:
        found = products.find_counted(tx, product)
        if undo:
            if not archived_themes.restore(tx, found.id, name):
                raise InputError("{theme!r} of {product} is not archived", theme=name, product=found.name)
        else:
            archived_themes.archive(tx, found.id, name)
        action = "restore theme" if undo else "archive theme"
        notices.record_action(tx, who, action, found.name, theme=name)
    return ThemeArchiving(product=found.name, theme=name, archived=not undo)
