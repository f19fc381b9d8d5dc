"""The classifier of keywords has the sums that its training sees."""

from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.tools.pagetruth import SAMPLES
from research.tools.titles import dairy
from research.training.train_keywords import traits_of
from splitter.candidates import candidates
from splitter.keyword_classifier import classifier
from splitter.normalize import drop_amounts, normalize
from splitter.words import words_of


def slow_sums(words, places):
    """The sums by the traits spelled out, as training sees them."""
    known = classifier().weights
    return [
        tuple(sum(known.get(trait, (0.0, 0.0, 0.0))[part] for trait in traits) for part in range(3))
        for traits in traits_of(words, places)
    ]


def agree(words, places):
    for odds, sums in zip(classifier().odds(words, places), slow_sums(words, places), strict=True):
        grown = [exp(one) for one in sums]
        assert odds == pytest.approx([one / (1 + sum(grown)) for one in grown])


def test_use_and_training_describe_words_alike():
    for title in dairy(SAMPLES / "titles.jsonl"):
        words = words_of(drop_amounts(normalize(title.text)))
        agree(words, list(candidates(words)))


@given(
    st.lists(st.sampled_from(["光明", "牛奶", "包邮", ",", "P30", "鞋", "跑鞋", "15", "ソニー"]), min_size=1)
)
def test_any_words_have_odds(words):
    places = [place for place, word in enumerate(words) if word != ","]
    agree(words, places)
    assert all(0 < one < 1 and sum(odds) < 1 for odds in classifier().odds(words, places) for one in odds)


def test_weights_hold_no_title():
    spelled = [trait.removeprefix("word ") for trait in classifier().weights if trait.startswith("word ")]
    assert len(spelled) > 500
    assert max(map(len, spelled)) <= 20
