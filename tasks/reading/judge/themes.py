"""The themes of a review: what it complains about, by the terms of the themes file."""

from __future__ import annotations

from tasks.domain.themes import Theme


def read_themes(text: str, category: str) -> tuple[Theme, ...]:  # noqa: ARG001
    """Return the themes of a text, each once.

    Args:
        category: set of themes: goods, car or restaurant.
    """
    return ()
