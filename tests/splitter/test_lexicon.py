import pytest

from splitter.errors import CatalogError, InputError
from splitter.lexicon import Role, lexicon, parse_lexicon, parse_user_words, roles
from splitter.words import words_of


def test_every_brand_and_line_of_ours_is_cut_whole():
    names = [word for word, role in roles().items() if role in (Role.BRAND, Role.SERIES)]
    assert len(names) > 500
    assert [word for word in names if words_of(word) != [word]] == []


def test_every_line_in_the_lexicon_is_cut_whole():
    assert [line for line in lexicon().brand_of if words_of(line) != [line]] == []


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
