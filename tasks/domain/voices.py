"""Voices: a review is a buyer's complaint or praise, a question, news, a company's, or something else."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from splitter.errors import InputError


class Voice(StrEnum):
    """The speaker of a review, and the purpose."""

    COMPLAINT = "complaint"
    PRAISE = "praise"
    QUESTION = "question"
    NEWS = "news"
    COMPANY = "company"
    OTHER = "other"


def voices_of(names: Iterable[str]) -> tuple[Voice, ...]:
    """Return voices by name, each once. Raises InputError for an unknown name."""
    given = list(names)
    try:
        return tuple(dict.fromkeys(Voice(name.strip()) for name in given))
    except ValueError:
        known = [voice.value for voice in Voice]
        wrong = [name for name in given if name.strip() not in known]
        problem = InputError(
            "{wrong} is no voice; the voices are {known}",
            wrong=", ".join(map(repr, wrong)),
            known=", ".join(known),
        )
        raise (problem.suggest(wrong[0], known) or problem) from None


class VoiceJudgement(NamedTuple):
    """A model's judgement of a review's voice, as it is stored.

    A text that the model can't read is not judged: it has a model, and None for everything else.

    Attributes:
        voice: one of `Voice`.
        probability: that it is this one, 0 to 1.
        buyer: probability that a buyer speaks, 0 to 1.
        sentiment: -1 (bad) to 1 (good).
        model: id of the model.
    """

    voice: str | None
    probability: float | None
    buyer: float | None
    sentiment: float | None
    model: str
