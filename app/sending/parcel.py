"""A file to mail or post."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from splitter.errors import ReviewloopError


class DeliveryFailed(ReviewloopError):
    """It did not arrive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail without a file."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A file to hand over, and what is said of it.

    Attributes:
        kind: report, failed-report or export.
        subject, text: of a mail; the text goes along to a webhook, too.
    """

    path: Path
    media_type: str
    kind: str
    subject: str
    text: str
