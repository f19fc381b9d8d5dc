"""Texts whose themes are known: what `research.training.train_themes` learns from and `research.bench.quality.themes` scores.

The texts are in the folders `themes` and `reviews` of the shared data. The tree holds digests of texts only:
`research/samples/themes/apart.tsv` lists the texts that are set apart. Nobody reads these, and nothing is learned, chosen or
calibrated from them. `labels.tsv` and `second.tsv` have themes that were marked for this project.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from research.tools.pagetruth import SAMPLES

LABELS, SECOND = SAMPLES / "themes/labels.tsv", SAMPLES / "themes/second.tsv"
APART = SAMPLES / "themes/apart.tsv"
"""Set and digest of each text that is set apart."""
SEED = "themes 2026-11"
GOODS_APART = 80
"""Number of texts of `goods_complaints.tsv` that are set apart; of every other set it is a fifth."""
SHARE_APART = 5

NO_GOODS = ("蒙牛", "书籍", "酒店")
"""Kinds of texts that are not reviews of goods, or posts that are none."""

CARS = {
    "动力": "power", "价格": "price", "内饰": "interior", "配置": "equipment", "安全性": "safety", "外观": "appearance",
    "操控": "handling", "油耗": "fuel", "空间": "space", "舒适性": "comfort",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ThemeText:
    """A text and the themes that a reader found in it.

    Attributes:
        source: name of the set of texts.
        category: goods, car or restaurant.
        themes: sentiment by theme: -1, 0 or 1.
    """

    source: str
    category: str
    digest: str
    text: str
    themes: Mapping[str, int]


def digest(text: str) -> str:
    """Return the first 12 hex digits of the SHA-256 of a text's letters and digits, case folded."""
    letters = "".join(filter(str.isalnum, text)).casefold()
    return sha256(letters.encode()).hexdigest()[:12]


def list_marked(shared: Path) -> list[ThemeText]:
    """Return all marked texts of the shared data, also those that are set apart; each text once a set."""
    folder = shared / "themes"
    found: dict[tuple[str, str], ThemeText] = {}
    for one in (*_list_goods(folder), *_list_more(folder), *_list_cars(folder), *_list_restaurants(folder)):
        found.setdefault((one.source, one.digest), one)
    return list(found.values())


def list_learnable(shared: Path) -> list[ThemeText]:
    """Return the texts that may be learned from, with those that were marked for this project."""
    kept = {key for _, key in read_apart()}
    return [
        one for one in (*list_marked(shared), *_list_labelled(shared / "reviews")) if one.digest not in kept
    ]


def list_apart(shared: Path) -> list[ThemeText]:
    """Return the texts that are set apart."""
    kept = read_apart()
    return [one for one in list_marked(shared) if (one.source, one.digest) in kept]


def list_praise(shared: Path) -> list[str]:
    """Return praise of goods, in the order of drawing; none of it is marked."""
    marked = {one.digest for one in (*list_marked(shared), *_list_labelled(shared / "reviews"))}
    with (shared / "reviews/online_shopping_10_cats.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "1" and row["cat"] not in NO_GOODS]
    found = {digest(row["review"]): row["review"] for row in rows}
    return [found[key] for key in sorted(found.keys() - marked, key=_draw)]


def list_open_complaints(shared: Path) -> list[str]:
    """Return complaints about goods that are not set apart, in the order of drawing: marked ones, and others."""
    kept = {key for _, key in read_apart()}
    found: dict[str, str] = {}
    for name in ("online_shopping_10_cats.csv", "waimai_10k_sample.csv"):
        with (shared / "reviews" / name).open(encoding="utf-8-sig", newline="") as file:
            rows = [
                row for row in csv.DictReader(file) if row["label"] == "0" and row.get("cat") not in NO_GOODS
            ]
        found |= {digest(row["review"]): row["review"] for row in rows}
    return [found[key] for key in sorted(found.keys() - kept, key=_draw)]


def read_labels(path: Path) -> dict[str, dict[str, int]]:
    """Return the themes of a file of labels, by digest."""
    lines = path.read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {key: _complaints(themes) for key, themes in rows}


def _list_labelled(folder: Path) -> Iterator[ThemeText]:
    labels = read_labels(LABELS)
    for name in ("online_shopping_10_cats.csv", "waimai_10k_sample.csv"):
        with (folder / name).open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                key = digest(row["review"])
                if key in labels:
                    yield ThemeText("labels", "goods", key, row["review"], labels.pop(key))


def _list_goods(folder: Path) -> Iterator[ThemeText]:
    for _, _, text, themes in _rows(folder / "goods_complaints.tsv"):
        yield ThemeText("goods", "goods", digest(text), text, _complaints(themes))


def _list_more(folder: Path) -> Iterator[ThemeText]:
    for key, _, text, themes in _rows(folder / "goods_more.tsv")[1:]:
        yield ThemeText("goods_more", "goods", key, text, _complaints(themes))


def _list_cars(folder: Path) -> Iterator[ThemeText]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    with (folder / "car_topics.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            found[row["text"]][CARS[row["topic"]]] = int(row["sentiment"])
    for text, themes in found.items():
        yield ThemeText("cars", "car", digest(text), text, themes)


def _list_restaurants(folder: Path) -> Iterator[ThemeText]:
    with (folder / "restaurant_aspects.csv").open(encoding="utf-8-sig", newline="") as file:
        for row in csv.DictReader(file):
            text = row.pop("reviewbody")
            row.pop("star")
            themes = {theme: int(float(sentiment)) for theme, sentiment in row.items()}
            said = {theme: sentiment for theme, sentiment in themes.items() if sentiment >= -1}
            yield ThemeText("restaurants", "restaurant", digest(text), text, said)


def _rows(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def _complaints(themes: str) -> dict[str, int]:
    return {theme: -1 for theme in themes.split(",") if theme != "-"}


def read_apart(path: Path = APART) -> set[tuple[str, str]]:
    """Return set and digest of the texts that are set apart."""
    lines = path.read_text("utf-8").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return {(source, key) for source, key in rows}


def draw_apart(texts: Iterable[ThemeText]) -> list[tuple[str, str]]:
    """Return set and digest of the texts to set apart, by the digest of seed and text.

    A text that is in two sets is set apart in both, so that nothing is learned from it.
    """
    by_source: dict[str, list[str]] = defaultdict(list)
    for one in texts:
        by_source[one.source].append(one.digest)
    drawn: set[str] = set()
    for source, keys in by_source.items():
        number = GOODS_APART if source == "goods" else len(keys) // SHARE_APART
        drawn.update(sorted(keys, key=_draw)[:number])
    return sorted((source, key) for source, keys in by_source.items() for key in keys if key in drawn)


def _draw(key: str) -> str:
    return sha256(f"{SEED} {key}".encode()).hexdigest()
