"""Our own data files: they are read without checks at each start, so they are checked here."""

from collections import Counter

import yaml

from splitter.lexicon import Role, data, lexicon, roles, rows
from splitter.words import words_of


def test_every_brand_and_line_of_ours_is_cut_whole():
    names = [word for word, role in roles().items() if role in (Role.BRAND, Role.SERIES)]
    assert len(names) > 500
    assert [word for word in names if words_of(word) != [word]] == []


def test_every_line_in_the_lexicon_is_cut_whole():
    assert [line for line in lexicon().brand_of if words_of(line) != [line]] == []


def test_every_line_of_the_dictionary_is_a_word_with_frequency_and_role():
    for (line,) in rows(data("userdict.txt")):
        word, frequency, role = line.split(" ")
        assert word, line
        assert int(frequency) > 0, line
        assert role in list(Role), line


def test_no_word_is_in_the_dictionary_twice():
    words = [line.split(" ")[0] for (line,) in rows(data("userdict.txt"))]
    assert [word for word, times in Counter(words).items() if times > 1] == []


def test_the_lexicon_has_known_keys_and_contradicts_nothing():
    content = yaml.safe_load(data("lexicon.yaml"))
    assert set(content) == {
        "version",
        "brands",
        "same",
        "noise",
        "goods",
        "company",
        "forms",
        "models",
    }
    assert all(set(entry) <= {"lines", "also"} for entry in content["brands"].values())
    lines = Counter(line for entry in content["brands"].values() for line in entry.get("lines", ()))
    assert [line for line, times in lines.items() if times > 1] == [], "a line has one brand"
    assert [word for word in content["same"].values() if word in content["same"]] == []
    for words in (
        content["noise"],
        content["goods"],
        content["company"],
        content["forms"],
        content["models"],
        content["same"].values(),
    ):
        assert all(isinstance(word, str) for word in words)
