"""How right it is said whose voice a post is, by the network of the tree, on posts that nothing was learned from.

- **apart**: texts of sources found after the network's, with their context: kind of site, stars and author
  (`research.training.voices.voice_apart`). `apart_without_context` has the same texts alone.
- **held back**: posts of sources that nothing was learned, calibrated or chosen from
  (`research.training.voices.voice_mixed.HELD_BACK`), without context. All were labelled by hand.
- **written**: posts written for this project (`research/samples/voices/posts.tsv`). They are all there is in a clone
  without the shared data.

`held_back_without_themes` has the voices before a theme raises the probability of a complaint.
`complaint_calibration_error` is that of the probability of a complaint, `calibration_error` that of a buyer.

Baseline: everybody a buyer. Cost: 28 texts of the written ones, voices and the decision what is no review together.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.training.voices.voice_apart import apart
from research.training.voices.voice_posts import Post, held_back, written_posts
from tasks.domain.pages import PageRead, Review
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.reading.judge.reviews import RAISE, judge_reviews, list_raised, model_id, read_themes_of
from tasks.reading.judge.themes import GOODS
from tasks.reading.judge.voice import VOICES, VoiceOdds, voices_of
from tasks.reading.relevance import screen_reviews

_BUYERS = (Voice.COMPLAINT, Voice.PRAISE)
_BINS = 10
_A_PAGE, _TIMES = 28, 300

Floats = NDArray[np.floating]


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score the network of the tree."""
    written = written_posts()
    page = [_record(post.text) for post in written[:: len(written) // _A_PAGE][:_A_PAGE]]
    times = _TIMES // 10 if smallest else _TIMES
    figures: dict[str, Any] = {
        "model": model_id(),
        "voices_ms_of_28": _ms(lambda: voices_of(page), times),
        "voices_and_themes_ms_of_28": _ms(lambda: judge_reviews(page), times),
        "screening_ms_of_28": _ms(lambda: screen_reviews(PageRead(""), page, main_text=False), times),
        "ms_of_1": _ms(lambda: voices_of(page[:1]), times),
    }
    found = of_posts("written", written, _alone(written))
    if (shared / "voices").is_dir():
        set_apart = apart(shared)
        posts = [post for post, _, _ in set_apart]
        with_context = [judge_reviews([review], group)[0][0] for _, review, group in set_apart]
        back = held_back(shared)
        found += (
            of_posts("apart", posts, with_context)
            + of_posts("apart_without_context", posts, _alone(posts))
            + of_posts("held_back", back, _alone(back), complaint=_complaint(back, with_themes=True))
            + of_posts(
                "held_back_without_themes",
                back,
                voices_of([_record(post.text) for post in back]),
                complaint=_complaint(back, with_themes=False),
            )
        )
    ratios: dict[str, float] = {}
    for more, told in found:
        ratios |= more
        figures |= told
    return {"bench": "voices", "ratios": ratios, "figures": figures}


def of_posts(
    name: str, found: Sequence[Post], said: Sequence[VoiceJudgement], complaint: Floats | None = None
) -> list[tuple[dict[str, float], dict[str, Any]]]:
    """Ratios and figures of posts, by what was said of them; nothing if there are none.

    A text that is not judged counts as no buyer; it has no probability that could be calibrated.

    Args:
        complaint: the probability of a complaint of each.
    """
    if not found:
        return []
    buyer = np.array([one.buyer or 0.0 for one in said])
    judged = [place for place, one in enumerate(said) if one.voice is not None]
    voices = [None if one.voice is None else Voice(one.voice) for one in said]
    told, true = (
        voices.count(Voice.COMPLAINT),
        sum(post.voice is Voice.COMPLAINT for post in found),
    )
    both = sum(post.voice is voice is Voice.COMPLAINT for post, voice in zip(found, voices, strict=True))
    ratios = {
        "buyer_f1": buyer_f1(found, buyer > 0.5),
        "buyer_f1_if_all": buyer_f1(found, np.ones(len(found), bool)),
        "complaint_recall": round(both / max(true, 1), 3),
        "complaint_precision": round(both / max(told, 1), 3),
        "calibration_error": calibration_error(_truth([found[place] for place in judged]), buyer[judged]),
        "voice_right": round(
            float(np.mean([post.voice is voice for post, voice in zip(found, voices, strict=True)])), 3
        ),
    }
    if complaint is not None:
        is_complaint = np.array([post.voice is Voice.COMPLAINT for post in found])
        ratios["complaint_calibration_error"] = calibration_error(is_complaint[judged], complaint[judged])
    figures: dict[str, Any] = {"posts": len(found), "confusion": confusion(found, voices)}
    for source, places in _by_source(found).items():
        here = [found[place] for place in places]
        figures[f"{source}.posts"] = len(here)
        figures[f"{source}.buyers"] = int(_truth(here).sum())
        figures[f"{source}.buyer_f1"] = buyer_f1(here, buyer[places] > 0.5)
    return [
        (
            {f"{name}.{what}": number for what, number in ratios.items()},
            {f"{name}.{what}": number for what, number in figures.items()},
        )
    ]


def buyer_f1(found: Sequence[Post], told: NDArray[np.bool_]) -> float:
    """F1 of who was called a buyer."""
    truth = _truth(found)
    return round(float(2 * (told & truth).sum() / max(told.sum() + truth.sum(), 1)), 3)


def calibration_error(truth: NDArray[np.bool_], chance: Floats) -> float:
    """Expected calibration error of probabilities, in ten bins (Guo et al., 2017, equation 3)."""
    bins = np.minimum((chance * _BINS).astype(int), _BINS - 1)
    gaps = [
        (bins == one).mean() * abs(chance[bins == one].mean() - truth[bins == one].mean())
        for one in set(bins.tolist())
    ]
    return round(float(sum(gaps)), 3)


def confusion(found: Sequence[Post], said: Sequence[Voice | None]) -> Mapping[str, Mapping[str, int]]:
    """How many posts of each voice were said to be of which, or were not judged."""
    pairs = [(post.voice, voice) for post, voice in zip(found, said, strict=True)]
    return {
        voice.value: {
            other.value if other else "not_judged": pairs.count((voice, other)) for other in (*VOICES, None)
        }
        for voice in VOICES
    }


def _complaint(found: Sequence[Post], *, with_themes: bool) -> Floats:
    """Return the probability of a complaint of each text alone."""
    odds = VoiceOdds([_record(post.text) for post in found], None)
    chance = odds.of_texts[:, VOICES.index(Voice.COMPLAINT)]
    raised = np.zeros(len(found))
    if with_themes:
        raised[list_raised(odds, read_themes_of(odds, GOODS))] = RAISE
    weight = chance * np.exp(raised)
    return np.asarray(weight / (1 - chance + weight))


def _alone(found: Sequence[Post]) -> list[VoiceJudgement]:
    return [voice for voice, _ in judge_reviews([_record(post.text) for post in found])]


def _record(text: str) -> Review:
    return Review("#0", "", text, "", "", None, None)


def _ms(do: Callable[[], object], times: int) -> float:
    """Median wall-clock time, after one call that is not counted."""
    do()
    took = []
    for _ in range(times):
        begun = time.perf_counter()
        do()
        took.append(time.perf_counter() - begun)
    return round(median(took) * 1_000, 4)


def _truth(found: Sequence[Post]) -> NDArray[np.bool_]:
    return np.array([post.voice in _BUYERS for post in found])


def _by_source(found: Sequence[Post]) -> dict[str, list[int]]:
    sources: dict[str, list[int]] = defaultdict(list)
    for place, post in enumerate(found):
        sources[post.source].append(place)
    return dict(sorted(sources.items()))
