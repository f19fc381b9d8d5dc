import unicodedata
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.voices import Voice
from tasks.reading.voice import VOICES, voice_of, voices_of
from tasks.reading.voice_text import RowsOfRuns, plain, plain_texts, run_key, runs_of

WRITTEN = Path(__file__).parents[2] / "research" / "samples" / "voices" / "posts.tsv"
BUYERS = {Voice.COMPLAINT, Voice.PRAISE}


def test_floors_of_the_network_in_the_tree():
    # Posts written for this project; docs/voices.md has figures of real ones.
    lines = [line.split("\t") for line in WRITTEN.read_text("utf-8").splitlines() if not line.startswith("#")]
    said = [(Voice(voice), voice_of(text)) for voice, text in lines]
    right = sum(found.voice == voice for voice, found in said)
    both = sum(found.buyer > 0.5 and voice in BUYERS for voice, found in said)
    either = sum(found.buyer > 0.5 for _, found in said) + sum(voice in BUYERS for voice, _ in said)
    assert 2 * both / either >= 0.9
    assert right / len(said) >= 0.78


@pytest.mark.parametrize(
    ("text", "voice"),
    [
        ("买来两个月屏幕就坏了，售后推来推去，再也不买了", Voice.COMPLAINT),
        ("味道很好，包装也严实，全家都喜欢，会回购的", Voice.PRAISE),
        ("请问这款手机支持无线充电吗？", Voice.QUESTION),
        ("记者日前从市场监管部门获悉，两批次奶粉被召回", Voice.NEWS),
        ("转发并关注我们，抽三位送新品一份，周五开奖", Voice.COMPANY),
    ],
)
def test_who_speaks(text, voice):
    said = voice_of(text)
    assert said.voice == voice
    assert (said.buyer > 0.5) == (voice in {Voice.COMPLAINT, Voice.PRAISE})


def test_sentiment_is_told_beside_the_voice():
    assert voice_of("质量很差，用了一天就坏，非常失望").sentiment < -0.5
    assert voice_of("质量很好，用着舒服，非常满意").sentiment > 0.5


@pytest.mark.parametrize("text", ["", " \n", "a", "😀" * 500, "字" * 10_000, "http://x.cn/a @谁 [哈哈] 12.5"])
def test_any_text_has_a_voice(text):
    said = voice_of(text)
    assert 1 / len(VOICES) <= said.probability <= 1
    assert 0 <= said.buyer <= 1
    assert -1 <= said.sentiment <= 1


def test_a_title_is_read_only_where_there_is_no_text():
    question = "请问这款奶粉一岁能喝吗？"
    answer = "孩子喝了八个月，很喜欢，没有闹过肚子，推荐"
    assert voice_of(" ", question) == voice_of(question)
    assert voice_of(answer, question) == voice_of(answer)


def test_marks_of_a_site_are_taken_out():
    assert plain("转发 @某某 看http://t.cn/Rz1 [哈哈] １２３元 😀") == "转发 A 看U F 0元 F"


def test_traditional_characters_are_simplified_where_simplified_chinese_has_them_not():
    assert plain("這款筆電很喜歡，著名的質感") == "这款笔电很喜欢,著名的质感"


def test_texts_are_made_plain_together_as_each_alone():
    texts = [
        "看[哈",
        "哈]了",
        "",
        " ",
        "ＷＷＷ．a.cn/１ 对…",
        "http://t.cn",
        "/x",
        "\uffff",
        "a@b",
        "-c",
        "e",
        "\u0301",
        "12",
        "34",
        "長い" * 300,
    ]
    assert plain_texts(texts) == [plain(text) for text in texts]
    together = voices_of([(text, "") for text in texts])
    for one, alone in zip(together, map(voice_of, texts), strict=True):
        assert one.voice == alone.voice
        assert one[1:4] == pytest.approx(alone[1:4], abs=1e-6)
    assert plain("e\u0301…") == unicodedata.normalize("NFKC", "e\u0301…")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_texts_together_are_as_each_alone(texts):
    assert plain_texts(texts) == [plain(text) for text in texts]


@pytest.mark.parametrize("count", [1, 2, 600, 70_000])
def test_rows_of_runs_are_those_of_a_search(count):
    keys = np.random.default_rng(count).integers(0, 1 << 63, count, np.uint64)
    keys[: count // 4] = keys[count // 4 : count // 4 * 2]
    runs = np.concatenate((keys[::7], keys[::7] + np.uint64(1)))
    rows_of = defaultdict(list)
    for row, key in enumerate(keys.tolist()):
        rows_of[key].append(row)
    places, rows = RowsOfRuns(keys).of(runs)
    assert sorted(zip(places.tolist(), rows.tolist(), strict=True)) == [
        (place, row) for place, run in enumerate(runs.tolist()) for row in rows_of.get(run, ())
    ]


def test_runs_are_of_one_to_four_characters():
    assert run_key("ab") == ord("a") << 16 | ord("b")
    assert set(runs_of(["字"])[0].tolist()) == {run_key(run) for run in (" ", "字", " 字", "字 ", " 字 ")}
