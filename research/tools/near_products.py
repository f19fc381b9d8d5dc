"""Near products and real texts that are about one of them, or none: every text is tried with every near name.

- **cars**: the models of one maker, of the complaints that are filed under it; a text is a complaint's heading, and it
  is about the model that its record is filed under (`brand`, `car_model`), whatever it says.
- **dairy**: 13 lines of one brand. A text is a post about the brand; it is about the line whose name stands in it, and
  about none where no such name does. Posts with two of them are left out.

Half of the texts, by an odd SHA-256, is for testing: no rule was chosen by it.
"""

from __future__ import annotations

import csv
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LINES: Mapping[str, tuple[str, ...]] = {
    "特仑苏": ("特仑苏",),
    "纯甄": ("纯甄",),
    "真果粒": ("真果粒",),
    "酸酸乳": ("酸酸乳",),
    "未来星": ("未来星",),
    "新养道": ("新养道",),
    "冠益乳": ("冠益乳",),
    "优益C": ("优益C", "优益c", "优益Ｃ"),
    "绿色心情": ("绿色心情",),
    "早餐奶": ("早餐奶",),
    "纯牛奶": ("纯牛奶", "纯奶"),
    "随变": ("随变",),
    "真果粒花果轻乳": ("花果轻乳",),
}
"""The lines of 蒙牛 that are tried, with what a post calls them."""


@dataclass(frozen=True, slots=True)
class NearTexts:
    """Names of near products, and texts with the name each is about; None: none of them."""

    names: tuple[str, ...]
    texts: tuple[tuple[str, str | None], ...]


def for_testing(text: str) -> bool:
    """Whether a text belongs to the half that no rule was chosen by."""
    return hashlib.sha256(text.encode()).digest()[0] % 2 == 1


def near_products(shared: Path) -> dict[str, list[NearTexts]]:
    """The groups of near products of both kinds, of all texts."""
    reviews = shared / "reviews"
    return {"cars": list(_cars(_rows(reviews / "auto_complaints_12365auto.csv"))), "dairy": [_dairy(reviews)]}


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def _cars(rows: Sequence[Mapping[str, str]]) -> Iterator[NearTexts]:
    makers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        makers[row["brand"]].append((row["desc"].strip(), row["brand"] + row["car_model"]))
    for texts in makers.values():
        names = tuple(dict.fromkeys(name for _, name in texts))
        if len(names) > 1:
            yield NearTexts(names, tuple(texts))


def _dairy(reviews: Path) -> NearTexts:
    texts: list[tuple[str, str | None]] = []
    for row in _rows(reviews / "online_shopping_10_cats.csv"):
        if row["cat"] == "蒙牛":
            said = [line for line, words in LINES.items() if any(word in row["review"] for word in words)]
            if len(said) < 2:
                texts.append((row["review"], f"蒙牛{said[0]}" if said else None))
    return NearTexts(tuple(f"蒙牛{line}" for line in LINES), tuple(texts))


def sample(path: Path) -> list[NearTexts]:
    """Near products of a table `group, text, about`: a product of a group is near the group's others; an empty `about`
    is none of them."""
    groups: dict[str, list[tuple[str, str | None]]] = defaultdict(list)
    for row in _rows(path):
        groups[row["group"]].append((row["text"], row["about"] or None))
    return [
        NearTexts(tuple(dict.fromkeys(name for _, name in texts if name)), tuple(texts))
        for texts in groups.values()
    ]


def quality(groups: Sequence[NearTexts], keeps: Callable[[str, str], bool]) -> dict[str, float]:
    """Precision and recall of keeping a text for a name, over every text and every near name.

    Args:
        keeps: whether a text is kept for a name.
    """
    right = kept = about = tried = 0
    for group in groups:
        for text, name in group.texts:
            tried += len(group.names)
            about += name in group.names
            found = [near for near in group.names if keeps(near, text)]
            kept += len(found)
            right += name in found
    precision, recall = right / max(1, kept), right / max(1, about)
    return {"pairs": tried, "precision": round(precision, 3), "recall": round(recall, 3)}


def only_testing(groups: Iterable[NearTexts]) -> list[NearTexts]:
    """The groups with the texts that no rule was chosen by."""
    return [
        NearTexts(group.names, tuple(pair for pair in group.texts if for_testing(pair[0])))
        for group in groups
    ]
