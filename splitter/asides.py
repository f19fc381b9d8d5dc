"""What stands in brackets in a name: an aside, unless it is a brand (方正（Founder）)."""

from __future__ import annotations

import re

from splitter.lexicon import Role, roles

_BRACKETS = re.compile(r"【([^【】]*)】|\[([^\[\]]*)\]|\(([^()]*)\)|〔([^〔〕]*)〕|\{([^{}]*)\}")
_LATIN_NAME = re.compile(r"[A-Za-z][A-Za-z .'&-]+")


def without_asides(text: str) -> str:
    """A name without what stands in brackets, unless that is a brand (方正（Founder）)."""
    return _BRACKETS.sub(_aside, text) if _BRACKETS.search(text) else text


def asides_in(text: str) -> list[str]:
    """The asides that `without_asides` takes away, in order."""
    found = [(_inside(match), _aside(match)) for match in _BRACKETS.finditer(text)]
    return [inside for inside, left in found if inside and left == ","]


def _inside(found: re.Match[str]) -> str:
    return next(part for part in found.groups() if part is not None).strip()


def _aside(found: re.Match[str]) -> str:
    inside = _inside(found)
    keep = roles().get(inside) in (Role.BRAND, Role.SERIES) or _LATIN_NAME.fullmatch(inside)
    return f" {inside} " if keep else ","
