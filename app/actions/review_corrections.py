"""Corrections of reviews by a person, by command, in the dashboard or by the API; noted in the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.views.theme_names import find_theme, list_theme_names
from app.views.words import translate
from splitter.errors import InputError
from tasks.store.content import correcting
from tasks.store.content.corrections import (
    Correction,
    StoredCorrection,
    get_correction,
    list_linked,
    list_theme_ids,
)
from tasks.store.queries import products
from tasks.store.queries.reviews import Origin, get_origin
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.transaction import Transaction

NO_THEME = "none"
"""Stands for themes: the review complains about nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectableView:
    """A review that a person may correct.

    Attributes:
        review: with its voice and its products as they count now.
        themes: ids of the themes that it complains about, as they count now.
        known_themes: names of the themes that it may have, by id; empty if its product has no set of themes.
        copies: number of the other reviews that a correction holds for: those with equal or nearly equal texts.
        stored: the correction that it has; None: it has none.
    """

    review: Origin
    themes: Sequence[str]
    known_themes: Mapping[str, str]
    copies: int
    stored: StoredCorrection | None

    @property
    def correction(self) -> Correction:
        """Return the decisions of a person; empty if there are none."""
        return Correction() if self.stored is None else self.stored.correction

    def find_themes(self, given: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of themes that are given by id or by name; `NO_THEME` stands for none. Raises InputError."""
        names = [one for one in given if one.strip()]
        if [name.strip().lower() for name in names] == [NO_THEME]:
            return ()
        if not self.known_themes:
            raise InputError(
                "the products of this review have no themes; those of goods, cars and restaurants have"
            )
        return tuple(dict.fromkeys(find_theme(name, self.known_themes) for name in names))

    def describe(self, correction: Correction) -> str:
        """Return a correction in one line for people."""
        parts = []
        if correction.voice is not None:
            parts.append(translate("voice: {voice}", voice=translate(correction.voice)))
        if correction.themes is not None:
            names = [self.known_themes.get(theme, theme) for theme in correction.themes]
            parts.append(
                translate("complains about: {themes}", themes=", ".join(names) or translate("nothing"))
            )
        wrong = [name for number, name in self.review.products if number in correction.not_products]
        if wrong:
            parts.append(translate("not about: {products}", products=", ".join(wrong)))
        if correction.hidden:
            parts.append(translate("hidden"))
        return " · ".join(parts) or translate("as the models judge it")


def view_correctable(tx: Transaction, number: int) -> CorrectableView:
    """Return a review with what a person may correct. Raises InputError if there is no such review."""
    found = get_origin(tx, number)
    if found is None:
        raise InputError("there is no review {number}", number=number)
    rows = products.list_numbered(tx, [product for product, _ in found.products])
    return CorrectableView(
        review=found,
        themes=list_theme_ids(tx, number),
        known_themes=list_theme_names(rows[0].category if rows else None),
        copies=len(list_linked(tx, number)) - 1,
        stored=get_correction(tx, number),
    )


def correct(
    store: Store, number: int, wanted: Correction, who: str, because: str = "", *, copies: int
) -> CorrectableView:
    """Correct a review and those that are linked with it.

    Args:
        wanted: all that a person decided; without any decision, the correction is taken back.
        because: why; may be empty.
        copies: number of linked reviews that the person was shown.

    Raises:
        InputError: there is no such review, theme or product of it, other copies are there now, or nothing changes.
    """
    with store.begin() as tx:
        view = view_correctable(tx, number)
        _check(view, wanted, copies)
        if wanted == view.correction:
            raise InputError("nothing would change: review {number} is so already", number=number)
        correcting.save(tx, list_linked(tx, number), wanted, who, because)
        before, after = _list_decisions(view.correction), _list_decisions(wanted)
        detail = {name: value for name, value in after.items() if value != before[name]} | {"copies": copies}
        if because:
            detail["because"] = because
        notices.record_action(
            tx,
            who,
            "take back correction" if wanted == Correction() else "correct review",
            str(number),
            **detail,
        )
    with store.read() as tx:
        return view_correctable(tx, number)


def _check(view: CorrectableView, wanted: Correction, copies: int) -> None:
    if copies != view.copies:
        raise InputError(
            "{n} linked copies are there now, not {told}: look again, then correct",
            n=view.copies,
            told=copies,
        )
    known = {number for number, _ in view.review.products} | set(view.correction.not_products)
    for number in wanted.not_products:
        if number not in known:
            raise InputError(
                "review {review} is of no product {number}", review=view.review.review, number=number
            )
    if wanted.themes and wanted.themes != view.correction.themes:
        view.find_themes(wanted.themes)


def _list_decisions(correction: Correction) -> dict[str, Any]:
    """Return the decisions of a correction, for the audit log."""
    themes = correction.themes
    return {
        "voice": correction.voice,
        "themes": None if themes is None else ", ".join(themes) or NO_THEME,
        "hidden": correction.hidden,
        "not_products": list(correction.not_products),
    }
