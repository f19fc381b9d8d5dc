"""The catalogs of texts that people read (app/locale)."""

from __future__ import annotations

import ast
import pickle
import re
from string import Formatter

import pytest

from app.views.words import (
    DOMAIN,
    FOLDER,
    LANGUAGES,
    describe,
    find_language,
    parse_language,
    plural,
    switch_language,
    translate,
)
from research.catalogs import format_mo, format_po, list_untranslated, read_catalog, read_templates
from splitter.errors import InputError
from tasks.domain.errors import UnknownNode
from tasks.domain.reasons import Reason, because

APP = FOLDER.parent


@pytest.mark.parametrize("code", LANGUAGES)
def test_a_compiled_catalog_is_the_one_of_its_text(code) -> None:
    folder = FOLDER / code / "LC_MESSAGES"
    assert (folder / f"{DOMAIN}.mo").read_bytes() == format_mo(read_catalog(code)), "make locale"
    assert (folder / f"{DOMAIN}.po").read_bytes() == format_po(read_catalog(code)), "make locale"


def test_a_translation_takes_the_same_values() -> None:
    for message in read_catalog("zh"):
        for one in [message.string] if isinstance(message.string, str) else message.string:
            english = message.id if isinstance(message.id, str) else message.id[1]
            if english and one:
                assert _list_names(english) == _list_names(one), english


def _list_names(text: str) -> set[str]:
    try:
        return {name for _, name, _, _ in Formatter().parse(text) if name}
    except ValueError:  # a text with braces that is used as it is
        return set()


def test_every_text_has_a_chinese_translation() -> None:
    catalog = read_catalog("zh")
    assert list_untranslated(catalog) == []
    for text in read_templates():
        key = text if isinstance(text, str) else text[0]
        if re.search("[A-Za-z]", re.sub(r"\{[^}]*\}", "", key)):
            assert re.search(r"[\u4e00-\u9fff]", "".join(catalog[key].string)), text


def test_what_is_said_to_people_is_translated_first() -> None:
    told = [
        (path, call.args[0])
        for path in sorted(APP.rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and _name(call.func) in {"say", "_say"} and call.args
    ]
    assert len(told) > 30
    untranslated = [
        (path, ast.unparse(text)) for path, text in told if isinstance(text, ast.Constant | ast.JoinedStr)
    ]
    assert [one for one in untranslated if re.search(r"[a-z]+ [a-z]+", one[1])] == []


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def test_values_are_translated_if_they_are_reasons_or_errors() -> None:
    rests = because(Reason.HOST_SILENT, host="a.cn")
    error = InputError("There is no site {name}.", name="b.cn")
    with switch_language("zh"):
        assert describe(rests) == translate("{host} does not answer", host="a.cn")
        assert describe(error) == translate("There is no site {name}.", name="b.cn") != str(error)
        assert describe(error) in translate("{failure}: no other node could cure it", failure=error)
        assert describe("anything") == "anything"
    assert describe(error) == str(error) == "There is no site b.cn."


@pytest.mark.parametrize("name", ["text", "template", "self", "one", "subject"])
def test_a_value_may_have_any_name(name) -> None:
    """Among them the names of parameters of our own functions."""
    error = InputError("there is no {" + name + "!r}", **{name: "a"})
    with switch_language("zh"):
        assert describe(error) == str(error) == "there is no 'a'"
        assert plural("{n} {" + name + "}", "{n} {" + name + "}", 2, **{name: "a"}) == "2 a"


def test_an_error_keeps_its_message_in_another_process() -> None:
    inner = UnknownNode("there is no node {name!r}", name="n1")
    error = InputError("{problem}; see {see}", problem=inner, see="nodes list")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again, str(again)) == (InputError, error, str(error))
    assert again != InputError("{problem}; see {see}", problem="another", see="nodes list")
    assert again.message == error.message != error


def test_a_text_without_a_translation_is_english() -> None:
    with switch_language("zh"):
        assert translate("{n} of these have none", n=3) == "3 of these have none"
        assert plural("{n} of it", "{n} of them", 1) in ("1 of it", "1 of them")
        assert translate("") == ""


def test_a_language_is_found_in_the_name_of_a_locale() -> None:
    found = {one: find_language(one) for one in ("zh", "zh_CN.UTF-8", "en-US", "EN", "C", "", "fr", "zhx")}
    assert found == {
        **{"zh": "zh", "zh_CN.UTF-8": "zh", "en-US": "en", "EN": "en"},
        **dict.fromkeys(("C", "", "fr", "zhx")),
    }
    with pytest.raises(InputError, match="'fr' is not a language"):
        parse_language("fr")


_ONE_WORD = {
    "站点": "网站",
    "商品(?!名称)": "产品",
    "品类": "类别",
    "控制台|仪表[盘板]": "面板",
    "(?<!bearer )令牌(?!不)": "口令",
    "您": "你",
    "召回": "回收",
    "抓取|爬取|爬虫": "采集",
    "页面(?<!没有此页面)": "网页",
    "缺省": "默认",
    "登陆": "登录",
    "帐[号户]": "账号",
    "[「」]": "“”",
    "操作未成功": "what is wrong",
    "会问哪些|谁在说|转载自|试读|拿走结果|已数清": "将采集哪些, 评论类型, 内容相同, 测试规则, 导出结果, 已逐条确认",
    r"从[^，。；]{1,20}至": "从……到……",
}
"""Words that no Chinese text has, and what it says instead: a term has one word (docs/glossary.md)."""
_HALF_WIDTH = re.compile(
    r"[\u4e00-\u9fff”）][,;:?!](?![\w/])|\([\u4e00-\u9fff]|[\u4e00-\u9fff]\)|[\u4e00-\u9fff]\.(?:\s|$)"
)
_EXAMPLE = re.compile(r"^ *(?:reviewloop|docker|curl|-)", re.MULTILINE)


def _list_chinese() -> list[str]:
    strings = (
        [one.string] if isinstance(one.string, str) else one.string for one in read_catalog("zh") if one.id
    )
    return [text for texts in strings for text in texts]


@pytest.mark.parametrize("word", _ONE_WORD)
def test_a_term_has_one_chinese_word(word) -> None:
    assert [text for text in _list_chinese() if re.search(word, text)] == [], _ONE_WORD[word]


def test_chinese_has_full_width_punctuation_and_no_double_spaces() -> None:
    texts = [text for text in _list_chinese() if not _EXAMPLE.search(text)]
    assert [text for text in texts if _HALF_WIDTH.search(text) or "  " in text.strip()] == []
