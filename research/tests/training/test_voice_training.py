"""Posts whose voice is known, the training of the network on them, and its scores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from openpyxl import Workbook

from research.bench.quality import voices
from research.training import train_voices
from research.training.voices import voice_pairs, voice_student, voice_words
from research.training.voices.voice_apart import LABELS, SOURCES, apart
from research.training.voices.voice_files import sources
from research.training.voices.voice_layers import Fit, fit_layers
from research.training.voices.voice_mixed import HELD_BACK, SEARCHED, mixed
from research.training.voices.voice_posts import Post, all_texts, digest, held_back, posts, written_posts
from research.training.voices.voice_rated import rated_posts, without_judgement, written_faults
from research.training.voices.voice_student import Steps
from research.training.voices.voice_words import word_vectors
from splitter.catalog.names import Group
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.reading.judge import voice
from tasks.reading.judge.voice import VOICES

SAMPLES = Path(__file__).parents[2] / "samples" / "voices"


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
    monkeypatch.setattr("research.training.voices.voice_posts._LABELS", labels)
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
    monkeypatch.setattr("research.training.voices.voice_posts._LABELS", labels)
    assert held_back(tmp_path) == [Post("dongchedi", text, Voice.PRAISE, by_hand=True)]
    assert posts(tmp_path) == []
    judged = [VoiceJudgement("other", 0.6, 0.3, 0.0, "")]
    ((ratios, figures),) = voices.of_posts("held_back", held_back(tmp_path), judged)
    assert ratios["held_back.buyer_f1_if_all"] == 1
    assert ratios["held_back.complaint_recall"] == 0
    assert figures["held_back.dongchedi.buyers"] == 1


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
def small(monkeypatch):
    """Few runs and steps, so that training takes a second."""
    for module in (voice, voice_student):
        monkeypatch.setattr(module, "BITS", 12)
    monkeypatch.setattr(train_voices, "TEACHER", Fit(hidden=16, networks=1, rounds=60, at_once=32))
    monkeypatch.setattr(train_voices, "OF_TEACHER", Steps(32, 20, 0.02))
    monkeypatch.setattr(train_voices, "OF_LABELS", Steps(32, 20, 0.01))
    monkeypatch.setattr(voice_pairs, "EACH", 20)
    found = [
        Post(f"site {n % 3}", post.text, post.voice, by_hand=True) for n, post in enumerate(written_posts())
    ]
    return train_voices.read_texts(
        found, {"site 0": [post.text for post in found[::3]], "site 4": ["水果很新鲜"]}
    )


def learned(_kin):
    return True


@pytest.mark.slow
def test_training_again_gives_the_same_file_and_the_file_the_same_network(small):
    whole = train_voices.train(small, learned)
    file = train_voices.write_network(whole)
    assert train_voices.write_network(train_voices.train(small, learned)) == file
    texts = [post.text for post in small.posts]
    told = whole.told(texts)
    assert np.array_equal(voice.read_network(file).told(texts), told)
    kinds = [VOICES.index(post.voice) for post in small.posts]
    assert (told[:, :-1].argmax(1) == kinds).mean() > 0.8
    moods = [
        post.voice is Voice.PRAISE for post in small.posts if post.voice in (Voice.PRAISE, Voice.COMPLAINT)
    ]
    rated = [n for n, post in enumerate(small.posts) if post.voice in (Voice.PRAISE, Voice.COMPLAINT)]
    assert ((told[rated, -1] > 0) == moods).mean() > 0.9


@pytest.mark.slow
def test_a_group_of_sources_that_is_left_out_is_not_learned_from(small):
    first, second = (
        train_voices.train(replace(small, posts=posts_), lambda kin: kin != "site 1")
        for posts_ in (
            small.posts,
            [replace(post, voice=Voice.NEWS) if post.kin == "site 1" else post for post in small.posts],
        )
    )
    assert train_voices.write_network(first) == train_voices.write_network(second)


@pytest.mark.slow
def test_probabilities_are_calibrated(small):
    whole = train_voices.train(small, learned)
    whole = replace(whole, out=whole.out / 10)
    texts = [post.text for post in small.posts]
    before = whole.told(texts)
    alone = train_voices.calibrated(small.posts, before)
    assert train_voices.with_calibration(whole, alone, {}).told(texts)[:, :-1].argmax(1).tolist() == [
        VOICES.index(post.voice) for post in small.posts
    ]
    alone = replace(alone, factor=1.0)  # the posts were learned from: they are told with certainty
    buyers = [n for n, post in enumerate(small.posts) if post.voice in (Voice.COMPLAINT, Voice.PRAISE)]
    in_shops = train_voices.calibrated_there([small.posts[n] for n in buyers], before[buyers], alone)
    network = train_voices.with_calibration(whole, alone, {Group.SHOP: in_shops})
    told = network.told(texts)
    assert np.allclose(voice_student.shares(told[:, :-1]), alone.shares(before), atol=1e-4)
    assert np.allclose(told[:, -1], before[:, -1])
    of_shop = network.factors[Group.SHOP] * told[:, :-1] + network.shifts[Group.SHOP]
    assert np.allclose(voice_student.shares(of_shop), in_shops.shares(before), atol=1e-4)
    assert (in_shops.shares(before)[:, :2].sum(1) > alone.shares(before)[:, :2].sum(1)).mean() > 0.9
    assert network.factors[Group.COMPLAINTS] == 1
    file = voice.read_network(train_voices.write_network(network))
    assert file.factors == pytest.approx(network.factors)
    assert all(np.array_equal(file.shifts[kind], network.shifts[kind]) for kind in network.shifts)


def test_packed_rows_tell_what_the_layers_tell(small):
    layers = voice_student.begin()
    texts = [post.text for post in small.posts]
    runs = voice_student.runs_in(texts)
    seen = (runs @ layers.rows).reshape(len(texts), -1)
    told = np.maximum(seen @ layers.hidden, 0) @ layers.out
    assert np.allclose(voice_student.packed(layers).told(texts), told, atol=0.15)
    assert runs.shape == (2 * len(texts), 1 << voice_student.BITS)
    assert 0 < (np.diff(runs.indptr)[1::2] > 0).mean() < 1


def test_invented_posts_turn_round_with_a_negation():
    found = voice_pairs.invented_posts()
    assert found == voice_pairs.invented_posts()
    assert len({post.text for post in found}) == len(found)
    assert {post.voice for post in found} == set(VOICES)
    words = voice_pairs.read_words()
    denied = [denial + noun for denial in ("没", "没有", "无", "零") for noun in words["fault_nouns"]]
    denying = {
        voice: [any(one in post.text for one in denied) for post in found if post.voice is voice]
        for voice in (Voice.PRAISE, Voice.COMPLAINT)
    }
    assert not any(denying[Voice.COMPLAINT])
    assert np.mean(denying[Voice.PRAISE]) > 0.3
    assert not {post.text for post in found} & {post.text for post in written_posts()}


def test_sources_found_by_a_name_are_learned_from():
    listed = set(mixed(Path())) - set(HELD_BACK)
    assert all(of_kind and of_kind <= listed for of_kind in SEARCHED.values())


def test_several_networks_are_one_that_tells_the_mean_of_what_they_tell():
    random = np.random.default_rng(1)
    seen = np.hstack((random.normal(3, 2, (60, 5)), np.ones((60, 1)))).astype(np.float32)
    kinds, weight = random.integers(0, 3, 60), np.ones(60)
    layers = fit_layers(seen, kinds, weight, 3, Fit(hidden=4, networks=2, rounds=2))
    alone = fit_layers(seen, kinds, weight, 3, Fit(hidden=4, networks=1, rounds=2))
    assert [layer.shape for layer in layers] == [(6, 8), (9, 3)]
    assert np.allclose(layers[0][:, :4], alone[0])
    assert np.allclose(layers[1][:4] * 2, alone[1][:4])


def test_judging_words_are_taken_out_of_rated_reviews(tmp_path):
    assert without_judgement("太差了！领口三天就松了，差评") == "领口三天就松了"
    assert without_judgement("领口三天就松了") == ""
    assert without_judgement("太差了！差评") == ""
    folder = tmp_path / "voices/SophonPlus+ChineseNlpCorpus/datasets/waimai_10k"
    folder.mkdir(parents=True)
    (folder / "waimai_10k.csv").write_text("label,review\n0,垃圾！汤全洒在袋子里面\n1,好吃\n", "utf-8")
    known = [Post("takeaway", "好吃", Voice.PRAISE, good=True)]
    found = {post.text: post for post in rated_posts(tmp_path, known)}
    assert found["垃圾！汤全洒在袋子里面"].voice is Voice.COMPLAINT
    assert found["汤全洒在袋子里面"].kin == "takeaway"
    assert "好吃" not in found
    assert {post.source for post in written_faults()} == {"written faults"}


def test_texts_set_apart_are_read_with_their_context(tmp_path, monkeypatch):
    pages = tmp_path / "pages-2024"
    pages.mkdir()
    (tmp_path / "voices/xudie+mall/src/api/testdata").mkdir(parents=True)
    script = tmp_path / "voices/xudie+mall/src/api/testdata/comment.js"
    script.write_text('x = {"feedback": "纸很\\n软", feedback: "收到了"}', "utf-8")
    (pages / "more-forum-8cf0af42df.html").write_text(
        "<table><tr><td class=t_f>改 <b>一下</b>吧</td></table>", "utf-8"
    )
    labels = tmp_path / "apart.tsv"
    labels.write_text(
        f"tmall tissues\t{digest('纸很' + chr(10) + '软')}\tpraise\tshop\t5\t甲\n"
        f"game forum\t{digest('改 一下 吧')}\tcomplaint\t\t\t\n",
        "utf-8",
    )
    monkeypatch.setattr("research.training.voices.voice_apart.LABELS", labels)
    (forum, _, nothing), (tissues, record, group) = apart(tmp_path)
    assert (forum.voice, forum.text, nothing) == (Voice.COMPLAINT, "改 一下 吧", None)
    assert (tissues.voice, record.rating, record.author, group) == (Voice.PRAISE, 5.0, "甲", Group.SHOP)


def test_texts_set_apart_are_of_other_sources_than_those_that_are_learned_from():
    listed = sources(SOURCES)
    assert (
        len({line.split("\t")[0] for line in LABELS.read_text("utf-8").splitlines()[1:]}) == len(listed) > 5
    )
    assert {one.repository for one in listed} - {""} == {one.repository for one in listed} - {
        one.repository for one in sources()
    } - {""}
    assert all(one.licence for one in listed)


@pytest.mark.slow
def test_words_of_a_like_use_get_like_vectors(monkeypatch):
    monkeypatch.setattr(voice_words, "SIZE", 4)
    monkeypatch.setattr(voice_words, "LEAST_SEEN", 2)
    monkeypatch.setattr(voice_words, "LEAST_SOURCES", 2)
    faults, foods = ("漏水", "漏油", "生锈"), ("面包", "牛奶", "苹果")
    texts = [f"机器 {fault} 维修" for fault in faults] + [f"早餐 {food} 好吃" for food in foods]
    words, vectors = word_vectors({"one": texts * 3, "two": texts * 2, "three": ["只有一处"] * 9})
    assert "一处" not in words
    of = dict(zip(words, vectors.astype(float), strict=True))

    def like(one, other):
        return of[one] @ of[other] / np.linalg.norm(of[one]) / np.linalg.norm(of[other])

    assert like("漏水", "生锈") > 0.9
    assert like("漏水", "面包") < 0.5


def test_sources_that_are_listed_are_read_by_kind(tmp_path):
    entries = {
        "a.csv": ("csv", 1, "1,很好\n2,\n"),
        "b.tsv": ("tsv", 1, "1\t一般\n"),
        "c.txt": ("lines", 0, "第一\n第二\n"),
        "d.json": ("json", "data.*.text", '{"data": [{"text": "甲"}, {"other": 1}, {"text": "乙"}]}'),
        "e.jsonl": ("jsonl", "text", '{"text": "丙"}\n\n{"text": "丁"}\n'),
    }
    folder = tmp_path / "owner+name"
    folder.mkdir()
    for name, (_, _, text) in entries.items():
        (folder / name).write_text(text, "utf-8")
    listed = tmp_path / "list.yaml"
    listed.write_text(
        "".join(
            f"- {{source: {kind}, repository: owner/name, commit: '0', licence: none, files: [{name}, gone],"
            f" kind: {kind}, field: {field!r}}}\n"
            for name, (kind, field, _) in entries.items()
        ),
        "utf-8",
    )
    assert {one.source: list(one.texts(tmp_path)) for one in sources(listed)} == {
        "csv": ["很好"],
        "tsv": ["一般"],
        "lines": ["第一", "第二"],
        "json": ["甲", "乙"],
        "jsonl": ["丙", "丁"],
    }


def test_every_listed_source_has_labels_and_names_its_licence():
    labelled = {line.split("\t")[0] for line in (SAMPLES / "labels.tsv").read_text("utf-8").splitlines()}
    listed = sources()
    assert len({one.source for one in listed}) == len(listed) > 100
    assert all(one.source in labelled and one.licence and len(one.commit) == 12 for one in listed)
    # What is held out together is held back together.
    for group in {one.group for one in listed} - {""}:
        assert len({one.held_back for one in listed if one.group == group}) == 1


def test_the_notice_names_each_source_with_its_licence():
    notice = (Path(__file__).parents[3] / "NOTICE").read_text("utf-8")
    for one in sources():
        assert f"- {one.repository}, {one.commit}, {one.licence}\n" in notice


def test_a_text_that_stands_in_two_sources_counts_once_and_never_where_it_is_held_back(tmp_path, monkeypatch):
    copied, stock = "这台车开了三个月变速箱就坏了", "不错"
    for place, text in (("KaitoHH+xiaohongshu-spider-visualizer/xiaohongshu.csv", ",,,,,,,,,{}"),):
        path = tmp_path / "voices" / place
        path.parent.mkdir(parents=True)
        path.write_text("".join(text.format(one) + "\n" for one in (copied, stock)), "utf-8")
    back = tmp_path / "voices/Berwyn-Git+Dongchedi-Comments/filterd_data.csv"
    back.parent.mkdir(parents=True)
    back.write_text(f"{copied},1\n{stock},1\n", "utf-8")
    labels = tmp_path / "labels.tsv"
    names = ("xiaohongshu beauty", "dongchedi")
    labels.write_text(
        "".join(f"{name}\t{digest(text)}\tpraise\n" for name in names for text in (copied, stock)), "utf-8"
    )
    monkeypatch.setattr("research.training.voices.voice_posts._LABELS", labels)
    together = [(post.source, post.text) for post in (*posts(tmp_path), *held_back(tmp_path))]
    assert sum(text == copied for _, text in together) == 1
    assert sum(text == stock for _, text in together) == 2
    assert all_texts(tmp_path) == {"xiaohongshu beauty": [copied]}


def test_figures():
    found = [Post("s", "a", Voice.PRAISE), Post("s", "b", Voice.NEWS), Post("s", "c", Voice.COMPLAINT)]
    assert voices.buyer_f1(found, np.array([True, True, False])) == 0.5
    assert voices.calibration_error(voices._truth(found), np.array([1.0, 0.0, 0.4])) == 0.2
