import json

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from splitter.errors import ProductNameError
from splitter.explain import explain
from splitter.keywords import keywords_of
from splitter.lexicon import lexicon


def run(*arguments):
    return CliRunner().invoke(cli, ["split", *arguments])


@pytest.mark.slow
def test_what_is_said_to_be_kept_is_what_is_searched_for(titles):
    same = lexicon().same
    for title in titles:
        try:
            keywords = keywords_of(title)
        except ProductNameError:
            continue
        kept = {word.word for word in explain(title) if word.kept}
        spelled = {same.get(word, word).casefold() for word in kept}
        assert {keyword.casefold() for keyword in keywords} <= spelled, title


@pytest.mark.parametrize(
    ("name", "word", "role", "kept", "why"),
    [
        ("特仑苏", "蒙牛", "brand", True, "leaves its brand out"),
        ("特仑苏 250ml", "250ml", "amount", False, "size"),
        ("【京东超市】伊利牛奶", "京东超市", "aside", False, "brackets"),
        ("光明牛奶包邮", "包邮", "noise", False, "promotion"),
        ("吉利汽车帝豪", "汽车", "product", False, "company"),
        ("天友低乳糖酸牛奶", "酸牛奶", "product", True, "written as 酸奶"),
        ("牛奶 纯牛奶 光明", "牛奶", "product", False, "纯牛奶 contains it"),
        ("华为 HUAWEI Mate 30 青春版 手机", "HUAWEI", "brand?", False, "another name of 华为"),
    ],
)
def test_each_word_has_its_reason(name, word, role, kept, why):
    (choice,) = [choice for choice in explain(name) if choice.word == word]
    assert (choice.role, choice.kept) == (role, kept)
    assert why in choice.why


def test_explain_prints_a_table_or_an_object_a_name():
    shown = run("--explain", "特仑苏纯牛奶")
    assert shown.exit_code == 0
    assert shown.stdout.startswith("特仑苏纯牛奶 -> 蒙牛&特仑苏&纯牛奶\n")
    assert "known as series" in shown.stdout
    as_json = run("--explain", "--json", "特仑苏", "", "蒙牛早餐奶")
    assert as_json.exit_code == 2
    lines = [json.loads(line) for line in as_json.stdout.splitlines()]
    assert [line["product"] for line in lines] == ["特仑苏", "蒙牛早餐奶"]
    assert list(lines[0]) == ["product", "keywords", "later_queries", "words"]
    assert lines[0]["words"][0] == {
        "word": "蒙牛",
        "role": "brand",
        "score": None,
        "kept": True,
        "why": "the name leaves its brand out",
    }


def test_words_of_later_queries_are_told_with_their_query():
    name = "包邮新款家用电暖器取暖器暖风机浴室卧室两用"
    (line,) = run("--explain", "--json", name).stdout.splitlines()
    explained = json.loads(line)
    assert explained["later_queries"]
    why = {word["word"]: word["why"] for word in explained["words"]}
    for number, keywords in enumerate(explained["later_queries"], 2):
        for word in set(keywords) - set(explained["keywords"]):
            assert why[word] == f"asked in query {number}"
        assert f"  query {number}: {'&'.join(keywords)}\n" in run("--explain", name).stdout


def test_given_keywords_need_no_explanation():
    result = run("--explain", "特仑苏", "--keywords", "雀巢")
    assert result.exit_code == 2
    assert "--explain" in result.stderr
