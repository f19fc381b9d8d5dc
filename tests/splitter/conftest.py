import csv
from pathlib import Path

import pytest

from research.bench.splitter import conll_titles
from research.tools.pagetruth import SAMPLES
from research.tools.titles import dairy

PRODUCTS = Path(__file__).parents[3] / "shared" / "data" / "products"


@pytest.fixture
def dairy_names():
    """Names of dairy products: the shared ones, or else our own."""
    if not PRODUCTS.is_dir():
        return (SAMPLES / "names.txt").read_text("utf-8").splitlines()
    with (PRODUCTS / "dairy_names_seen.csv").open(encoding="utf-8", newline="") as file:
        return [row["name"] for row in csv.DictReader(file)]


@pytest.fixture
def titles():
    """Titles of shops: our own and, where they are there, the shared ones."""
    own = [title.text for title in dairy(SAMPLES / "titles.jsonl")]
    if not PRODUCTS.is_dir():
        return own
    taobao = conll_titles(PRODUCTS / "taobao_titles_ner.conll")
    return own + conll_titles(PRODUCTS / "jd_titles_ner.conll") + taobao[::10]
