"""Texts set apart, with what is known beside each. Nothing is learned from their sources.

`research/samples/voices/apart.tsv` holds source, digest of the text, voice by hand, and the context: kind of site, stars,
author. `research/bench/voice-apart.yaml` names the sources, each with repository, commit and licence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from research.tools.pagetruth import SAMPLES
from research.training.voices.voice_files import LIST, sources
from research.training.voices.voice_posts import Post, digest
from splitter.catalog.names import Group
from tasks.domain.pages import Review
from tasks.domain.voices import Voice

SOURCES, LABELS = LIST.with_name("voice-apart.yaml"), SAMPLES / "voices/apart.tsv"


def apart(shared: Path) -> list[tuple[Post, Review, Group | None]]:
    """Return the texts that are there: each with its voice, as a record, and with the kind of its site."""
    labels = {}
    for line in LABELS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            name, key, *rest = line.split("\t")
            labels[name, key] = rest
    found = {}
    for source in sources(SOURCES):
        for text in source.texts(shared / "voices"):
            if row := labels.get((source.source, digest(text))):
                found[source.source, digest(text)] = _record(source.source, text, row)
    return [found[key] for key in sorted(found)]


def _record(source: str, text: str, row: Sequence[str]) -> tuple[Post, Review, Group | None]:
    voice, group, stars, author = row
    review = Review("#0", "", text, author, "", None, float(stars) if stars else None)
    return Post(source, text, Voice(voice), by_hand=True), review, Group(group) if group else None
