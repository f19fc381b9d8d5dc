"""Write durations in words."""

from __future__ import annotations

from app.views.words import translate


def seconds(value: float | None) -> str | None:
    """Return a number of seconds as a duration for people, such as "2 min"; `None` for `None`."""
    if value is None:
        return None
    if value < 1:
        return translate("{n} ms", n=f"{value * 1000:.0f}")
    if value < 120:
        return translate("{n} s", n=f"{value:.0f}" if value == round(value) else f"{value:.1f}")
    if value < 7200:
        return translate("{n} min", n=f"{value / 60:.3g}")
    if value < 172_800:
        return translate("{n} h", n=f"{value / 3600:.3g}")
    return translate("{n} d", n=f"{value / 86_400:.3g}")
