"""The rule of keywords: a buyer is whoever says more of faults, redress, likes and own use than of reports and
campaigns, and does not ask. A baseline of `research.bench.voices`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from research.training.voice_posts import Post
from tasks.reading.voice_text import cue_densities, cues, plain, run_keys

_SPEAKS = ("fault", "dislike", "redress", "like", "own use")
_SPEAKS_NOT = ("reports", "announces", "campaign", "copywriting", "asks")


def signs() -> NDArray[np.float64]:
    """Of each cue 1 where it speaks for a buyer, -1 where against, else 0."""
    return np.array([(cue in _SPEAKS) - (cue in _SPEAKS_NOT) for cue in cues()], float)


def excess(found: Sequence[Post]) -> NDArray[np.float64]:
    """How much denser cues for a buyer are than those against, of each post; above 0 it is called a buyer's."""
    shown = [plain(post.text) for post in found]
    dense = np.array([cue_densities(run_keys(text), len(text)) for text in shown])
    return np.asarray(dense @ signs())
