"""The shape of the lexicon's file."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class _Brand(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    lines: tuple[str, ...] = ()
    also: tuple[str, ...] = ()


class LexiconFile(BaseModel):
    """The content of `data/lexicon.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
    version: int
    brands: dict[str, _Brand]
    same: dict[str, str]
    noise: tuple[str, ...]
    goods: tuple[str, ...] = ()
    company: tuple[str, ...] = ()
