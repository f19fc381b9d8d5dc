import csv
import json

import pytest

from bench.splitter import conll_titles
from splitter.dictionary import Role, import_jieba, parse_user_words, user_words
from splitter.errors import CatalogError, InputError
from splitter.lexicon import lexicon, parse_lexicon
from splitter.segment import segmenter


@pytest.fixture(scope="module")
def jieba_tokenizer(tmp_path_factory):
    """jieba itself with our dictionary; its cache file goes to a folder of the test."""
    import_jieba()
    import jieba

    tokenizer = jieba.Tokenizer()
    tokenizer.tmp_dir = str(tmp_path_factory.mktemp("jieba"))
    tokenizer.initialize()
    for word, (frequency, _) in user_words().items():
        tokenizer.add_word(word, frequency)
    return tokenizer


def test_cuts_are_jiebas_on_every_shared_title(jieba_tokenizer, products):
    gold = (products / "dairy_titles_gold.jsonl").read_text("utf-8")
    titles = conll_titles(products / "taobao_titles_ner.conll")
    titles += conll_titles(products / "jd_titles_ner.conll")
    titles += [json.loads(line)["title"] for line in gold.splitlines()]
    titles += [line.split("\t")[0] for line in (products / "THUOCL_food.txt").read_text("utf-8").splitlines()]
    for name in ("dairy_names_seen.csv", "weibo_quality_events.csv"):
        with (products / name).open(encoding="utf-8", newline="") as file:
            titles += [row[0] for row in csv.reader(file)]
    assert len(titles) > 10_000
    ours = segmenter()
    different = [title for title in titles if ours.cut(title) != jieba_tokenizer.lcut(title)]
    assert different == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\r\n",
        "a\r\n 光明",
        "wi-fi6.5%牛奶+b",
        "邓颖超生前最喜欢",
        "龘靐齉",
        "𠮷野家",
        "é光",
        "杭研大厦",
        "12.5%a.b",
    ],
)
def test_cuts_are_jiebas_on_odd_texts(jieba_tokenizer, text):
    assert segmenter().cut(text) == jieba_tokenizer.lcut(text)


def test_every_brand_and_line_of_ours_is_cut_whole():
    cut = segmenter().cut_block
    names = [word for word, (_, role) in user_words().items() if role in (Role.BRAND, Role.SERIES)]
    assert len(names) > 500
    assert [word for word in names if cut(word) != [word]] == []


def test_every_line_in_the_lexicon_is_known_to_the_segmenter():
    cut = segmenter().cut_block
    assert [line for line in lexicon().brand_of if cut(line) != [line]] == []


def test_a_wrong_dictionary_is_told_line_by_line():
    with pytest.raises(InputError) as told:
        parse_user_words("光明 5 brand\n蒙牛 brand\n伊利 3 food\n光明 6 brand\n牛奶 0 product", "u.txt")
    assert [line.split(" ")[0] for line in str(told.value).splitlines()] == [
        "u.txt:2:",
        "u.txt:3:",
        "u.txt:4:",
        "u.txt:5:",
    ]


def test_a_wrong_lexicon_is_told_with_line_and_key():
    text = """version: 2
brands:
  蒙牛: {lines: [特仑苏]}
  伊利: {lines: [安慕希, 特仑苏]}
same: {a: b, b: c}
noise: []
"""
    with pytest.raises(CatalogError) as told:
        parse_lexicon(text, "l.yaml")
    message = str(told.value)
    assert "l.yaml:1: version: 2" in message
    assert "l.yaml:4: brands.伊利.lines[1]: 特仑苏 is a line of 蒙牛" in message
    assert "l.yaml:5: same.a: b is replaced itself" in message
    with pytest.raises(CatalogError, match=r"l.yaml:2: brands.x.line: "):
        parse_lexicon("version: 1\nbrands: {x: {line: [y]}}\nsame: {}\nnoise: []\n", "l.yaml")
