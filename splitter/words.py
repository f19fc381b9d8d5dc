"""The words of a name: jieba's cut with our dictionary; Latin letters, numbers and other scripts are kept whole.

jieba's dictionary takes about half a second to read. A process that was given a folder (`keep_cache_in`) keeps it there
in the form it has in memory, which is read in a third of the time.
"""

from __future__ import annotations

import logging
import marshal
import os
import re
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from itertools import groupby
from math import log
from pathlib import Path
from threading import Lock
from typing import Any

from splitter.lexicon import user_words

_PIECE = re.compile(r"\w[\w+#&.%'-]*|[^\w\s]")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_ENDS = "+#&.%'-"
_LOADING = Lock()
_cache_folder: Path | None = None


def words_of(text: str) -> list[str]:
    """The words of a text (normalized) in their order, none empty; a punctuation mark stands for itself."""
    words: list[str] = []
    cut = tokenizer().lcut
    for piece in _PIECE.findall(text):
        if piece.isascii():
            words.append(piece.strip(_ENDS) if len(piece) > 1 else piece)
        else:
            words += _joined(cut(piece))
    return words


def _joined(words: list[str]) -> list[str]:
    """Words of one piece; what was cut inside a word in Latin or another script is joined again."""
    joined: list[str] = []
    for chinese, run in groupby(words, _has_chinese):
        if chinese:
            joined += run
        elif letters := "".join(run).strip(_ENDS + "_"):
            if joined and joined[-1] + letters in user_words():
                joined[-1] += letters  # jieba cuts before other letters: 茶π
            else:
                joined.append(letters)
    return joined


def _has_chinese(word: str) -> bool:
    return "\u4e00" <= word[0] <= "\u9fff" or _CHINESE.search(word) is not None


def rarity(word: str) -> float | None:
    """The negative log probability of a word by jieba's dictionary and ours; None for a word of neither."""
    frequency = tokenizer().FREQ.get(word)  # 0: it only begins a word
    return greatest_rarity() - log(frequency) if frequency else None


def greatest_rarity() -> float:
    """Jieba's rarity of a character that is no word."""
    return log(tokenizer().total)


def keep_cache_in(folder: Path | None) -> None:
    """Sets the folder jieba's dictionary is kept in, before the first cut; it need neither exist nor be writable.

    Args:
        folder: of this user alone; None: nothing is kept.
    """
    global _cache_folder
    _cache_folder = folder


def tokenizer() -> Any:
    """The ``jieba.Tokenizer`` of this process, with our dictionary, loaded by the first call; threads may share it."""
    with _LOADING:
        return _tokenizer()


@cache
def _tokenizer() -> Any:
    found = jieba_tokenizer(_cache_folder)
    for word, (frequency, _) in user_words().items():
        found.add_word(word, frequency)
    return found


def jieba_tokenizer(cache_folder: Path | None = None) -> Any:
    """A new ``jieba.Tokenizer`` with jieba's dictionary alone.

    Args:
        cache_folder: where the dictionary is kept as it is in memory; None: nowhere.
    """
    jieba = _import_jieba()
    found = jieba.Tokenizer()
    path = cache_folder / f"jieba-{jieba.__version__}.cache" if cache_folder else None
    kept = _read(path) if path else None
    found.FREQ, found.total = kept or found.gen_pfdict(found.get_dict_file())
    found.initialized = (
        True  # else jieba would keep a cache in the folder for temporary files, which all users share
    )
    if path and not kept:
        _write(path, marshal.dumps((found.FREQ, found.total)))
    return found


def _read(path: Path) -> tuple[dict[str, int], int] | None:
    """The dictionary in a cache file; None where there is none, or one that another user could have written."""
    # At once: `marshal.load`, with which jieba reads its own cache, takes as long as reading the dictionary anew.
    with suppress(OSError, EOFError, ValueError, TypeError), path.open("rb") as file:
        status = os.fstat(file.fileno())
        if status.st_uid == os.geteuid() and not status.st_mode & 0o022:
            frequencies, total = marshal.loads(file.read())
            return frequencies, total
    return None


def _write(path: Path, content: bytes) -> None:
    """Writes a cache file where that is possible; no process ever reads half of one."""
    with suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = Path(file.name)
            try:
                file.write(content)
                file.flush()
                written.replace(path)
            except OSError:
                written.unlink()


@cache
def _import_jieba() -> Any:
    """The module jieba, quiet: by itself it logs to standard error, and newer Pythons warn of its escapes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import jieba
    for name in ("jieba", "jieba._compat"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).setLevel(logging.WARNING)
    return jieba
