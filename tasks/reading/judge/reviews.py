"""Judges reviews of a page together: whose voice each is, and what it is about.

Voice and themes are decided once, in this order. Texts that may be complaints are read for themes, a theme that is
complained about raises the odds of a complaint, and then one voice is chosen. So mixed praise keeps its voice and has
its theme all the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Final

import numpy as np
from splitter.catalog.names import WITHOUT_THEMES, Category, Group

from tasks.domain.pages import Review
from tasks.domain.themes import Theme
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.reading.judge.theme_file import IN_FORCE
from tasks.reading.judge.themes import CAR, GOODS, RESTAURANT, theme_reader
from tasks.reading.judge.themes import MODEL as THEME_MODEL
from tasks.reading.judge.voice import MODEL as VOICE_MODEL
from tasks.reading.judge.voice import VOICES, VoiceOdds

READ_FROM: Final = 0.1
"""Probability of a complaint, by the text alone, from which a text about goods is read for themes.

The probability is too low for texts from unknown sources: by half of them, a complaint is not the likeliest voice.
"""
DOUBT: Final = 0.3
"""What a theme must be surer by, of the log odds that the text is no complaint."""
RAISE: Final = 0.5
"""What a theme that is complained about adds to the log odds of a complaint."""
_CONTRAST = re.compile("但|就是|只是|可惜|不过|唯一|美中不足|虽然|虽说|缺点|遗憾|不足")
"""Words that set a complaint apart from the praise around it."""
_RULES: Final = 2
"""Version of this module's rules. A new one lets `judge` judge all reviews again."""
_COMPLAINT = VOICES.index(Voice.COMPLAINT)
_FIRST_JUDGED = Review._fields.index("voice")
_NO_BUYERS = (Voice.QUESTION, Voice.COMPANY)
"""Voices that complain about nothing."""
_THEME_SETS: Mapping[str | None, str] = {Category.CAR: CAR, Category.RESTAURANT: RESTAURANT}


Judged = tuple[VoiceJudgement, tuple[Theme, ...] | None]
"""The voice of a review, and its themes; None: it was not read for themes."""


def add_judgements(
    reviews: Iterable[Review], group: Group | None = None, category: str | None = None
) -> tuple[Review, ...]:
    """Return reviews of a page, each with its voice and its themes.

    Args:
        group: the kind of their site.
        category: of the product that the page was found for.
    """
    (judged,) = add_judgements_of_pages([tuple(reviews)], group, category)
    return judged


def add_judgements_of_pages(
    pages: Sequence[Sequence[Review]], group: Group | None = None, category: str | None = None
) -> list[tuple[Review, ...]]:
    """Return the reviews of each page as `add_judgements` does; pages cost less together than one by one."""
    there = [review for page in pages for review in page]
    judged = judge_reviews(there, group, choose_theme_set(category), pages=[len(page) for page in pages])
    reviews = (
        Review._make((*review[:_FIRST_JUDGED], voice, themes))
        for review, (voice, themes) in zip(there, judged, strict=True)
    )
    return [tuple(islice(reviews, len(page))) for page in pages]


def choose_theme_set(category: str | None) -> str | None:
    """Return the set of themes of a product's category; `None` if there is none for it."""
    if category in WITHOUT_THEMES:
        return None
    return _THEME_SETS.get(category, GOODS)


def model_id() -> str:
    """Return the version of what decides voices and themes."""
    _, version = IN_FORCE.get()
    return _model_id(version)


@lru_cache(4)
def _model_id(version: str) -> str:
    return hashlib.sha256(f"{VOICE_MODEL} {THEME_MODEL} {version} {_RULES}".encode()).hexdigest()[:12]


def judge_reviews(
    reviews: Sequence[Review],
    group: Group | None = None,
    theme_set: str | None = GOODS,
    *,
    pages: Sequence[int] | None = None,
) -> list[Judged]:
    """Return voice and themes of reviews of a page, which cost less together than one by one.

    Args:
        group: the kind of their site.
        theme_set: goods, car or restaurant; `None` reads no themes.
        pages: if they are of several pages, the number of each page's reviews.
    """
    odds = VoiceOdds(reviews, group, pages)
    themes = read_themes_of(odds, theme_set)
    odds.raise_complaints(list_raised(odds, themes), RAISE)
    voices = odds.judge(model_id())
    for row, voice in enumerate(voices):
        if voice.voice in _NO_BUYERS:
            themes[row] = _drop_complaints(themes.get(row, ()), voice.voice, theme_set)
    not_read = None if theme_set is None else ()
    judged: list[Judged] = [(voice, themes.get(row, not_read)) for row, voice in enumerate(voices)]
    for row in odds.foreign:
        judged[row] = (voices[row], None)
    return judged


def read_themes_of(odds: VoiceOdds, theme_set: str | None) -> dict[int, tuple[Theme, ...]]:
    """Return the themes of the texts that are read for them, by row.

    A text about goods that is hardly a complaint is read if a word sets a complaint apart (物流慢但东西好), and has the
    themes of clauses with such a word only.
    """
    if theme_set is None or not odds.texts:
        return {}
    complaint = odds.of_texts[:, _COMPLAINT]
    is_read = complaint >= READ_FROM
    mixed: list[int] = []
    if theme_set == GOODS:
        mixed = [row for row in (~is_read).nonzero()[0].tolist() if _CONTRAST.search(odds.texts[row])]
        is_read[mixed] = True
    else:
        is_read[:] = True  # these sets have praise, too
    is_read[odds.foreign] = False
    rows: list[int] = is_read.nonzero()[0].tolist()
    doubt = None
    if theme_set == GOODS:
        sure = complaint[rows].clip(READ_FROM, 1 - 1e-3)
        doubt = DOUBT * np.maximum(1 - np.log(sure / (1 - sure)), 0)
    found = theme_reader(theme_set).read([odds.texts[row] for row in rows], doubt)
    themes = dict(zip(rows, found, strict=True))
    for row in mixed:
        if row in themes:
            themes[row] = tuple(
                one for one in themes[row] if _CONTRAST.search(odds.texts[row], one.quote_from, one.quote_to)
            )
    return themes


def list_raised(odds: VoiceOdds, themes: Mapping[int, Sequence[Theme]]) -> list[int]:
    """Return the rows whose themes raise the odds of a complaint; mixed praise keeps its voice."""
    complaint = odds.of_texts[:, _COMPLAINT]
    return [row for row, found in themes.items() if complaint[row] >= READ_FROM and _complains(found)]


def _drop_complaints(themes: Sequence[Theme], voice: str | None, theme_set: str | None) -> tuple[Theme, ...]:
    """Return what is left of the themes of a text that does not complain: what a question about a car is about."""
    if voice == Voice.COMPANY or theme_set == GOODS:
        return ()
    return tuple(theme._replace(sentiment=0) for theme in themes)


def _complains(themes: Sequence[Theme]) -> bool:
    return any(theme.sentiment < 0 for theme in themes)
