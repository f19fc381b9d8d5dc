"""Themes: terms of the file, quotes, and what does not count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.catalog.names import Category
from splitter.errors import CatalogError
from tasks.domain.pages import Review
from tasks.reading.judge.reviews import choose_theme_set, judge_reviews, model_id
from tasks.reading.judge.runs import ORDERS, text_of
from tasks.reading.judge.theme_file import (
    CATEGORIES,
    GAP,
    IN_FORCE,
    REACH,
    ThemeEntry,
    builtin_themes,
    load_themes,
    parse_themes,
)
from tasks.reading.judge.theme_terms import compile_terms
from tasks.reading.judge.themes import (
    LEVELS,
    LONGEST_CLAUSE,
    MOST_READ,
    TextBatch,
    ThemeReader,
    models,
    read_themes,
    theme_reader,
)
from tasks.reading.judge.voice import voices_of

FILE = """
goods:
  leak:
    zh: 漏
    en: Leaks
    terms: [漏, 包装..破, 異味]
    except: [漏发, 捡漏]
"""


def read(text, file=FILE, category="goods"):
    found = ThemeReader(parse_themes(file, "themes.yaml"), category, None).read([text])[0]
    return [(one.id, text[one.quote_from : one.quote_to]) for one in found]


def review(text, rating=None, author=""):
    return Review("#0", "", text, author, "", None, rating)


def ids(text, **more):
    ((_, themes),) = judge_reviews([review(text, **more)])
    return {(one.id, one.sentiment) for one in themes}


@pytest.mark.parametrize(
    ("text", "quotes"),
    [
        ("味道不错，全漏了！差评", ["全漏了"]),
        ("包装一打开就破了，别买", ["包装一打开就破了"]),
        ("包装好，袋子破", []),  # not in one clause
        ("包装一二三四五六七八九破", []),  # too far behind
        ("没有漏，不漏，也没漏", []),
        ("不但漏，还慢", ["不但漏"]),
        ("商家漏发了", []),
        ("一股异味", ["一股异味"]),  # traditional characters of a term match
        ("壞了,有異味", ["有異味"]),
        ("", []),
        ("漏", ["漏"]),
        ("。。。漏", ["漏"]),
        ("😀😀😀，漏了😀", ["漏了😀"]),
        ("x" * (MOST_READ + 5) + "漏", []),
    ],
)
def test_terms_of_a_file(text, quotes):
    assert read(text) == [("leak", quote) for quote in quotes]


DENIABLE = """
goods:
  fault:
    zh: 毛病
    en: Faults
    terms: [漏, 异味, 破损, 虫子, 杂质, 划痕, 起球, 褪色, 就坏, 烂, 没电, 包装..破, 系统..慢]
