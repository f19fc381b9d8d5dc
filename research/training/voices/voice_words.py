"""Vectors of words by the company they keep: words of a like use get like vectors, whatever they are about.

Positive pointwise mutual information of words and their neighbours, with smoothed neighbours (exponent 0.75) and the
roots of the singular values (Levy, Goldberg and Dagan, Improving Distributional Similarity with Lessons Learned from
Word Embeddings, TACL 2015, sections 2 and 3). No label is looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.linalg import svds

from research.training.voices.word_text import LONGEST, plain_texts
from splitter.words import jieba_tokenizer

SIZE, NEAR = 100, 5
"""Numbers of a vector; how many words to either side are neighbours."""

LEAST_SEEN, LEAST_SOURCES, MOST_WORDS = 15, 5, 20_000
"""A word has a vector if it stands so often, in so many sources, and is among so many most frequent ones."""

_SMOOTH = 0.75
_AT_ONCE = 2_000
_LARGEST = 127


def word_vectors(texts: Mapping[str, Sequence[str]]) -> tuple[list[str], NDArray[np.int8]]:
    """The words of texts, most frequent first, and their vectors; shape (words, SIZE).

    Args:
        texts: by source.
    """
    cut = {source: _cut(of_source) for source, of_source in texts.items()}
    words = _words(cut)
    place = {word: at for at, word in enumerate(words)}
    gap = [-1] * NEAR
    flat = np.array(
        [at for of in cut.values() for one in of for at in (*(place.get(word, -1) for word in one), *gap)],
        np.int32,
    )
    associated = _associated(flat, len(words))
    left, strength, _ = svds(associated, k=min(SIZE, len(words) - 1), rng=0)
    found = left * np.sqrt(strength)
    found *= np.sign(found.sum(0))  # a singular vector's sign is arbitrary
    found /= np.linalg.norm(found, axis=1, keepdims=True) + 1e-9
    return words, np.round(found * (_LARGEST / np.abs(found).max(0))).astype(np.int8)


def _cut(texts: Sequence[str]) -> list[list[str]]:
    cut = jieba_tokenizer().lcut
    parts = (texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE))
    return [cut(one, HMM=False) for part in parts for one in plain_texts(part)]


def _words(cut: Mapping[str, Sequence[Sequence[str]]]) -> list[str]:
    """The words that are frequent enough."""
    seen: Counter[str] = Counter()
    sources: dict[str, int] = defaultdict(int)
    for of_source in cut.values():
        here = Counter(word for one in of_source for word in one)
        seen.update(here)
        for word in here:
            sources[word] += 1
    fit = (
        word
        for word, times in sorted(seen.items(), key=lambda item: (-item[1], item[0]))
        if times >= LEAST_SEEN and sources[word] >= LEAST_SOURCES and _has_key(word)
    )
    return [word for word, _ in zip(fit, range(MOST_WORDS), strict=False)]


def _has_key(word: str) -> bool:
    """Whether a word is as short as a run, and none of blanks."""
    return len(word) <= LONGEST and bool(word.strip()) and word.isprintable() and max(word) <= "\ufffd"


def _associated(flat: NDArray[np.int32], count: int) -> csr_array:
    """Positive pointwise mutual information of words that stand near each other, near ones counting more."""
    together = csr_array((count, count), dtype=np.float32)
    for apart in range(1, NEAR + 1):
        one, other = flat[:-apart], flat[apart:]
        both = (one >= 0) & (other >= 0)
        shares = np.full(both.sum(), 1 / apart, np.float32)
        pairs = coo_array((shares, (one[both], other[both])), shape=(count, count)).tocsr()
        together = together + pairs + pairs.T
    counts = together.tocoo()
    of_word: NDArray[np.float64] = np.asarray(together.sum(1)).ravel()
    smooth = of_word**_SMOOTH
    expected = of_word[counts.row] * smooth[counts.col] / smooth.sum()
    told = np.log(counts.data / expected)
    more = told > 0
    return csr_array((told[more], (counts.row[more], counts.col[more])), shape=(count, count))
