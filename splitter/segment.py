"""Cutting Chinese text into words: jieba's algorithm over jieba's dictionary and ours.

jieba's own loop builds the graph of possible words first and then weighs it; here both happen in one pass
from right to left over weights computed beforehand, in half the time. Every cut equals that of a
``jieba.Tokenizer`` with our dictionary, by test on all shared titles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from threading import Lock

from splitter.dictionary import Dictionary, load_dictionary
from splitter.hmm import UnknownWords, load_unknown_words

_BLOCK = re.compile(r"([\u4e00-\u9fd5a-zA-Z0-9+#&._%-]+)")
_BLANK = re.compile(r"(\r\n|\s)")
_CHINESE = re.compile(r"([\u4e00-\u9fd5]+)")
_ALL_CHINESE = re.compile(r"[\u4e00-\u9fd5]+")
_LATIN = re.compile(r"([a-zA-Z0-9]+(?:\.\d+)?%?)")


@dataclass(frozen=True, slots=True)
class Segmenter:
    """Cuts text into words; holds no state, so any number of threads may share it."""

    dictionary: Dictionary
    unknown: UnknownWords

    def cut(self, text: str) -> list[str]:
        """All of a text as words: joined, they are the text again."""
        words: list[str] = []
        for number, block in enumerate(_BLOCK.split(text)):
            if number % 2:
                words += self.cut_block(block)
            elif block:
                for part in _BLANK.split(block):
                    words += [part] if _BLANK.match(part) else part
        return words

    def cut_block(self, block: str) -> list[str]:
        """The words of a text without blanks and punctuation other than ``+#&._%-``."""
        words: list[str] = []
        ends = self._ends(block)
        place, size, single = 0, len(block), 0  # block[single:place] are single characters, not given out yet
        while place < size:
            end = ends[place]
            if end - place > 1:
                if single < place:
                    words += self._singles(block[single:place])
                words.append(block[place:end])
                single = end
            place = end
        if single < size:
            words += self._singles(block[single:])
        return words

    def _ends(self, block: str) -> list[int]:
        """Where the word that begins at each place ends on the likeliest way; the longest of equals."""
        known, floor = self.dictionary.weights.get, self.dictionary.floor
        size = len(block)
        ends = [0] * size
        scores = [0.0] * (size + 1)
        for begin in range(size - 1, -1, -1):
            best = None
            end = begin + 1
            weight = known(block[begin])
            while weight is not None:
                if weight:
                    score = weight + scores[end]
                    if best is None or score >= best:
                        best = score
                        ends[begin] = end
                if end == size:
                    break
                end += 1
                weight = known(block[begin:end])
            if best is None:
                best = floor + scores[begin + 1]
                ends[begin] = begin + 1
            scores[begin] = best
        return ends

    def _singles(self, run: str) -> list[str]:
        """Characters that are no words together: kept apart, or joined where the model sees a new word."""
        if len(run) == 1:
            return [run]
        if self.dictionary.weights.get(run):
            return list(run)
        if _ALL_CHINESE.fullmatch(run):
            return self.unknown.cut(run)
        words: list[str] = []
        for number, part in enumerate(_CHINESE.split(run)):
            if number % 2:
                words += self.unknown.cut(part)
            else:
                words += filter(None, _LATIN.split(part))
        return words


_LOADING = Lock()


def segmenter() -> Segmenter:
    """The one segmenter of this process, loaded by the first who asks."""
    with _LOADING:
        return _load()


@cache
def _load() -> Segmenter:
    return Segmenter(load_dictionary(), load_unknown_words())
