"""How many reviews of a product a query of its keywords would find: AND, each keyword anywhere in the text.

The reviews in the shared data say which product they are of in three ways, so there are three collections:
phones (the JD title a review stands under), cars (brand and model a complaint is filed under) and kinds (the kind of
goods; asked by the titles, of the half that is not tuned on, that have the kind as a gold product word, and for 蒙牛
by the dairy names with it).
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from research.tools.titles import Title
from splitter.normalize import normalize
from splitter.word_weight import first_to_drop

Choose = Callable[[str], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Collection:
    """Reviews of several products.

    Attributes:
        texts: of the reviews, written the one way, in lower case.
        right: of each product name the reviews that are of it, by number.
    """

    texts: tuple[str, ...]
    right: Mapping[str, frozenset[int]]


@dataclass(frozen=True, slots=True)
class Found:
    """What queries found, as means over the products.

    Attributes:
        keywords: of a query.
        right: share of the reviews of the product that are found.
        others: share of the reviews of other products that are found.
        nothing: share of the products whose query finds no review at all.
    """

    keywords: float
    right: float
    others: float
    nothing: float


def collections(shared: Path, titles: Iterable[Title]) -> dict[str, Collection]:
    """The three collections; the titles are those that kinds of goods may be asked by."""
    reviews = shared / "reviews"
    phones = [(row["手机型号"], row["评论内容"]) for row in _rows(reviews / "jd_phone_reviews.csv")]
    cars = [
        (f"{row['brand']} {row['car_model']}", row["desc"])
        for row in _rows(reviews / "auto_complaints_12365auto.csv")
    ]
    goods = [(row["cat"], row["review"]) for row in _rows(reviews / "online_shopping_10_cats.csv")]
    kinds = _collection(goods)
    asked = {
        title.text: kinds.right[kind]
        for title in titles
        for kind in dict.fromkeys(title.text[span.begin : span.end] for span in title.spans)
        if kind in kinds.right
    }
    for row in _rows(shared / "products" / "dairy_names_seen.csv"):
        if "蒙牛" in row["name"]:
            asked[row["name"]] = kinds.right["蒙牛"]
    return {
        "phones": _collection(phones),
        "cars": _collection(cars),
        "kinds": Collection(kinds.texts, asked),
    }


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _collection(reviews: Iterable[tuple[str, str]]) -> Collection:
    texts: list[str] = []
    right: dict[str, set[int]] = {}
    for number, (product, text) in enumerate(reviews):
        texts.append(normalize(text).casefold())
        right.setdefault(product, set()).add(number)
    return Collection(tuple(texts), {product: frozenset(numbers) for product, numbers in right.items()})


class Asking:
    """Asks one collection; remembers which reviews have which word."""

    def __init__(self, collection: Collection) -> None:
        """Begins with nothing asked."""
        self._collection = collection
        self._having: dict[str, frozenset[int]] = {}

    def ask(self, choose: Choose) -> Found:
        """What the queries of a chooser find."""
        return self._found({name: tuple(choose(name)) for name in self._collection.right})

    def relaxed(self, choose: Choose, most: int) -> Found:
        """What they find after each has dropped keywords until `most` are left."""
        return self._found({name: _cut(tuple(choose(name)), most) for name in self._collection.right})

    def relaxed_to_a_hit(self, choose: Choose) -> Found:
        """What they find where a query drops keywords as long as it finds nothing."""
        queries: dict[str, tuple[str, ...]] = {}
        for name in self._collection.right:
            words = tuple(choose(name))
            while len(words) > 1 and not self._hits(words):
                words = _cut(words, len(words) - 1)
            queries[name] = words
        return self._found(queries)

    def _found(self, queries: Mapping[str, tuple[str, ...]]) -> Found:
        count = max(1, len(queries))
        keywords = right = others = nothing = 0.0
        for name, words in queries.items():
            hits, own = self._hits(words), self._collection.right[name]
            keywords += len(words)
            right += len(hits & own) / len(own)
            others += len(hits - own) / max(1, len(self._collection.texts) - len(own))
            nothing += not hits
        return Found(keywords / count, right / count, others / count, nothing / count)

    def _hits(self, words: Sequence[str]) -> frozenset[int]:
        hits: frozenset[int] | None = None
        for word in words:
            folded = word.casefold()
            if folded not in self._having:
                texts = enumerate(self._collection.texts)
                self._having[folded] = frozenset(number for number, text in texts if folded in text)
            hits = self._having[folded] if hits is None else hits & self._having[folded]
        return hits or frozenset()


def _cut(words: tuple[str, ...], most: int) -> tuple[str, ...]:
    while len(words) > most:
        drop = first_to_drop(words)
        words = (*words[:drop], *words[drop + 1 :])
    return words
