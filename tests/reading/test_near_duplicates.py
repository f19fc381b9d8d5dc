"""Near-duplicate texts: what counts as the same, what is too short to tell, and that the arithmetic is right."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reading.copies.near_duplicates import (
    BANDS,
    BINS,
    MOST,
    ROWS,
    SHORTEST,
    THRESHOLD,
    bands,
    plain,
    shingles,
    signature,
    similarity,
    similarity_if_near,
)

TEXT = "蒙牛纯牛奶喝出活虫子，客服一直推脱，要求赔偿并公开道歉，以后再也不买了！"

HASHES = st.integers(0, 2**32 - 1)
MARKLESS = st.characters(exclude_characters="@＠﹫[［﹇/／℀℁℅℆")


def grams(text: str) -> frozenset[int]:
    return frozenset(shingles(plain(text)))


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
    one, other = grams(TEXT), grams(edited)
    assert similarity_if_near(one, other) == similarity(one, other) < 1
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
    assert similarity_if_near(grams(one), grams(other)) is None


def test_too_short_means_no_shingles_and_no_bands() -> None:
    assert shingles("八个字才可以比") == ()
    assert len(shingles("八个字才可以比较")) == SHORTEST - 2
    assert bands(()) == []


def test_a_huge_text_is_compared_by_its_beginning() -> None:
    assert len(plain("牛奶" * 1_000_000)) == MOST


def test_the_hash_is_the_same_in_every_process() -> None:
    program = f"from tasks.reading.copies.near_duplicates import *; print(bands(shingles(plain({TEXT!r}))))"
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


@given(st.text(MARKLESS))
def test_characters_read_alone_are_what_the_whole_text_normalised_is(text: str) -> None:
    assert plain(text) == "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def test_an_accent_written_apart_is_the_letter_with_it() -> None:
    assert plain("Cafe\u0301 del Mar") == plain("CAFÉ DEL MAR") == "cafédelmar"


@given(st.text("奶粉牛a1𠮷", min_size=SHORTEST, max_size=60))
def test_equal_grams_and_only_they_have_equal_hashes(text: str) -> None:
    units = text.encode("utf-16-le")
    written = [units[at : at + 6] for at in range(0, len(units) - 4, 2)]
    hashes = shingles(text)
    assert len(hashes) == len(written)
    assert len(set(hashes)) == len(set(written)) == len(set(zip(hashes, written, strict=True)))
    assert all(0 <= one < 1 << 32 for one in hashes)


def test_hashes_and_bands_are_for_ever() -> None:
    """They are stored: another value would be another text."""
    assert shingles("阿特兹车身异响厉害")[:2] == (2970946828, 24622933)
    assert bands(shingles("阿特兹车身异响厉害")) == [
        261776643605142,
        85208956370344,
        194009669108572,
        193315446154359,
        69385028852942,
        184544704712709,
        24389886809318,
    ]


@given(st.sets(HASHES, max_size=30), st.sets(HASHES, max_size=30))
def test_similarity_is_jaccard(one: set[int], other: set[int]) -> None:
    found = similarity(frozenset(one), frozenset(other))
    assert found == (len(one & other) / len(one | other) if one | other else 0.0)
    assert found == similarity(frozenset(other), frozenset(one))


@given(st.lists(HASHES, min_size=1, max_size=80), st.randoms())
def test_neither_order_nor_repeats_change_a_signature(hashes: list[int], rng: Random) -> None:
    found = signature(hashes)
    assert len(found) == BINS
    assert set(found) <= set(hashes)
    shuffled = [*hashes, hashes[0]]
    rng.shuffle(shuffled)
    assert signature(shuffled) == found


@pytest.mark.parametrize("size", [12, 40, 200])
@pytest.mark.parametrize("jaccard", [0.2, 0.5, 0.8])
def test_equal_values_estimate_the_similarity(jaccard: float, size: int) -> None:
    """Li, Owen, Zhang 2012 and Shrivastava 2017: also where most bins are empty."""
    rng = Random(3)
    equal = trials = 0
    for _ in range(400):
        fresh = [rng.getrandbits(32) for _ in range(size)]
        shared = round(size * jaccard)
        half = (size - shared) // 2
        one, other = fresh[: shared + half], fresh[:shared] + fresh[shared + half :]
        equal += sum(a == b for a, b in zip(signature(one), signature(other), strict=True))
        trials += BINS
    assert equal / trials == pytest.approx(round(size * jaccard) / size, abs=0.04)


def test_texts_at_the_threshold_meet_nearly_always() -> None:
    rng = Random(5)
    met = 0
    for _ in range(300):
        texts = [rng.getrandbits(32) for _ in range(100)]
        aside = round(100 * (1 - THRESHOLD) / 2)
        one, other = texts[aside:], texts[:-aside]
        met += bool(set(bands(one)) & set(bands(other)))
    assert met / 300 == pytest.approx(1 - (1 - THRESHOLD**ROWS) ** BANDS, abs=0.03)
