from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.catalog.names import Group
from tasks.domain.pages import Review
from tasks.domain.voices import Voice
from tasks.reading.judge.reviews import add_judgements, add_judgements_of_pages
from tasks.reading.judge.runs import ORDERS
from tasks.reading.judge.voice import (
    BITS,
    HEAD,
    LEVELS,
    NOT_JUDGED,
    TAIL,
    VOICES,
    judgement,
    network,
    runs_of,
    voices_of,
)

WRITTEN = Path(__file__).parents[2] / "research" / "samples" / "voices" / "posts.tsv"
BUYERS = {Voice.COMPLAINT, Voice.PRAISE}


def review(body, *, title="", author="", rating=None):
    return Review("#0", title, body, author, "", None, rating)


def voice_of(body, group=None, **more):
    return judgement(review(body, **more), group)


def test_floors_of_the_network_in_the_tree():
    # Posts written for this project; docs/voices.md has figures of real ones.
    lines = [line.split("\t") for line in WRITTEN.read_text("utf-8").splitlines() if not line.startswith("#")]
    said = [(Voice(voice), voice_of(text)) for voice, text in lines]
    right = sum(found.voice == voice for voice, found in said)
    both = sum(found.buyer > 0.5 and voice in BUYERS for voice, found in said)
    either = sum(found.buyer > 0.5 for _, found in said) + sum(voice in BUYERS for voice, _ in said)
    assert 2 * both / either >= 0.91
    assert right / len(said) >= 0.85


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


ALONE, SHOP, COMPLAINTS, STARS = (0, 1, 2, 3)
"""What a text without a judging word needs to be read right: nothing, a shop's page, a complaints site, stars."""


@pytest.mark.parametrize(
    ("text", "voice", "needs"),
    [
        ("打开罐子里面有黑色小颗粒，宝宝喝了拉肚子", Voice.COMPLAINT, ALONE),
        ("烘干后有塑料味", Voice.COMPLAINT, ALONE),
        ("吃出塑料片！要求赔偿", Voice.COMPLAINT, ALONE),
        ("才洗了一水，领口就成荷叶边了", Voice.COMPLAINT, SHOP),
        ("打开盖子里面有只死蟑螂", Voice.COMPLAINT, ALONE),
        ("侧漏起坨，红屁股了", Voice.COMPLAINT, ALONE),
        ("快过期三天的货发给我", Voice.COMPLAINT, STARS),
        ("司机绕路多收", Voice.COMPLAINT, SHOP),
        ("喝完心慌失眠一整夜", Voice.COMPLAINT, ALONE),
        ("油烟一点没跑出来，做完饭头发都没味", Voice.PRAISE, ALONE),
        ("关了灯一点声音都没有", Voice.PRAISE, ALONE),
        ("感谢亲的支持，您的满意是我们最大的动力", Voice.COMPANY, ALONE),
    ],
)
def test_faults_and_merits_without_a_judging_word_and_the_courtesy_of_companies(text, voice, needs):
    stars = {Voice.COMPLAINT: 1.0, Voice.PRAISE: 5.0}.get(voice)
    said = (
        voice_of(text),
        voice_of(text, Group.SHOP),
        voice_of(text, Group.COMPLAINTS),
        voice_of(text, rating=stars),
    )
    assert said[needs].voice == voice
    assert said[STARS].voice == voice


def test_sentiment_is_told_beside_the_voice():
    assert voice_of("质量很差，用了一天就坏，非常失望").sentiment < -0.5
    assert voice_of("质量很好，用着舒服，非常满意").sentiment > 0.5


@pytest.mark.parametrize(
    "text", ["", " \n", "字a", "😀" * 500, "字" * 10_000, "http://x.cn/a @谁 [哈哈] 12.5", "\ud800"]
)
def test_any_text_has_a_voice(text):
    said = voice_of(text)
    assert 1 / len(VOICES) <= said.probability <= 1
    assert 0 <= said.buyer <= 1
    assert -1 <= said.sentiment <= 1


