"""Corrections of reviews by people, recorded in the audit log. Used by the command, the dashboard and the API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.views.theme_names import find_theme, list_theme_names
from app.views.words import join_words, translate
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
"""Value that a person gives instead of themes if the review complains about nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectableView:
    """A review that a person may correct.

    Attributes:
        review: the review, with its current voice and products.
        themes: ids of the themes that the review currently counts as a complaint about.
        known_themes: names of the themes that the review may have, by id; empty if its product has no set of themes.
        copies: number of other reviews with an equal or nearly equal text; a correction also changes these.
        stored: the review's current correction; `None` if it has none.
    """

    review: Origin
    themes: Sequence[str]
    known_themes: Mapping[str, str]
    copies: int
    stored: StoredCorrection | None

    @property
    def correction(self) -> Correction:
        """Return the review's current correction; an empty one if it has none."""
        return Correction() if self.stored is None else self.stored.correction

    def find_themes(self, given: Iterable[str]) -> tuple[str, ...]:
        """Return the ids of themes that are given by id or name. `NO_THEME` gives no ids. Raises InputError."""
        names = [one for one in given if one.strip()]
        if [name.strip().lower() for name in names] == [NO_THEME]:
            return ()
        if not self.known_themes:
            raise InputError(
                "the products of this review have no themes; those of goods, cars and restaurants have"
            )
        return tuple(dict.fromkeys(find_theme(name, self.known_themes) for name in names))

    def describe(self, correction: Correction) -> str:
        """Return a line of text for people about a correction."""
        parts = []
        if correction.voice is not None:
            parts.append(translate("voice: {voice}", voice=translate(correction.voice)))
        if correction.themes is not None:
            names = [self.known_themes.get(theme, theme) for theme in correction.themes]
            parts.append(
                translate("complains about: {themes}", themes=join_words(names) or translate("nothing"))
            )
        wrong = [name for number, name in self.review.products if number in correction.not_products]
        if wrong:
            parts.append(translate("not about: {products}", products=join_words(wrong)))
        if correction.hidden:
            parts.append(translate("hidden"))
        return " · ".join(parts) or translate("as the models judge it")


def view_correctable(tx: Transaction, number: int) -> CorrectableView:
    """Return a review and the values that a person may correct. Raises InputError if the review does not exist."""
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
    """Correct a review and its linked copies.

    Args:
        wanted: all decisions together; they replace earlier ones. An empty correction removes the stored one.
        because: the reason that the person gave; may be empty.
        copies: number of linked copies that the person was shown; it must still be right.

    Raises:
        InputError: the review, theme or product is unknown, the number of copies has changed, or nothing changes.
    """

    def save(tx: Transaction) -> None:
        correcting.wait_turn(tx)
        view = view_correctable(tx, number)
        _check(view, wanted, copies)
        if wanted == view.correction:
            raise InputError("nothing would change: review {number} is so already", number=number)
        correcting.save(tx, list_linked(tx, number), wanted, who, because)
        before, after = _list_decisions(view.correction), _list_decisions(wanted)
        detail = {name: value for name, value in after.items() if value != before[name]} | {"copies": copies}
        if because:
            detail["because"] = because
        action = "take back correction" if wanted == Correction() else "correct review"
        notices.record_action(tx, who, action, str(number), **detail)

    store.write(save)
    with store.read() as tx:
        return view_correctable(tx, number)


def _check(view: CorrectableView, wanted: Correction, copies: int) -> None:
    if copies != view.copies:
        raise InputError(
            "there are {n} linked copies now, not {told}: look again before you correct",
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
    """Return the decisions of a correction as the audit log stores them."""
    themes = correction.themes
    return {
        "voice": correction.voice,
        "themes": None if themes is None else ", ".join(themes) or NO_THEME,
        "hidden": correction.hidden,
        "not_products": list(correction.not_products),
    }
