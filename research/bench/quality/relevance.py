"""How right it is decided whether a page is about a product, and whether it is a review: precision and recall.

Pages are made from real texts, so that what they are about is known:

- **titles**: a page that names brand, product and model of a real product title as a person marked them, with a
  review below, is about it; a page of the same brand's other product, or of another brand's same product, is not.
- **phones**: reviews under their phone's title are about it; under another phone's they are not.
- **cars**: a complaint about a model is about it; one about another model, of the same brand first, is not. The
  complaint's own heading is all there is.
- **articles**: saved news are about none of the titles' products; all of them are tried with all titles for testing.
- **near**: every text with every near product of its maker (`research.tools.near_products`): cars, lines of a dairy brand.

Without the shared data, the pages are those of ``research/samples/relevance.csv``, near products those of ``near.csv``.

Rules compared: all keywords must be there; any one; half of them; the crawl's share of their weight
(`tasks.reading.judge.product_match`, whose weights and share were chosen on the very set made of the shared data); the
brand. Of near products and articles, the half and the titles for testing are scored: no rule was chosen by them.
"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, cycle, islice
from pathlib import Path
from random import Random
from typing import Any

from research.tools.near_products import near_products, only_testing, sample
from research.tools.near_products import quality as near
from research.tools.pagetruth import NO_SHARED, SAMPLES, saved_pages
from research.tools.titles import PARTS, conll
from research.training.train_keywords import halves
from splitter.errors import ProductNameError
from splitter.keywords import KeywordSet, keyword_sets_of, product_query
from splitter.lexicon import Role, roles
from tasks.domain.pages import Review
from tasks.reading.judge.product_match import contains, matchable_text, product_match
from tasks.reading.relevance import RejectReason, reject_reason

_TITLES, _COMPLAINTS, _PHONE_PAGES, _REVIEWS_A_PAGE = 600, 300, 12, 5


@dataclass(frozen=True, slots=True)
class Pair:
    """A product's keyword sets, a page's text, and whether the page is about the product."""

    source: str
    sets: tuple[KeywordSet, ...]
    text: str
    about: bool


Rule = Callable[[Sequence[KeywordSet], str], bool]


@dataclass(frozen=True, slots=True)
class _Title:
    text: str
    brands: tuple[str, ...]
    kinds: tuple[str, ...]
    models: tuple[str, ...]
    sets: tuple[KeywordSet, ...]

    @property
    def named(self) -> str:
        return " ".join((*self.brands, *self.models, *self.kinds))


def pairs(shared: Path) -> list[Pair]:
    """The trial set; the same every time."""
    if not (shared / "reviews").is_dir():
        return [
            Pair(
                "samples",
                keyword_sets_of(row["product"]),
                matchable_text(row["title"], [("", row["review"])]),
                row["about"] == "1",
            )
            for row in _rows(SAMPLES / "relevance.csv")
        ]
    rng = Random(7)
    bodies = _reviews(shared)
    rng.shuffle(bodies)
    below = cycle(bodies)
    titles = list(islice(_titles(shared), _TITLES))
    articles = [page for page in saved_pages(shared / "pages") if page.kind == "article.zh"]
    return [
        *_of_titles(titles, below, rng),
        *_of_phones(shared, rng),
        *_of_cars(shared, rng),
        *(
            Pair(
                "articles",
                title.sets,
                matchable_text(page.page_title, [("", page.body or page.page_title)]),
                False,
            )
            for page in articles
            for title in rng.sample(titles, 20)
        ),
    ]


def _of_titles(titles: list[_Title], below: Iterator[str], rng: Random) -> Iterator[Pair]:
    by_brand: dict[str, list[_Title]] = defaultdict(list)
    by_kind: dict[str, list[_Title]] = defaultdict(list)
    for title in titles:
        by_brand[title.brands[0]].append(title)
        by_kind[title.kinds[-1]].append(title)
    for title in titles:
        yield Pair("titles", title.sets, matchable_text(f"{title.named}怎么样", [("", next(below))]), True)
        yield Pair("titles", title.sets, matchable_text(title.text, [("", next(below))]), True)
        others = [o for o in by_brand[title.brands[0]] if not set(o.kinds) & set(title.kinds)]
        others = rng.sample(others, min(1, len(others)))
        same = [o for o in by_kind[title.kinds[-1]] if not set(o.brands) & set(title.brands)]
        others += rng.sample(same, min(1, len(same)))
        others += [o for o in rng.sample(titles, 1) if not set(o.brands) & set(title.brands)]
        for other in others:
            yield Pair(
                "titles", title.sets, matchable_text(f"{other.named}怎么样", [("", next(below))]), False
            )


def _of_phones(shared: Path, rng: Random) -> Iterator[Pair]:
    of: dict[str, list[str]] = defaultdict(list)
    for row in _rows(shared / "reviews" / "jd_phone_reviews.csv"):
        of[row["手机型号"]].append(row["评论内容"])
    for model in of:
        sets = keyword_sets_of(model)
        for other, theirs in of.items():
            for _ in range(_PHONE_PAGES if other == model else 2):
                page = [("", body) for body in rng.sample(theirs, min(_REVIEWS_A_PAGE, len(theirs)))]
                yield Pair("phones", sets, matchable_text(other, page), other == model)


def _of_cars(shared: Path, rng: Random) -> Iterator[Pair]:
    rows = _rows(shared / "reviews" / "auto_complaints_12365auto.csv")
    for row in rows[:_COMPLAINTS]:
        sets = keyword_sets_of(row["brand"] + row["car_model"])
        yield Pair("cars", sets, matchable_text("车质网投诉", [("", row["desc"])]), True)
        near = [o for o in rows if o["brand"] == row["brand"] and o["car_model"] != row["car_model"]]
        for other in [*rng.sample(near, min(1, len(near))), rng.choice(rows)]:
            if other["car_model"] not in row["car_model"] and row["car_model"] not in other["car_model"]:
                yield Pair("cars", sets, matchable_text("车质网投诉", [("", other["desc"])]), False)


def _titles(shared: Path) -> Iterator[_Title]:
    """Yield real titles with a brand and a product that a person marked, and keywords."""
    for title in conll(shared / "products" / "taobao_titles_ner.conll"):
        of = {
            part: tuple(dict.fromkeys(title.text[s.begin : s.end] for s in title.spans if s.part == part))
            for part in PARTS
        }
        if of["brand"] and of["product"]:
            with suppress(ProductNameError):
                sets = keyword_sets_of(title.text)
                yield _Title(title.text, of["brand"], of["product"], of["model"], sets)


def _reviews(shared: Path) -> list[str]:
    shop = [
        row["review"]
        for row in _rows(shared / "reviews" / "online_shopping_10_cats.csv")
        if row["cat"] != "蒙牛"
    ]
    return [*shop, *(row["review"] for row in _rows(shared / "reviews" / "waimai_10k_sample.csv"))]


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def rules() -> dict[str, Rule]:
    """Rules by name; that of the crawl is "weighed"."""

    def held(words: Sequence[str], text: str) -> int:
        return sum(contains(text, word) for word in words)

    def any_set(rule: Callable[[Sequence[str], str], bool]) -> Rule:
        return lambda sets, text: any(rule(words, text) for words in sets)

    def brand(words: Sequence[str], text: str) -> bool:
        brands = [word for word in words if roles().get(word) is Role.BRAND] or words[:1]
        return all(contains(text, word) for word in brands)

    return {
        "all": any_set(lambda words, text: held(words, text) == len(words)),
        "any": any_set(lambda words, text: held(words, text) > 0),
        "half": any_set(lambda words, text: 2 * held(words, text) >= len(words)),
        "brand": any_set(brand),
        "weighed": lambda sets, text: product_match(sets, text).matches,
    }


def quality(trial: Sequence[Pair], rule: Rule) -> dict[str, float]:
    """Precision and recall of "is about the product", over all and by source."""
    figures: dict[str, float] = {}
    groups: dict[str, list[Pair]] = defaultdict(list)
    for pair in trial:
        groups["all"].append(pair)
        groups[pair.source].append(pair)
    for name, members in groups.items():
        taken = [pair for pair in members if rule(pair.sets, pair.text)]
        right = sum(pair.about for pair in taken)
        about = sum(pair.about for pair in members)
        if about:
            figures[f"{name}.precision"] = round(right / max(1, len(taken)), 3)
            figures[f"{name}.recall"] = round(right / about, 3)
        figures[f"{name}.wrong_kept"] = round((len(taken) - right) / max(1, len(members) - about), 3)
    return figures


def near_quality(shared: Path) -> dict[str, float]:
    """Return precision and recall among near products of the crawl's rule and of the brand alone, on texts for testing."""
    there = (shared / "reviews").is_dir()
    groups = near_products(shared) if there else {"samples": sample(SAMPLES / "near.csv")}
    figures: dict[str, float] = {}
    for rule_name in ("weighed", "brand"):
        keeps = _keeping(rules()[rule_name])
        for kind, members in groups.items():
            found = near(only_testing(members) if there else members, keeps)
            figures |= {f"near.{kind}.{rule_name}.{key}": value for key, value in found.items()}
    return figures


