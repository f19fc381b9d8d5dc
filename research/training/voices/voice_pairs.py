"""Invented posts about faults and merits that are there or denied, so that a negation turns a voice round.

没异响 praises and 有异响 complains; 不保温 complains and 不烫手 praises. Others who speak of the same goods and faults are
no buyers: they ask, chat, sell or report. `research/samples/voices/pairs.yaml` has the
words, written for this project. Each post joins a time or a product, one or two of these, and a tail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random

import yaml

from research.tools.pagetruth import SAMPLES
from research.training.voices.voice_posts import Post
from tasks.domain.voices import Voice
from tasks.reading.judge.voice import VOICES

EACH = 2000
"""Posts of praise, and of complaint; of each other voice a quarter."""
_BUYERS = (Voice.COMPLAINT, Voice.PRAISE)
_TIMES = ("新", "旧", "家里的", "这台", "去年的")
_WORDS = SAMPLES / "voices/pairs.yaml"

Words = Mapping[str, Sequence[str]]


def invented_posts(seed: int = 0) -> list[Post]:
    """Return posts of every voice, each text once."""
    words = read_words()
    random = Random(seed)
    makers: list[tuple[Voice, int, Callable[[Random, Words], str]]] = [
        (Voice.PRAISE, EACH, _merit),
        (Voice.COMPLAINT, EACH, _fault),
        *((voice, EACH // 4, partial(_said, voice)) for voice in VOICES if voice not in _BUYERS),
    ]
    found: dict[str, Post] = {}
    for voice, count, make in makers:
        wanted = len(found) + count
        while len(found) < wanted:
            text = make(random, words)
            found.setdefault(text, Post("invented pairs", text, voice))
    return list(found.values())


def read_words() -> Words:
    """Return the words that posts are made of, by their use."""
    words: Words = yaml.safe_load(_WORDS.read_text("utf-8"))
    return words


def _merit(random: Random, words: Words) -> str:
    said = random.sample([_denied_noun, _denied_verb, _never], random.choice((1, 2, 2)))
    return _told(random, words, [one(random, words) for one in said])


def _fault(random: Random, words: Words) -> str:
    said = random.sample([_noun, _verb, _denied_merit, _lacking], random.choice((1, 1, 2)))
    return _told(random, words, [one(random, words) for one in said])


def _said(voice: Voice, random: Random, words: Words) -> str:
    """Return what somebody who is no buyer says about goods."""
    return random.choice(words[voice]).format(
        goods=random.choice(("", "", *_TIMES)) + random.choice(words["goods"]),
        verb=random.choice(words["fault_verbs"]),
        noun=random.choice(words["fault_nouns"]),
        lacking=random.choice(words["lacking"]),
    )


def _told(random: Random, words: Words, said: Sequence[str]) -> str:
    head = random.choice((
        "", "", random.choice(words["times"]) + random.choice(("", "，")), random.choice(words["goods"]),
        random.choice(words["goods"]) + random.choice(words["times"]) + "，",
    ))  # fmt: skip
    return head + random.choice("，，，。 ").join(said) + random.choice(words["tails"])


def _denied_noun(random: Random, words: Words) -> str:
    denial = random.choice(
        ("没", "没有", "没有任何", "没一点", "无", "零", "毫无", "也没有", "没什么", "没发现")
    )
    return denial + random.choice(words["fault_nouns"])


def _denied_verb(random: Random, words: Words) -> str:
    denial = random.choice(("不", "不", "也不", "不会", "从不", "一点不", "一点都不", "完全不", "没有", "没"))
    return denial + random.choice(words["fault_verbs"])


def _never(random: Random, words: Words) -> str:
    denial = random.choice(("从没", "从来没", "从未", "一次没", "一次都没", "没", "到现在没", "三年没"))
    return denial + random.choice(words["mishaps"]).removesuffix("过") + "过"


def _noun(random: Random, words: Words) -> str:
    there = random.choice(("有", "有", "有股", "都是", "全是", "居然有", "好多", "一股"))
    return there + random.choice(words["fault_nouns"])


def _verb(random: Random, words: Words) -> str:
    there = random.choice(("", "老", "老是", "总是", "会", "就", "一直", "开始", "一用就", "动不动就"))
    return there + random.choice(words["fault_verbs"]) + random.choice(("", "", "了", "得很"))


def _denied_merit(random: Random, words: Words) -> str:
    denial = random.choice(
        ("不", "不", "也不", "根本不", "完全不", "越来越不", "就是不", "一点不", "一点都不")
    )
    return denial + random.choice(words["merits"])


def _lacking(random: Random, words: Words) -> str:
    return random.choice(("没", "没有", "连个", "也没", "到现在没")).replace(
        "连个", "都没有"
    ) + random.choice(words["lacking"])
