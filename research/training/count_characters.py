"""Counts the common characters of Chinese, Japanese and Korean for `tasks.reading.charsets`.

    python -m research.training.count_characters KANJI.csv REVIEWS.json... > tasks/reading/common-characters.txt

Chinese is counted in the words of jieba's dictionary (MIT), each by its frequency; traditional Chinese in the same
words, converted by zhconv. Kanji come from `data/wikipedia_characters.csv` of scriptin/kanji-frequency (c343b96,
CC BY 4.0). Hangul are counted in the reviews of e9t/nsmc (`raw/*.json`, cc0670e, CC0).
"""

from __future__ import annotations

import csv
import json
import sys
from collections import Counter
from importlib.resources import files
from itertools import accumulate
from pathlib import Path

from zhconv import convert

_SHARES = (0.2, 0.4, 0.6, 0.8, 0.9, 0.96, 0.99)
"""Ends of the groups of characters: the first one has the characters that make up a fifth of a text."""
_HEAD = """# Common characters of a language by groups: the share of a text that a group makes up, and its characters.
# Counted by research/training/count_characters.py, which names the sources.
"""


def main() -> None:
    """Print the groups of each language."""
    print(_HEAD, end="")
    kanji, *reviews = map(Path, sys.argv[1:])
    counted = {
        "zh-hans": _count_chinese("zh-hans"),
        "zh-hant": _count_chinese("zh-hant") + _count_chinese("zh-tw"),  # 爲, 裏 and 為, 裡
        "ja": _count_kanji(kanji),
        "ko": _count_hangul(reviews),
    }
    for language, counts in counted.items():
        for share, group in _group(counts):
            print(language, f"{share:.2f}", group)


def _group(counts: Counter[str]) -> list[tuple[float, str]]:
    groups = ["" for _ in _SHARES]
    ordered = counts.most_common()
    before = accumulate((number for _, number in ordered), initial=0)
    for (char, _), so_far in zip(ordered, before, strict=False):
        place = sum(so_far >= end * counts.total() for end in _SHARES)
        if place < len(_SHARES):
            groups[place] += char
    begins = (0.0, *_SHARES)
    return [(end - begin, group) for begin, end, group in zip(begins, _SHARES, groups, strict=False)]


def _count_chinese(script: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for line in files("jieba").joinpath("dict.txt").read_text("utf-8").splitlines():
        word, frequency, *_ = line.split(" ")
        for char in convert(word, script):
            if "\u4e00" <= char <= "\u9fff":
                counts[char] += int(frequency)
    return counts


def _count_kanji(file: Path) -> Counter[str]:
    with file.open(encoding="utf-8") as lines:
        return Counter(
            {row["char"]: int(row["char_count"]) for row in csv.DictReader(lines) if int(row["rank"])}
        )


def _count_hangul(files: list[Path]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for file in files:
        for review in json.loads(file.read_text("utf-8")):
            counts.update(char for char in review["review"] if "\uac00" <= char <= "\ud7a3")
    return counts


if __name__ == "__main__":
    main()
