"""Adds their voices to reviews, where pages are read."""

from __future__ import annotations

from collections.abc import Iterable

from tasks.domain.pages import Review
from tasks.domain.voices import VoiceJudgement
from tasks.reading.voice import voice_of, voices_of


def judgement(review: Review) -> VoiceJudgement:
    """The voice of a review."""
    return voice_of(review.body, review.title)


def voiced(reviews: Iterable[Review]) -> tuple[Review, ...]:
    """These reviews, each with its voice."""
    there = tuple(reviews)
    found = voices_of([(review.body, review.title) for review in there])
    return tuple(review._replace(voice=voice) for review, voice in zip(there, found, strict=True))
