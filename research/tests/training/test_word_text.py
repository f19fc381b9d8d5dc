"""Texts as the network over words sees them."""

from collections import defaultdict

import numpy as np
import pytest

from research.training.voices.word_text import RowsOfRuns, plain, plain_texts, run_key, runs_of


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
        "/x",
        "\uffff",
        "a@b",
        "-c",
        "\u0301",
        "12",
        "長い" * 300,
    ]
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
