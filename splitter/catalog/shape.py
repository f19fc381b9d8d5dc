"""What everything in a catalog has in common: nothing unknown, nothing guessed, nothing changed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """A frozen model that refuses unknown keys and values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
