"""How many product names a second become the search URL of one site's first page, on one core.

Nothing is cached about a whole name, and the dictionary is loaded before the clock starts. Without the shared data, names and titles
are those of ``research/samples``.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from research.tools.pagetruth import SAMPLES
from research.tools.titles import conll, dairy
from splitter.catalog.load import builtin
from splitter.errors import ProductNameError
from splitter.keywords import keywords_of
from splitter.urls import search_url

_BAIDU = builtin("paper-2014").engines["baidu"]


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure the splitter on real names.

    Returns:
        ``ratios``: ``names_per_s`` of dairy names; ``figures``: of every file names a second (the best of three rounds), the mean
        length of its names and the share refused.
    """
    rounds, seconds = (1, 0.02) if smallest else (3, 1.0)
    figures: dict[str, Any] = {}
    for label, names in _names(shared / "products", smallest).items():
        figures[f"{label}_per_s"] = round(max(_rate(names, seconds) for _ in range(rounds)))
        figures[f"{label}_mean_characters"] = round(sum(map(len, names)) / len(names), 1)
        figures[f"{label}_refused"] = sum(_first_url(name) is None for name in names) / len(names)
    return {"bench": "splitter", "ratios": {"names_per_s": figures["dairy_names_per_s"]}, "figures": figures}


def _names(products: Path, smallest: bool) -> dict[str, list[str]]:
    if smallest or not products.is_dir():
        titles = {"sample_titles": dairy(SAMPLES / "titles.jsonl")}
        seen = (SAMPLES / "names.txt").read_text("utf-8").splitlines()
    else:
        titles = {f"{shop}_titles": conll(products / f"{shop}_titles_ner.conll") for shop in ("taobao", "jd")}
        with (products / "dairy_names_seen.csv").open(encoding="utf-8", newline="") as file:
            seen = [row["name"] for row in csv.DictReader(file)]
    return {"dairy_names": seen, **{label: [one.text for one in of] for label, of in titles.items()}}


def _first_url(name: str) -> str | None:
    try:
        return search_url(_BAIDU, keywords_of(name), site="cca.org.cn", page=1)
    except ProductNameError:
        return None


def _rate(names: Sequence[str], seconds: float) -> float:
    """Return names a second of CPU time, over whole passes that take at least `seconds`."""
    done, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        for name in names:
            _first_url(name)
        done += len(names)
    return done / spent
