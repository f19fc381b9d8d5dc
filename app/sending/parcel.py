"""Files and messages to mail or post."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from splitter.errors import ReviewloopError


class DeliveryFailed(ReviewloopError):
    """A file or message could not be delivered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A mail without a file."""

    subject: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """A file to deliver, with a message.

    Attributes:
        kind: report, failed-report or export.
        subject: subject of a mail.
        text: text of a mail, or the field `text` of a post to a webhook.
    """

    path: Path
    media_type: str
    kind: str
    subject: str
    text: str
