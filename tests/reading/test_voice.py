import unicodedata
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openpyxl import Workbook

from bench import voices
from bench.tools import train_voices
from bench.tools.keyword_rule import excess
from bench.tools.voice_mixed import HELD_BACK, mixed
from bench.tools.voice_posts import Post, digest, held_back, posts, written_posts
from tasks.domain.voices import Voice
from tasks.reading.voice import (
    VOICES,
    RowsOfRuns,
    parse_weights,
    plain,
    plain_texts,
    run_key,
    run_keys,
    voice_of,
    voices_of,
)

SAMPLES = Path("bench/samples/voices")


def test_floors_of_the_weights_in_the_tree():
    # Posts written for this project; docs/voices.md has figures of real ones.
    ratios = voices.run(Path("nowhere"))["ratios"]
    assert ratios["written.buyer_f1"] >= 0.9
    assert ratios["written.buyer_f1"] > ratios["written.buyer_f1_by_keywords"]
    assert ratios["written.voice_right"] >= 0.78


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
    assert voices_of([(text, "") for text in texts]) == [voice_of(text) for text in texts]
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
    assert set(run_keys("字").tolist()) == {run_key(run) for run in (" ", "字", " 字", "字 ", " 字 ")}


def test_labels_are_of_known_voices_and_of_one_text_each():
    rows = [
        line.split("\t")
        for line in (SAMPLES / "labels.tsv").read_text("utf-8").splitlines()
        if line[0] != "#"
    ]
    assert len(rows) > 500
    assert len({(source, key) for source, key, _ in rows}) == len(rows)
    assert {voice for _, _, voice in rows} == {voice.value for voice in VOICES}


def test_posts_are_read_by_source_and_labelled_by_hand_where_a_digest_is_known(tmp_path, monkeypatch):
    reviews, crawled = tmp_path / "reviews", tmp_path / "voices/KaitoHH+xiaohongshu-spider-visualizer"
    reviews.mkdir()
    crawled.mkdir(parents=True)
    (reviews / "waimai_10k_sample.csv").write_text("label,review\n1,很好吃\n0,太慢了\n", "utf-8")
    (crawled / "xiaohongshu.csv").write_text(",,,,,,,,,这款面霜好用\n,,,,,,,,,没人读过\n", "utf-8")
    labels = tmp_path / "labels.tsv"
    labels.write_text(f"# head\nxiaohongshu beauty\t{digest('这款面霜好用')}\tpraise\n", "utf-8")
    monkeypatch.setattr("bench.tools.voice_posts._LABELS", labels)
    found = {post.text: post for post in posts(tmp_path)}
    assert found.keys() == {"很好吃", "太慢了", "这款面霜好用"}
    assert found["太慢了"] == Post("takeaway", "太慢了", Voice.COMPLAINT, good=False)
    assert found["这款面霜好用"].by_hand


def test_sources_held_back_are_not_among_those_that_are_learned_from(tmp_path, monkeypatch):
    (tmp_path / "voices/Berwyn-Git+Dongchedi-Comments").mkdir(parents=True)
    table = tmp_path / "voices/Berwyn-Git+Dongchedi-Comments/filterd_data.csv"
    table.write_text("开了一年\\n很满意,http://a\n", "utf-8")
    labels = tmp_path / "labels.tsv"
    text = "开了一年\n很满意"
    labels.write_text(f"dongchedi\t{digest(text)}\tpraise\n", "utf-8")
    monkeypatch.setattr("bench.tools.voice_posts._LABELS", labels)
    assert held_back(tmp_path) == [Post("dongchedi", text, Voice.PRAISE, by_hand=True)]
    assert posts(tmp_path) == []
    ratios, figures = voices.of_held_back(held_back(tmp_path))
    assert ratios["held_back.buyer_f1_if_all"] == 1
    assert figures["held_back.dongchedi (by hand).buyers"] == 1