"""


@pytest.mark.parametrize(
    "text",
    [
        "没有任何一处破损",
        "没有出现网上说的那种褪色",
        "包装没有破",
        "系统一点不慢",
        "洗了很多次都没有起球、褪色",
        "没有划痕、破损、异味",
        "没有虫子没有杂质",
        "破损倒是没有",
        "异味什么的完全没有",
        "虫子这些从来没见过",
        "没电的情况没有出现过",
        "如果漏了我会来追评",
        "本来还担心路上会漏",
        "不像别家的有异味",
        "避免苹果之间破损",
        "会不会漏",
    ],
)
def test_a_clause_denies_a_term(text):
    assert read(text, DENIABLE) == []


@pytest.mark.parametrize(
    "text",
    [
        "没有一次不漏的",
        "没有一个不烂",
        "不漏才怪",
        "不是没有异味",
        "怎么能说没有异味",
        "这不是虫子是什么",
        "不是起球就是褪色",
        "没过几天就坏了",
        "没几天就漏",
        "没想到会漏",
        "从来没见过这么烂的",
        "恐怕是漏了",
        "漏了也没人管",
        "异味散了一个月还没有散掉",
        "差不多都漏了",
        "无线有异味",
        "不能发短信5、包装破",
        "竟然没有、异味也重",
    ],
)
def test_a_clause_that_only_looks_like_a_denial_has_its_term(text):
    assert [name for name, _ in read(text, DENIABLE)] == ["fault"]


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("goods:\n  leak:\n    zh: 漏\n    en: Leaks\n    terms: [漏..水..了]\n", 5, "goods.leak.terms[0]"),
        (
            "goods:\n  leak:\n    zh: 漏\n    en: Leaks\n    terms:\n      - 好\n      - ..水\n",
            7,
            "goods.leak.terms[1]",
        ),
        ("goods:\n  leak:\n    zh: 漏\n    terms: [漏]\n", 2, "goods.leak.en"),
        ("goods:\n  leak:\n    zh: 漏\n    en: Leaks\n    words: [漏]\n", 5, "goods.leak.words"),
        ("food:\n  leak: {zh: 漏, en: Leaks}\n", 1, "food"),
        ("goods:\n  Leak: {zh: 漏, en: Leaks}\n", 2, "goods.Leak"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, terms: [1]}\n", 2, "goods.leak.terms[0]"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, terms: 漏}\n", 2, "goods.leak.terms"),
        ("goods:\n  leak: {zh: 漏, en: Leaks}\n  leak: {zh: 漏, en: Leaks}\n", 3, "goods.leak"),
        ("goods: [", 2, "not readable as YAML"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_key(text, line, key):
    with pytest.raises(CatalogError) as caught:
        parse_themes(text, "own.yaml")
    assert f"own.yaml:{line}: {key}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gods:\n  leak: {zh: 漏, en: Leaks}\n", "did you mean 'goods'?"),
        ("resturant:\n  leak: {zh: 漏, en: Leaks}\n", "did you mean 'restaurant'?"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, term: [漏]}\n", "did you mean 'terms'?"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, exept: [漏]}\n", "did you mean 'except'?"),
        ("xyz:\n  leak: {zh: 漏, en: Leaks}\n", "unknown category; there are goods, car, restaurant"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, terms: 漏}\n", "must be a list; found '漏'"),
        ("goods:\n  leak: {zh: 漏, en: Leaks, terms: [1]}\n", "must be text; found 1"),
        ("goods:\n  leak: {zh: [漏], en: Leaks}\n", "must be text; found a list"),
        ("goods:\n  leak: 5\n", "must be a mapping of keys to values; found 5"),
        ("goods: [leak]\n", "must be a mapping of keys to values; found a list"),
        ("goods:\n  leak: {zh: '', en: Leaks}\n", "must have 1 characters or more; found ''"),
    ],
)
def test_a_wrong_key_or_value_is_explained(text, said):
    with pytest.raises(CatalogError) as caught:
        parse_themes(text, "own.yaml")
    assert said in str(caught.value)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(CatalogError, match=r"none\.yaml"):
        load_themes(tmp_path / "none.yaml")
    (tmp_path / "gb.yaml").write_bytes("goods:\n  leak:\n    zh: 变质过期".encode("gb18030"))
    with pytest.raises(CatalogError, match=r"gb\.yaml:3: not UTF-8"):
        load_themes(tmp_path / "gb.yaml")
    (tmp_path / "own.yaml").write_text(FILE, "utf-8")
    assert list(load_themes(tmp_path / "own.yaml").goods) == ["leak"]


def test_a_changed_file_is_read_again_and_a_bad_one_leaves_the_last_good_one(tmp_path, caplog):
    own = tmp_path / "themes.yaml"
    own.write_text(FILE, "utf-8")
    IN_FORCE.use(own)
    try:
        first = model_id()
        assert [one.id for one in read_themes("全漏了", "goods")] == ["leak"]
        own.write_text(FILE.replace("leak", "lost_cap"), "utf-8")
        assert [one.id for one in read_themes("全漏了", "goods")] == ["lost_cap"]
        assert model_id() != first
        for text in (FILE.replace("漏,", "漏..水..了,"), "goods: ["):
            own.write_text(text, "utf-8")
            assert [one.id for one in read_themes("全漏了", "goods")] == ["lost_cap"]
            assert "themes.yaml" in caplog.text
            caplog.clear()
        own.unlink()
        assert [one.id for one in read_themes("全漏了", "goods")] == ["lost_cap"]
        with pytest.raises(CatalogError):
            IN_FORCE.use(own)
        assert [one.id for one in read_themes("全漏了", "goods")] == ["lost_cap"]
    finally:
        IN_FORCE.use(None)
    assert model_id() not in ("", first)


def test_a_theme_that_a_person_adds_is_decided_by_its_terms():
    own = FILE.replace("leak", "lost_cap").replace("漏,", "没有瓶盖,")
    found = ThemeReader(parse_themes(own, "own.yaml"), "goods", models()["goods"]).read(
        ["居然没有瓶盖，无语"]
    )
    assert [one.id for one in found[0]] == ["lost_cap"]


@pytest.mark.parametrize(
    ("text", "theme"),
    [
        ("喝到一半发现有黑色颗粒，恶心", "foreign_matter"),
        ("吃了两天拉肚子，进医院了", "safety"),
        ("打开都发霉了，离保质期还有半年", "spoiled"),
        ("物流太慢了，等了一个星期", "delivery"),
        ("客服态度很差，电话打不通", "service"),
        ("箱子都压扁了，牛奶全漏", "packaging_damage"),
        ("用了两天就死机，开不了机", "malfunction"),
        ("刚买完就降价，太坑了", "price"),
        ("就是安装费太贵，收了两百", "installation"),
        ("物流慢但东西好", "delivery"),
    ],
)
def test_what_buyers_complain_about(text, theme):
    assert (theme, -1) in ids(text)


@pytest.mark.parametrize(
    ("text", "theme", "quote"),
    [
        ("物流慢但东西好，吃着很甜，下次还买", "delivery", "物流慢但东西好"),
        ("手机很流畅，拍照也清楚，就是充电器忘了放", "wrong_missing", "就是充电器忘了放"),
        ("裤子质量不错，穿着舒服，就是有一点偏大", "size_quantity", "就是有一点偏大"),
        ("虽然贵了点，但是味道真的很好，全家都喜欢", "price", "虽然贵了点"),
        ("洗发水很好闻，洗完很顺滑，可惜瓶子漏了一点", "packaging_damage", "可惜瓶子漏了一点"),
    ],
)
def test_mixed_praise_keeps_its_voice_and_has_the_theme(text, theme, quote):
    ((voice, found),) = judge_reviews([review(text)])
    assert voice.voice == "praise"
    assert [(one.id, one.sentiment, text[one.quote_from : one.quote_to]) for one in found or ()] == [
        (theme, -1, quote)
    ]


def test_a_clause_of_praise_beside_a_contrast_has_no_theme():
    text = "物流慢但东西好，声音小，睡觉也不吵，全家都很喜欢"
    ((voice, found),) = judge_reviews([review(text)])
    assert (voice.voice, [one.id for one in found or ()]) == ("praise", ["delivery"])


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("没有异味，包装完好，不漏，物流很快，客服态度好", {}),
        ("请问这款会漏水吗？", {}),
        ("有没有人用了头皮痒的？", {}),
        ("多久发货？会不会很慢？", {}),
        ("不漏不洒，包装很用心", {}),
        ("倒过来也不漏，质量杠杠的", {}),
        ("没有任何刺鼻的味道，孩子也能用", {}),
        ("从来没有卡顿过，运行很快", {}),
        ("不掉色不起球，洗了好几次还是新的", {}),
        ("您好，感谢您的反馈，物流慢给您添麻烦了，我们会督促快递公司改进", {}),
        ("亲，异物问题请联系客服为您处理", {"author": "官方客服"}),
        ("东西很好，下次还来", {"rating": 5}),
    ],
)
def test_what_does_not_count(text, more):
    assert ids(text, **more) == set()


def test_what_a_question_about_a_car_is_about():
    ((voice, themes),) = judge_reviews([review("请问这车油耗高不高，多少个油？")], None, "car")
    assert voice.voice == "question"
    assert [(one.id, one.sentiment) for one in themes] == [("fuel", 0)]


def test_other_languages_and_sets_are_not_read():
    (foreign,) = judge_reviews([review("the bottle leaks and smells bad")])
    assert foreign[1] is None
    ((_, themes),) = judge_reviews([review("闪退，打不开")], None, choose_theme_set(Category.APP))
    assert themes is None
    assert [choose_theme_set(one) for one in (None, Category.CAR, Category.RESTAURANT)] == list(CATEGORIES)
    assert judge_reviews([]) == []


def test_a_theme_raises_the_probability_of_a_complaint_once():
    texts = [review("喝到一半发现有黑色颗粒"), review("味道很好，会回购")]
    before = voices_of(texts)
    (found, _), (praise, none) = judge_reviews(texts)
    assert found.voice == "complaint"
    assert found.probability > before[0].probability
    assert (praise[:4], none) == (before[1][:4], ())


@given(st.lists(st.text(alphabet="漏味道差不没，。！?.0 \n😀ab异", max_size=60), min_size=1, max_size=8))
def test_a_page_is_read_as_its_texts_are_and_quotes_are_parts_of_them(texts):
    for category in CATEGORIES:
        together = theme_reader(category).read(texts)
        assert together == [read_themes(text, category) for text in texts]
        for text, found in zip(texts, together, strict=True):
            for one in found:
                assert 0 <= one.quote_from < one.quote_to <= len(text)
                assert text[one.quote_from : one.quote_to].strip()


def places_of(term, text):
    """Return where the terms of a clause begin, by looking at every place of both parts."""
    head, _, tail = term.partition(GAP)
    heads = [place for place in range(len(text)) if text.startswith(head, place)]
    tails = [place for place in range(len(text)) if text.startswith(tail, place)]
    gaps = [(one, other - one - len(head)) for one in heads for other in tails]
    return {one for one, gap in gaps if 0 <= gap <= REACH} if tail else set(heads)


@given(
    st.lists(
        st.sampled_from(
            [
                "漏",
                "味道",
                "不",
                "不太好",
                "很差",
                "盒破",
                "破",
                "打开",
                "好的",
                "a5",
                "，",
                "。",
                "一二三四五六七",
            ]
        )
    ).map("".join)
)
def test_terms_are_found_where_looking_at_every_place_finds_them(text):
    terms = [
        "漏",
        "味道..不太好",
        "味道..差",
        "打开..盒破",
        "好..盒破了的",
        "不太好的",
        "a0",
        "破..漏",
        "五六七..味",
    ]
    cancels = ["很差..破", "漏漏"]
    entries = [ThemeEntry(zh="x", en="x", terms=(one,), **{"except": tuple(cancels)}) for one in terms]
    batch = TextBatch([text])
    found = compile_terms(entries, denies=False).find(
        batch.codes, batch.runs, batch.clause_starts, batch.ends
    )
    plain = text_of(batch.codes)
    for clause, (begin, end) in enumerate(zip(batch.clause_starts, batch.ends, strict=True)):
        part = plain[begin:end]
        is_cancelled = any(places_of(one, part) for one in cancels)
        for column, term in enumerate(terms):
            assert found[clause, column] == (bool(places_of(term, part)) and not is_cancelled)


def test_a_file_without_themes_finds_none():
    assert ThemeReader(parse_themes("goods: {}\n", "own.yaml"), "goods", models()["goods"]).read(
        ["漏了", ""]
    ) == [(), ()]


def test_long_clauses_are_divided():
    page = TextBatch(["漏" * 1000])
    assert np.all(page.sizes <= LONGEST_CLAUSE)
    assert LONGEST_CLAUSE * ORDERS * LEVELS < 1 << 16


def test_every_theme_of_the_models_is_in_the_file():
    for category, model in models().items():
        assert list(builtin_themes().list_themes(category)) == list(model.themes)
