"""The words of a name: what the segmenter cuts, with Latin letters, numbers and other scripts kept whole."""

from __future__ import annotations

import re

from splitter.segment import Segmenter

_PIECE = re.compile(r"\w[\w+#&.%'-]*|[^\w\s]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ENDS = "+#&.%'-"


def words_of(segmenter: Segmenter, text: str) -> list[str]:
    """The words of a text (normalized) in their order, none empty; a punctuation mark stands for itself."""
    words: list[str] = []
    cut = segmenter.cut_block
    for piece in _PIECE.findall(text):
        if piece.isascii():
            words.append(piece.strip(_ENDS) if len(piece) > 1 else piece)
        else:
            words += _joined(cut(piece))
    return words


def _joined(words: list[str]) -> list[str]:
    """Words of one piece, with what was cut inside a word in Latin or another script put together again."""
    joined: list[str] = []
    letters = ""
    for word in words:
        if "\u4e00" <= word[0] <= "\u9fff" or _CHINESE.search(word):
            if letters:
                joined += _stripped(letters)
                letters = ""
            joined.append(word)
        else:
            letters += word
    if letters:
        joined += _stripped(letters)
    return joined


def _stripped(letters: str) -> list[str]:
    word = letters.strip(_ENDS + "_")
    return [word] if word else []