def test_texts_of_mixed_sources_are_read_from_tables_sheets_and_scripts(tmp_path):
    def at(path):
        found = tmp_path / path
        found.parent.mkdir(parents=True, exist_ok=True)
        return found

    for name in ("小米", "雷军"):
        at(f"1064yanzu+public_opinion/persistent_data/微博_{name}.csv").write_text(
            f"1,2,3,4,{name}好\n", "utf-8-sig"
        )
    book = Workbook()
    book.active.append(["坚果", "http://a", "很香"])
    book.active.append(["坚果", "http://a", None])
    book.save(at("handsomeWeiye+sanzhisongshu/评论.xlsx"))
    at("kkittywong+FINT400.-term-paper-coding/小红书.txt").write_text("题\t服务器繁忙\t评论\n", "utf-16")
    at("ShenTianyuKaiser+po-opinion-compass/src/pages/home/mock-data.ts").write_text(
        "笔记内容: [\n {\n text: '新到\\n现车', type: 'text' }]", "utf-8"
    )
    found = {source: list(texts()) for source, texts in mixed(tmp_path).items()}
    assert {source: texts for source, texts in found.items() if texts} == {
        "xiaomi weibo": ["小米好", "雷军好"],
        "tmall snacks": ["很香"],
        "xiaohongshu ai": ["服务器繁忙"],
        "xiaohongshu porsche": ["新到\n现车"],
    }
    assert set(HELD_BACK) < found.keys()


@pytest.fixture
def trained(monkeypatch):
    monkeypatch.setattr(train_voices, "LEAST_SOURCES", 1)
    monkeypatch.setattr(train_voices, "LEAST_POSTS", 2)
    monkeypatch.setattr(train_voices, "STEPS", 20)
    good = {Voice.COMPLAINT: False, Voice.PRAISE: True}
    found = [
        Post(f"site {n % 3}", post.text, post.voice, good.get(post.voice), by_hand=n % 2 == 0)
        for n, post in enumerate(written_posts())
    ]
    return found, train_voices.train(found)


def test_training_again_gives_the_same_file_and_the_file_the_same_sums(trained):
    found, weights = trained
    text = train_voices.written(weights, found)
    assert train_voices.written(train_voices.train(found), found) == text
    read = parse_weights(text)
    near = train_voices.sums_of(found, read) - train_voices.sums_of(found, weights)
    assert np.abs(near).max() < 0.2  # two decimals a weight
    assert (
        train_voices.sums_of(found, weights)[:, :-1].argmax(1) == [VOICES.index(p.voice) for p in found]
    ).mean() > 0.9


def test_a_source_is_scored_by_the_others_alone_and_calibration_helps(trained):
    found, weights = trained
    sums = train_voices.held_out(found)
    kinds = [VOICES.index(post.voice) for post in found]
    assert (sums[:, :-1].argmax(1) == kinds).mean() < (
        train_voices.sums_of(found, weights)[:, :-1].argmax(1) == kinds
    ).mean()
    how = train_voices.calibrated(found, sums)
    calibrated = train_voices.with_calibration(weights, how)
    again = how.shares(train_voices.sums_of(found, weights), excess(found))
    told = train_voices.softmax(train_voices.sums_of(found, calibrated)[:, :-1])
    assert np.allclose(told, again, atol=1e-3)
    ratios, figures = voices.of_held_out(found)
    assert 0 <= ratios["held_out.calibration_error"] <= 1
    assert sum(figures["confusion"]["news"].values()) == sum(
        not train_voices.for_calibration(post) for post in found if post.voice is Voice.NEWS
    )


def test_figures():
    found = [Post("s", "a", Voice.PRAISE), Post("s", "b", Voice.NEWS), Post("s", "c", Voice.COMPLAINT)]
    assert voices.buyer_f1(found, np.array([True, True, False])) == 0.5
    assert voices.calibration_error(found, np.array([1.0, 0.0, 0.4])) == 0.2
