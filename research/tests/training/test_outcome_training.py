"""The classifier of pages without hits: engines left out of the training are told apart."""

from __future__ import annotations

from research.training.outcome_pages import generated
from research.training.train_outcome import f1, left_out, train
from tasks.reading.page_outcome import OUTCOMES, page_weights


def test_engines_left_out_are_told_apart():
    pages = list(generated())
    count = {kind: sum(page.kind == kind for page in pages) for kind in OUTCOMES}
    assert min(count.values()) >= 40
    assert f1(left_out(pages))["macro"] >= 0.85


def test_training_gives_a_weight_for_each_trait():
    assert set(train(list(generated()))) == set(page_weights())
