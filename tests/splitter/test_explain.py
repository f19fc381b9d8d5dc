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
    assert why in str(choice.why)


def test_given_keywords_need_no_explanation():
    result = run("--explain", "特仑苏", "--keywords", "雀巢")
    assert result.exit_code == 2
    assert "--explain" in result.stderr
