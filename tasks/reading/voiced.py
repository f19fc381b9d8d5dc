"""Adds their voices to reviews, where pages are read."""

from __future__ import annotations

from collections.abc import Iterable

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.reading.voice import MODEL, voice_of


def judgement(review: Review) -> VoiceJudgement:
    """The voice of a review."""
    found = voice_of(review.body, review.title)
    return VoiceJudgement(found.voice.value, found.probability, found.buyer, found.sentiment, MODEL)


def voiced(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """These reviews, each with its voice."""
    return tuple(review._replace(voice=judgement(review)) for review in reviews)
