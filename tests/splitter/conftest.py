import csv
import json
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "research" / "samples"
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
    own = [json.loads(line)["title"] for line in (SAMPLES / "titles.jsonl").read_text("utf-8").splitlines()]
    if not PRODUCTS.is_dir():
        return own
    taobao = conll_titles(PRODUCTS / "taobao_titles_ner.conll")
    return own + conll_titles(PRODUCTS / "jd_titles_ner.conll") + taobao[::10]


def conll_titles(path):
    """Return the titles of a file with one character and its label a line, and a blank line between titles."""
    blocks = path.read_text("utf-8").split("\n\n")
    return ["".join(line[0] for line in block.splitlines() if line) for block in blocks if block.strip()]