def test_a_title_is_read_only_where_there_is_no_text():
    question = "请问这款奶粉一岁能喝吗？"
    answer = "孩子喝了八个月，很喜欢，没有闹过肚子，推荐"
    assert voice_of(" ", title=question) == voice_of(question)
    assert voice_of(answer, title=question) == voice_of(answer)


def test_stars_and_the_kind_of_site_make_a_text_a_buyers_unless_it_says_otherwise():
    short = "用了一周"
    plain = voice_of(short)
    assert voice_of(short, rating=5.0).voice == Voice.PRAISE
    assert voice_of(short, rating=1.0).voice == Voice.COMPLAINT
    assert voice_of(short, rating=5.0).buyer > plain.buyer
    assert voice_of(short, Group.COMPLAINTS).buyer > plain.buyer
    assert voice_of(short, Group.SHOP).buyer > plain.buyer
    assert voice_of(short, Group.NEWS) == plain
    company = "感谢您的反馈，我们会加强品控，请联系在线客服处理，期待您再次光临"
    assert voice_of(company, Group.COMPLAINTS).voice == Voice.COMPANY


def test_the_best_stars_of_a_page_tell_their_scale():
    of_ten = [review("用了一周", rating=stars) for stars in (9.0, 4.0)]
    assert [one.voice for one in voices_of(of_ten)] == [Voice.PRAISE, Voice.COMPLAINT]


def test_pages_judged_together_have_the_voices_and_themes_of_each_alone():
    pages = [
        [review("用了一周", rating=stars) for stars in (9.0, 4.0)],
        [],
        [review("用了一周", rating=4.0), review("物流太慢，盖子也破损了", rating=1.0)],
        [review("用了一周"), review("这个手机发热严重，退货")],
        [review("用了一周", rating=80.0)],
    ]
    together = add_judgements_of_pages(pages, Group.SHOP)
    for page, judged in zip(pages, together, strict=True):
        alone = add_judgements(page, Group.SHOP)
        assert [(one.body, one.voice.voice, one.themes) for one in judged] == [
            (one.body, one.voice.voice, one.themes) for one in alone
        ]
        assert [one.voice[1:4] for one in judged] == [
            pytest.approx(one.voice[1:4], abs=1e-5) for one in alone
        ]


@pytest.mark.parametrize(
    "author", ["客服", "官方", "商家回复", "某某官方客服", "小米官方旗舰店", "店家回复："]
)
def test_an_author_who_speaks_for_a_company(author):
    assert voice_of("物流已经在路上了", author=author).voice == Voice.COMPANY


@pytest.mark.parametrize("author", ["官方认证的老王说", "张三", "讨厌客服的人"])
def test_other_authors_change_nothing(author):
    assert voice_of("物流已经在路上了", author=author) == voice_of("物流已经在路上了")


def test_what_only_a_site_writes_is_read_as_a_mark():
    assert voice_of("转发 @某某 看http://t.cn/Rz1 [哈哈] １２３元") == voice_of(
        "转发 @别人 看http://t.cn/Qa2 [泪] 999元"
    )


def test_traditional_characters_are_read_as_simplified_ones():
    assert voice_of("這款筆電很喜歡，著名的質感") == voice_of("这款笔电很喜欢，著名的质感")


@given(st.lists(st.text(max_size=30), min_size=1, max_size=5))
def test_any_texts_together_are_as_each_alone(texts):
    together = voices_of([review(text) for text in texts])
    for one, text in zip(together, texts, strict=True):
        alone = voice_of(text)
        if alone == NOT_JUDGED:
            assert one == NOT_JUDGED
        else:
            assert one[1:4] == pytest.approx(alone[1:4], abs=1e-5)


def test_the_longest_text_does_not_overflow():
    held = network()
    runs = runs_of(["字" * (HEAD + TAIL), "x" * 5000, "不" * 500])
    assert runs.chars.max() * ORDERS * LEVELS < 1 << 16
    assert held.rows.max() <= LEVELS
    assert runs.starts.tolist() == [0, HEAD + TAIL + 2, 2 * (HEAD + TAIL) + 5]
    assert runs.hashes.shape == (ORDERS, int(runs.chars.sum()))
    assert runs.hashes.max() < 1 << BITS
    assert len(set(runs.denied.tolist())) == len(runs.denied)


