"""How many product names a second become the search URL of one site's first page, on one core.

Real work every time: nothing is remembered of a whole name. The dictionary is loaded before the clock starts. Without
the shared data, names and titles are those of ``research/samples``, and only their figures are given.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from research.tools.pagetruth import SAMPLES
from research.tools.titles import dairy
from splitter.catalog.load import builtin
from splitter.errors import ProductNameError
from splitter.keywords import keywords_of
from splitter.urls import search_url

_SECONDS = 1.0  # of each of the rounds
_ROUNDS = 3


def run(shared: Path) -> dict[str, Any]:
    """Measures the splitter on real names.

    Args:
        shared: the folder of the shared data.

    Returns:
        ``bench``, ``ratios`` (``names_per_s``: dairy names) and ``figures``: of every file names a second,
        the mean length of its names and the share refused. Each rate is the best of three rounds.
    """
    figures: dict[str, Any] = {}
    for label, names in _names(shared / "products").items():
        figures[f"{label}_per_s"] = round(_rate(names))
        figures[f"{label}_mean_characters"] = round(sum(map(len, names)) / len(names), 1)
        figures[f"{label}_refused"] = sum(_first_url(name) is None for name in names) / len(names)
    return {"bench": "splitter", "ratios": {"names_per_s": figures["dairy_names_per_s"]}, "figures": figures}


def _names(products: Path) -> dict[str, list[str]]:
    if not products.is_dir():
        return {
            "dairy_names": (SAMPLES / "names.txt").read_text("utf-8").splitlines(),
            "sample_titles": [title.text for title in dairy(SAMPLES / "titles.jsonl")],
        }
    with (products / "dairy_names_seen.csv").open(encoding="utf-8", newline="") as file:
        seen = [row["name"] for row in csv.DictReader(file)]
    return {
        "dairy_names": seen,
        "taobao_titles": conll_titles(products / "taobao_titles_ner.conll"),
        "jd_titles": conll_titles(products / "jd_titles_ner.conll"),
    }


def conll_titles(path: Path) -> list[str]:
    """The titles of a file with one character and its label a line, and a blank line between titles."""
    titles: list[str] = []
    title = ""
    for line in path.read_text("utf-8").split("\n"):
        if line:
            title += line[0]
        elif title:
            titles.append(title)
            title = ""
    return [*titles, title] if title else titles


_BAIDU = builtin("paper-2014").engines["baidu"]


def _first_url(name: str) -> str | None:
    try:
        return search_url(_BAIDU, keywords_of(name), site="cca.org.cn", page=1)
    except ProductNameError:
        return None


def _rate(names: Sequence[str], work: Callable[[str], object] = _first_url) -> float:
    best = 0.0
    for _ in range(_ROUNDS):
        done, begin = 0, time.process_time()
        while (spent := time.process_time() - begin) < _SECONDS:
            for name in names:
                work(name)
            done += len(names)
        best = max(best, done / spent)
    return best
