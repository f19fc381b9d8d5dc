"""Adds their voices to reviews, where pages are read."""

from __future__ import annotations

from collections.abc import Iterable

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.reading.voice import MODEL, VoiceEstimate, voice_of, voices_of


def judgement(review: Review) -> VoiceJudgement:
    """The voice of a review."""
    return _judgement(voice_of(review.body, review.title))


def voiced(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """These reviews, each with its voice."""
    there = tuple(reviews)
    found = voices_of([(review.body, review.title) for review in there])
    return tuple(review._replace(voice=_judgement(one)) for review, one in zip(there, found, strict=True))


def _judgement(found: VoiceEstimate) -> VoiceJudgement:
    return VoiceJudgement(found.voice.value, found.probability, found.buyer, found.sentiment, MODEL)