@pytest.mark.parametrize(
    ("text", "reached"),
    [
        ("没有异响", "有异响"),
        ("没色差，很好", "色差"),
        ("从未修过一次就", "修过一次"),
        ("无色差零瑕疵", "色差零瑕疵"),
        ("不知道没有用", "知道没有用"),
        ("不 好", ""),
        ("三年不", ""),
        ("味道很好", ""),
    ],
)
def test_a_negation_reaches_what_follows_it(text, reached):
    runs = runs_of(["不", text, "好"])
    assert "".join(f"  不  {text}  好"[place] for place in runs.denied) == reached


def test_packed_sums_are_the_sums_of_the_rows():
    held = network()
    texts = ["喝了一周", "味道不错，会回购", "", "没有异响，不漏水"]
    runs = runs_of(texts)
    for text, start, count in zip(texts, runs.starts, runs.chars.astype(int), strict=True):
        denied = runs.denied[(runs.denied >= start) & (runs.denied < start + count)]
        seen = []
        for places in (np.arange(start, start + count), denied):
            sums = held.rows[runs.hashes[:, places].ravel()].sum(0, dtype=float)
            seen.append((sums - LEVELS / 2 * ORDERS * len(places)) / np.sqrt(ORDERS * count))
        told = (
            np.maximum(np.concatenate(seen) @ held.hidden[:-1] + held.hidden[-1], 0) @ held.out[:-1]
            + held.out[-1]
        )
        assert held.told([text])[0] == pytest.approx(told, abs=1e-3)
    assert voice_of("ＡＢ中文").buyer == voice_of("ab中文").buyer


@pytest.mark.parametrize(
    "text",
    [
        "The screen died after two weeks and support never answered.",
        "Très déçu, la batterie ne tient pas une journée",
        "Отличный телефон, рекомендую",
        "I bought 华为 Mate 60 last month and it’s great",
        "good",
        "Love it!!! [heart] https://t.co/x",
    ],
)
def test_a_text_in_another_language_is_not_judged_unless_something_else_tells(text):
    assert voice_of(text) == NOT_JUDGED
    assert voice_of(text, Group.FORUM) == NOT_JUDGED
    assert voice_of("", title=text) == NOT_JUDGED
    assert voice_of(text, rating=1.0).voice == Voice.COMPLAINT
    assert voice_of(text, rating=5.0).voice == Voice.PRAISE
    assert voice_of(text, Group.COMPLAINTS).voice == Voice.COMPLAINT
    assert voice_of(text, Group.SHOP).buyer > 0.5
    assert voice_of(text, author="官方客服").voice == Voice.COMPANY


@pytest.mark.parametrize(
    "text",
    [
        "iPhone 15 Pro Max 很好用",
        "转发 @somebody http://t.cn/RQSbJTV",
        "用了一年，OK",
        "12.5",
        "😀",
        "nova2s 手感不错 nice",
    ],
)
def test_a_name_in_latin_letters_makes_no_text_foreign(text):
    assert voice_of(text).voice in tuple(Voice)


def test_a_text_that_is_not_judged_changes_no_other_of_its_page():
    texts = ["很好用，推荐", "It broke after a week", "用了一天就坏了"]
    together = voices_of(list(map(review, texts)))
    assert [one.voice for one in together] == [Voice.PRAISE, None, Voice.COMPLAINT]
    assert together[1] == NOT_JUDGED


def test_what_the_kind_of_a_site_says_is_in_the_file_of_the_network():
    held = network()
    assert (
        {Group.SHOP, Group.COMPLAINTS, Group.MICROBLOG, Group.FORUM} == set(held.factors) == set(held.shifts)
    )
    told = held.told(["用了一周，送的袋子"])[0, :-1]
    for kind in held.factors:
        odds = told * held.factors[kind] + held.shifts[kind]
        share = np.exp(odds - odds.max())
        assert voice_of("用了一周，送的袋子", kind).buyer == pytest.approx(
            share[:2].sum() / share.sum(), abs=1e-4
        )
