"""The dashboard speaks both languages whole."""

from __future__ import annotations

import re

from phrases_used import phrases_used

from app.web import phrases


def test_every_phrase_is_there_in_chinese_and_none_is_left_over() -> None:
    assert set(phrases.chinese()) == phrases_used()


def test_a_translation_takes_the_same_values() -> None:
    for english, chinese in phrases.chinese().items():
        assert set(re.findall(r"\{(\w+)\}", english)) == set(re.findall(r"\{(\w+)\}", chinese)), english
        assert re.search(r"[\u4e00-\u9fff]", chinese), english


def test_lengths_of_time_are_said_in_both_languages() -> None:
    said = [0.25, 3.0, 90.0, 600.0, 7200.0, 200_000.0, None]
    assert [phrases.length("en", s) for s in said] == [
        "250 ms",
        "3 s",
        "90 s",
        "10 min",
        "2 h",
        "2.31 d",
        "–",
    ]
    assert phrases.length("zh", 600.0) == "10 分钟"
