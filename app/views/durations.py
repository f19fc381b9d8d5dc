"""Lengths of time in words."""

from __future__ import annotations


def seconds(value: float | None) -> str | None:
    """A length of time, as people say it."""
    if value is None:
        return None
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.0f} s" if value == round(value) else f"{value:.1f} s"
    if value < 7200:
        return f"{value / 60:.3g} min"
    return f"{value / 3600:.3g} h" if value < 172_800 else f"{value / 86_400:.3g} d"