def _keeping(rule: Rule) -> Callable[[str, str], bool]:
    return lambda name, text: rule(_sets(name), _said(text))


@cache
def _sets(name: str) -> tuple[KeywordSet, ...]:
    return product_query(name).keyword_sets


@lru_cache(256)
def _said(text: str) -> str:
    return matchable_text("", [("", text)])


def unrelated(shared: Path) -> dict[str, float]:
    """How many of many pairs of a saved article and a title for testing are kept: none should be."""
    folders = (saved_pages(shared / name) for name in ("pages", "pages-2024"))
    pages = [page for page in chain.from_iterable(folders) if page.kind == "article.zh"]
    titles = [(page.page_title or page.title, page.body) for page in pages]
    articles = [matchable_text(title, [("", body or title)]) for title, body in titles]
    tried = kept = 0
    for title in [one for titles in halves(shared)[1].values() for one in titles]:
        with suppress(ProductNameError):
            sets = product_query(title.text).keyword_sets
            tried += len(articles)
            kept += sum(product_match(sets, article).matches for article in articles)
    return {
        "unrelated.pairs": tried,
        "unrelated.kept": kept,
        "unrelated.kept_in_10000": round(1e4 * kept / max(1, tried), 2),
    }


def refused_reviews(shared: Path) -> dict[str, float]:
    """Share of real reviews that would be refused as no review, as records and as main texts."""
    reviews = shared / "reviews"
    if reviews.is_dir():
        shop = _rows(reviews / "online_shopping_10_cats.csv")
        texts = _reviews(shared) + [row["review"] for row in shop if row["cat"] == "蒙牛"]
        texts += [row["评论内容"] for row in _rows(reviews / "jd_phone_reviews.csv")]
    else:
        texts = [row["review"] for row in _rows(SAMPLES / "relevance.csv")]
    figures: dict[str, float] = {"reviews": len(texts)}
    for name, main_text in (("record", False), ("main_text", True)):
        reasons = [
            reject_reason(Review("#0", "", text, "", "", None, None), main_text=main_text) for text in texts
        ]
        figures[f"{name}.refused"] = round(sum(reason is not None for reason in reasons) / len(texts), 4)
        for reason in RejectReason:
            if n := sum(one is reason for one in reasons):
                figures[f"{name}.refused.{reason}"] = n
    return figures


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Score the rules on the trial set; with `smallest` that of the samples.

    Returns:
        ``ratios``: precision and recall of the crawl's rule, and the recall of requiring all keywords;
        ``figures``: every rule over all pages and by source, how many pairs, real reviews refused.
    """
    shared = NO_SHARED if smallest else shared
    trial = pairs(shared)
    by_rule = {name: quality(trial, rule) for name, rule in rules().items()}
    ours, strict = by_rule["weighed"], by_rule["all"]
    figures: dict[str, Any] = {
        f"{name}.{key}": value for name, of in by_rule.items() for key, value in of.items()
    }
    for source, count in Counter(pair.source for pair in trial).items():
        figures[f"pairs.{source}"] = count
    figures |= near_quality(shared)
    if (shared / "products").is_dir():
        figures |= unrelated(shared)
    figures |= {f"no_review.{key}": value for key, value in refused_reviews(shared).items()}
    ratios = {
        "precision": ours["all.precision"],
        "recall": ours["all.recall"],
        "recall_all_keywords": strict["all.recall"],
        **{
            f"near_{kind}_{key}": figures[f"near.{kind}.weighed.{key}"]
            for kind in ("cars", "dairy", "samples")
            for key in ("precision", "recall")
            if f"near.{kind}.weighed.{key}" in figures
        },
        "reviews_refused": figures["no_review.record.refused"],
    }
    return {"bench": "relevance", "ratios": ratios, "figures": figures}
