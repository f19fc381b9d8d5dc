"""A site: its name, what it refers to, its encoding and its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from splitter.catalog.checks.shared import DOMAIN, Found, check_robots, nearest, read_as
from splitter.catalog.model import Bounds, RobotsDecision


def check_site(data: Mapping[str, Any], name: str, raw: object) -> Found:
    """What is wrong with a site: its name, what it refers to, its bounds."""
    if not DOMAIN.fullmatch(name):
        hint = f"; write {name.lower()}" if DOMAIN.fullmatch(name.lower()) else ""
        yield (), f"{name!r} is no domain name such as example.com{hint}"
    if not isinstance(raw, Mapping):
        return
    for key, table in (("engine", "engines"), ("rules", "rules")):
        target, known = raw.get(key), data.get(table)
        if isinstance(target, str) and isinstance(known, Mapping) and target not in known:
            yield (key,), f"there is no {target!r} in {table}{nearest(target, known)}"
    if isinstance(encoding := raw.get("encoding"), str) and encoding:
        yield from _page_encoding(encoding)
    yield from check_robots(read_as(RobotsDecision, raw.get("robots")))
    for key in ("quota", "budget_s"):
        bounds = read_as(Bounds, raw.get(key))
        if bounds is not None and bounds.min > bounds.max:
            yield (key,), f"min {bounds.min:g} is above max {bounds.max:g}; exchange them"


def _page_encoding(encoding: str) -> Found:
    """Of pages: what Python decodes text with, and what no page is written in (hex, idna) left out."""
    try:
        "a中文".encode(encoding, "replace").decode(encoding)
    except (LookupError, ValueError, TypeError):
        yield ("encoding",), f"unknown encoding {encoding!r}; write utf-8, gb18030 or big5"
