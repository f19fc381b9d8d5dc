"""How right it is said whose voice a post is: by posts of sources that nothing was learned from.

- **held out**: the posts of `research.training.voice_posts`; each source's are scored by layers that were fitted to other
  sources alone, so that no label can be read off a source's style; the vectors of words are the tree's.
  Probabilities are calibrated on half of the posts; figures are of the other half. Of one source and kind of label
  at most 100 posts count where sources are put together.
- **known sources**: the same half of the posts, by layers fitted to the other half, of the same sources.
- **held back**: posts of sources that nothing was learned, calibrated or chosen from
  (`research.training.voice_mixed.HELD_BACK`), by the network of the tree. All were labelled by hand.
- **written**: posts written for this project (`research/samples/voices/posts.tsv`), by the network of the tree. They are
  all there is in a clone without the shared data.

Baseline: everybody a buyer.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.training.voice_layers import Fit
from research.training.voice_posts import Post, held_back, posts, written_posts
from tasks.domain.voices import Voice
from tasks.reading.voice import MODEL, VOICES, network, voice_of, voices_of

A_SOURCE = 100
_BUYERS = (Voice.COMPLAINT, Voice.PRAISE)
_BINS = 10

Floats = NDArray[np.floating]


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score the network of the tree on the posts written, and layers fitted without a source on its posts."""
    written = written_posts()
    voice_of("")  # the network is read once a process
    begun = time.process_time()
    said = [voice_of(post.text) for post in written]
    took_ms = (time.process_time() - begun) * 1_000 / len(written)
    buyers = np.array([one.buyer > 0.5 for one in said])
    figures: dict[str, Any] = {
        "model": MODEL,
        "ms_per_text": round(took_ms, 3),
        "written.posts": len(written),
    }
    ratios = {
        "written.buyer_f1": buyer_f1(written, buyers),
        "written.voice_right": _mean([a.voice == b.voice for a, b in zip(said, written, strict=True)]),
    }
    if (shared / "voices").is_dir() and not smallest:
        for more, told in (of_held_back(held_back(shared)), of_held_out(posts(shared))):
            ratios |= more
            figures |= told
    return {"bench": "voices", "ratios": ratios, "figures": figures}


def of_held_back(found: Sequence[Post]) -> tuple[dict[str, float], dict[str, Any]]:
    """Ratios and figures of posts that only the network of the tree is tried on."""
    said = voices_of([(post.text, "") for post in found])
    buyer = np.array([one.buyer for one in said])
    right = [one.voice == post.voice for one, post in zip(said, found, strict=True)]
    ratios = {
        f"held_back.{what}": number
        for what, number in {**_of_buyers(found, buyer), "voice_right": _mean(right)}.items()
    }
    figures: dict[str, Any] = {"held_back.posts": len(found)}
    for source, places in _by_source(found, range(len(found))).items():
        here = [found[place] for place in places]
        figures[f"held_back.{source}.posts"] = len(here)
        figures[f"held_back.{source}.buyers"] = int(_truth(here).sum())
        figures[f"held_back.{source}.buyer_f1"] = buyer_f1(here, buyer[places] > 0.5)
    return ratios, figures


