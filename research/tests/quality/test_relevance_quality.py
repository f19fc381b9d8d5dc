"""Precision and recall of "is about the product", as numbers that may not drop."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.bench.quality.relevance import near_quality, pairs, quality, refused_reviews, rules

SHARED = Path(__file__).parents[4] / "shared" / "data"


def test_precision_and_recall_of_the_samples():
    nowhere = Path("nowhere")
    trial = pairs(nowhere)
    ours, strict = quality(trial, rules()["weighed"]), quality(trial, rules()["all"])
    assert len(trial) == 26
    assert (ours["all.precision"], ours["all.recall"]) == (1.0, 1.0)
    assert strict["all.recall"] < 0.8
    assert refused_reviews(nowhere)["record.refused"] == 0


def test_near_products_are_told_apart_in_the_samples():
    found = near_quality(Path("nowhere"))
    assert found["near.samples.weighed.precision"] >= 0.95
    assert found["near.samples.weighed.recall"] >= 0.95
    assert found["near.samples.brand.precision"] < 0.5


def test_near_products_are_told_apart():
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: only the samples are scored")
    found = near_quality(SHARED)
    for kind in ("cars", "dairy"):
        assert found[f"near.{kind}.weighed.precision"] >= 0.93, kind
        assert found[f"near.{kind}.weighed.recall"] >= 0.95, kind


@pytest.mark.slow
def test_precision_and_recall_may_not_drop():
    if not SHARED.is_dir():
        pytest.skip(f"{SHARED} is not there: only the samples are scored")
    trial = pairs(SHARED)
    ours, strict = quality(trial, rules()["weighed"]), quality(trial, rules()["all"])
    assert ours["all.precision"] >= 0.98
    assert ours["all.recall"] >= 0.9
    assert ours["all.recall"] > strict["all.recall"] + 0.02
    assert ours["articles.wrong_kept"] <= 0.002
    assert refused_reviews(SHARED)["record.refused"] <= 0.001
