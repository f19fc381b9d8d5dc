"""Training of themes: weights are stored as they are, and what is set apart is never learned from."""

import numpy as np

from research.training.themes.theme_texts import (
    LABELS,
    ThemeText,
    digest,
    draw_apart,
    read_apart,
    read_labels,
)
from research.training.train_themes import HOW, choose_thresholds, f1_of, fit, quantize, read_clauses
from tasks.reading.judge.themes import GOODS, LEVELS


def test_stored_weights_are_near_those_that_were_learned():
    weights = np.random.default_rng(0).normal(size=(1000, 18)) ** 5  # a few are very large
    rows, scale = quantize(weights)
    assert rows.shape == (1000, 20)
    stored = (rows.astype(float) - LEVELS // 2) * scale
    assert np.all(np.abs(stored[:, :18] - weights) <= scale[:18] * 0.5001)


def test_a_theme_of_one_clause_is_learned():
    texts = ["快递很快，东西漏了", "漏了，别买", "东西很好，快递很快", "别买，快递很快"] * 4
    truth = np.array([[True], [True], [False], [False]] * 4).repeat(18, 1)
    clauses = read_clauses(texts, GOODS)
    told = fit(clauses, truth, np.ones(len(texts)), HOW[GOODS]).told(clauses, 0)
    assert np.all(f1_of(truth, told >= choose_thresholds(truth, told)) == 1)


def test_the_draw_is_by_text_and_in_all_sets():
    texts = [
        ThemeText(source, "goods", digest(f"text {n}"), "", {}) for n in range(100) for source in ("a", "b")
    ]
    drawn = draw_apart(texts)
    assert drawn == draw_apart(reversed(texts))
    assert {key for source, key in drawn if source == "a"} == {key for source, key in drawn if source == "b"}
    assert len(drawn) == 40


def test_nothing_that_is_set_apart_is_marked_to_be_learned():
    assert not {key for _, key in read_apart()} & read_labels(LABELS).keys()
