"""Near-duplicate texts: what counts as the same, what is too short to tell, and that the arithmetic is right."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.crawl.similar import (
    BANDS,
    MOST,
    ROWS,
    SHORTEST,
    THRESHOLD,
    bands,
    near,
    plain,
    shingles,
    signature,
    similarity,
)

TEXT = "蒙牛纯牛奶喝出活虫子，客服一直推脱，要求赔偿并公开道歉，以后再也不买了！"


@pytest.mark.parametrize(
    "repost",
    [
        "蒙牛纯牛奶喝出活虫子。客服一直推脱……要求赔偿，并公开道歉 以后再也不买了",
        "蒙牛纯牛奶喝出活虫子,客服一直推脱,要求赔偿并公开道歉,以后再也不买了!!! 😡😡[怒]",
        f"太过分了//@牛奶观察：转发//@user_2013：{TEXT}",
        f"回复@张三:{TEXT} @质量监督 http://t.cn/zWk74O6",
        f"{TEXT} t.cn/zWk74O6",
    ],
)
def test_marks_names_addresses_and_comments_before_a_repost_make_no_difference(repost: str) -> None:
    assert plain(repost) == plain(TEXT)


@pytest.mark.parametrize(
    "edited",
    [
        f"【转载】{TEXT}",
        f"{TEXT}（来自网络）",
        TEXT.replace("赔偿", "退款"),
        TEXT.replace("一直", ""),
        TEXT[:-6],
    ],
)
def test_a_small_edit_is_near_and_shares_a_band(edited: str) -> None:
    one, other = shingles(plain(TEXT)), shingles(plain(edited))
    assert near(one, other) == similarity(one, other) < 1
    assert set(bands(one)) & set(bands(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("一汽马自达阿特兹车身B柱异响希望解决", "一汽马自达阿特兹车内后视镜掉落"),
        ("一汽马自达阿特兹车身和中控台异响", "一汽马自达阿特兹车身B柱和中控台异响"),
        (TEXT, "蒙牛纯牛奶味道很好，物流也快，客服态度不错，以后还会再买！"),
        ("好评", "好评"),
        ("很好喝，好评！", "很好喝 好评"),
    ],
)
def test_other_texts_and_short_ones_are_not_near(one: str, other: str) -> None:
    assert near(shingles(plain(one)), shingles(plain(other))) is None


def test_too_short_means_no_shingles_and_no_bands() -> None:
    assert shingles("八个字才可以比") == frozenset()
    assert len(shingles("八个字才可以比较")) == SHORTEST - 2
    assert bands(frozenset()) == []


def test_a_huge_text_is_compared_by_its_beginning() -> None:
    assert len(plain("牛奶" * 1_000_000)) == MOST


def test_the_hash_is_the_same_in_every_process() -> None:
    program = f"from tasks.crawl.similar import *; print(bands(shingles(plain({TEXT!r}))))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONIOENCODING": "utf-8"},
            capture_output=True,
            check=True,
            text=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert printed == {str(bands(shingles(plain(TEXT))))}


@given(st.text())
def test_only_letters_and_digits_are_compared(text: str) -> None:
    assert all(char.isalnum() for char in plain(text))


@given(
    st.lists(
        st.tuples(st.sampled_from("蒙牛奶好喝的a1"), st.sampled_from(["", "，", "！ ", "😡", "…", "。\n"]))
    )
)
def test_marks_between_letters_change_nothing(parts: list[tuple[str, str]]) -> None:
    assert plain("".join(map("".join, parts))) == "".join(letter for letter, _ in parts)


@given(
    st.sets(st.text(min_size=3, max_size=3), max_size=30),
    st.sets(st.text(min_size=3, max_size=3), max_size=30),
)
def test_similarity_is_jaccard(one: set[str], other: set[str]) -> None:
    found = similarity(frozenset(one), frozenset(other))
    assert found == (len(one & other) / len(one | other) if one | other else 0.0)
    assert found == similarity(frozenset(other), frozenset(one))


@pytest.mark.parametrize("jaccard", [0.2, 0.5, 0.8])
def test_equal_minima_estimate_the_similarity(jaccard: float) -> None:
    """Broder 1997: a hash function's minima are equal with the probability of the Jaccard similarity."""
    rng = Random(3)
    equal = trials = 0
    for _ in range(60):
        shared = [f"{rng.random()}" for _ in range(int(200 * jaccard))]
        own = [f"{rng.random()}" for _ in range(200 - len(shared))]
        half = len(own) // 2
        one, other = frozenset(shared + own[:half]), frozenset(shared + own[half:])
        equal += sum(a == b for a, b in zip(signature(one), signature(other), strict=True))
        trials += BANDS * ROWS
    assert equal / trials == pytest.approx(jaccard, abs=0.04)


def test_texts_at_the_threshold_meet_nearly_always() -> None:
    rng = Random(5)
    met = 0
    for _ in range(300):
        texts = [f"{rng.random()}" for _ in range(100)]
        aside = round(100 * (1 - THRESHOLD) / 2)
        one, other = frozenset(texts[aside:]), frozenset(texts[:-aside])
        met += bool(set(bands(one)) & set(bands(other)))
    assert met / 300 == pytest.approx(1 - (1 - THRESHOLD**ROWS) ** BANDS, abs=0.03)