def of_held_out(found: Sequence[Post], layers: Fit | None = None) -> tuple[dict[str, float], dict[str, Any]]:
    """Ratios and figures of posts whose source nothing was learned from."""
    from research.training.train_voices import HOW, calibrated, for_calibration, held_out, seen_by, train

    layers = layers or HOW
    told = held_out(network(), found, layers)
    how = calibrated(found, told)
    scored = [place for place, post in enumerate(found) if not for_calibration(post)]
    shares = how.shares(told)
    seen, half = (
        seen_by(network(), found),
        [place for place, post in enumerate(found) if for_calibration(post)],
    )
    known = train(network(), [found[place] for place in half], seen[half], layers).told(seen)
    of_known = how.shares(known)
    by_hand = [place for place in scored if found[place].by_hand]
    together = _at_most(found, scored)
    ratios: dict[str, float] = {}
    for name, places, said in (
        ("held_out", together, shares),
        ("held_out_by_hand", by_hand, shares),
        ("known_sources", together, of_known),
        ("known_sources_by_hand", by_hand, of_known),
    ):
        here, part = [found[place] for place in places], said[places]
        right = part.argmax(1) == _kinds(here)
        ratios |= {
            f"{name}.{what}": number
            for what, number in {**_of_buyers(here, _buyer(part)), "voice_right": _mean(right)}.items()
        }
    figures: dict[str, Any] = {"posts": len(together), "by_hand.posts": len(by_hand)}
    for source, places in _by_source(found, scored).items():
        here = [found[place] for place in places]
        buyers = _buyer(shares[places]) > 0.5
        figures[f"{source}.posts"] = len(here)
        figures[f"{source}.buyers"] = int(_truth(here).sum())
        figures[f"{source}.said_buyers"] = int(buyers.sum())
        figures[f"{source}.buyer_or_not_right"] = round(float((buyers == _truth(here)).mean()), 3)
        if rated := [place for place in places if found[place].good is not None]:
            good = np.array([bool(found[place].good) for place in rated])
            figures[f"{source}.sentiment_right"] = round(float(((told[rated, -1] > 0) == good).mean()), 3)
    figures["confusion"] = confusion([found[place] for place in together], shares[together])
    return ratios, figures


def _of_buyers(found: Sequence[Post], buyer: Floats) -> dict[str, float]:
    """Return how right probabilities of a buyer are, with the baseline."""
    return {
        "buyer_f1": buyer_f1(found, buyer > 0.5),
        "buyer_f1_if_all": buyer_f1(found, np.ones(len(found), bool)),
        "calibration_error": calibration_error(found, buyer),
    }


def _mean(right: Sequence[bool] | NDArray[np.bool_]) -> float:
    return round(float(np.mean(right)), 3)


def buyer_f1(found: Sequence[Post], told: NDArray[np.bool_]) -> float:
    """F1 of who was called a buyer."""
    truth = _truth(found)
    return round(float(2 * (told & truth).sum() / max(told.sum() + truth.sum(), 1)), 3)


def calibration_error(found: Sequence[Post], buyer: Floats) -> float:
    """Expected calibration error of the probability that a buyer speaks, in ten bins (Guo et al., 2017, equation 3)."""
    truth, bins = _truth(found), np.minimum((buyer * _BINS).astype(int), _BINS - 1)
    gaps = [
        (bins == one).mean() * abs(buyer[bins == one].mean() - truth[bins == one].mean())
        for one in set(bins.tolist())
    ]
    return round(float(sum(gaps)), 3)


def confusion(found: Sequence[Post], shares: Floats) -> Mapping[str, Mapping[str, int]]:
    """How many posts of each voice were said to be of which."""
    counts = np.zeros((len(VOICES), len(VOICES)), int)
    np.add.at(counts, (_kinds(found), shares.argmax(1)), 1)
    return {
        voice.value: {said.value: int(counts[row, column]) for column, said in enumerate(VOICES)}
        for row, voice in enumerate(VOICES)
    }


def _truth(found: Sequence[Post]) -> NDArray[np.bool_]:
    return np.array([post.voice in _BUYERS for post in found])


def _buyer(shares: Floats) -> Floats:
    return np.asarray(shares[:, 0] + shares[:, 1])


def _kinds(found: Sequence[Post]) -> NDArray[np.intp]:
    return np.array([VOICES.index(post.voice) for post in found])


def _by_source(found: Sequence[Post], places: Sequence[int]) -> dict[str, list[int]]:
    sources: dict[str, list[int]] = defaultdict(list)
    for place in places:
        post = found[place]
        sources[f"{post.source} (by hand)" if post.by_hand else post.source].append(place)
    return dict(sorted(sources.items()))


def _at_most(found: Sequence[Post], places: Sequence[int]) -> list[int]:
    """Of each source the same number of posts, spread over its voices."""
    return [place for of in _by_source(found, places).values() for place in of[:: -(-len(of) // A_SOURCE)]]
