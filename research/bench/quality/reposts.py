"""Which reviews are linked as reposts: none of different buyers who write the same stock phrases, and all true reposts.

Stock phrases (`stock-phrases.txt`, by us) and real texts are divided in two. The minimum length of a text of two authors
(`tasks.reading.copies.copy_key.LEAST`) was chosen on the half `tuned`; the half `unseen` was looked at once.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from research.tools.pagetruth import NO_SHARED, SAMPLES
from tasks.domain.pages import Review
from tasks.jobs.repost_linking import link_reposts
from tasks.reading.copies.copy_key import copy_key
from tasks.store.content import imports, products
from tasks.store.content.imports import ImportedReview, page_of
from tasks.store.content.products import NewProduct
from tasks.store.queries.reviews import list_reviews
from tasks.store.sql.database import Store
from tasks.store.sql.tables import metadata

HALVES = ("tuned", "unseen")
BUYERS, STOCK, WITHOUT_AUTHOR, MASKED = 2000, 1200, 400, 100
FORWARDS, COMPLAINTS, TWICE = 70, 35, 60
_PHRASES = Path(__file__).with_name("stock-phrases.txt")
_PRODUCT = "特仑苏"
_SITES = ("jd.com", "tmall.com", "suning.com")
_COMPLAINT_SITES = ("12315.com", "tousu.sina.com.cn", "ts.21cn.com")
_BEFORE = ("太过分了，", "大家看看：", "求扩散！", "【转载】", "转自网友：", "亲们注意了 ", "气死我了，")
_AFTER = ("（来自网络）", "，求转发！", "，大家以后别买了", "。转发微博", "，有没有人管管？", "——转自论坛")
_FORWARD = ("转发微博//@牛奶观察:", "太坑了//@质量万里行:", "[怒]//@user_2013:")
_SHORT_POST, _LONG_POST, _COMPLAINT = 12, 26, 30
"""Least characters of the posts and complaints that are passed on."""


class Text(NamedTuple):
    """A review as it is stored."""

    site: str
    author: str
    body: str


class Pair(NamedTuple):
    """An original and its repost."""

    original: Text
    repost: Text


class Texts(NamedTuple):
    """A half of the texts: stock phrases, reviews of shops, posts of a microblog, and complaints."""

    phrases: Sequence[str]
    shop: Sequence[str]
    posts: Sequence[str]
    complaints: Sequence[str]


def load_texts(shared: Path, half: str) -> Texts:
    """Return the texts of a half, in an order by chance that is always the same."""
    own = HALVES.index(half)
    phrases = _PHRASES.read_text("utf-8").split()[own::2]
    folder = shared / "reviews"
    if not folder.is_dir():
        with (SAMPLES / "relevance.csv").open(encoding="utf-8", newline="") as file:
            found = [row["review"] for row in csv.DictReader(file)]
        return Texts(phrases, found, found, found)
    rows = [
        *_read(folder / "online_shopping_10_cats.csv", "review"),
        *_read(folder / "waimai_10k_sample.csv", "review"),
    ]
    rows += _read(folder / "jd_phone_reviews.csv", "评论内容")
    rows = [row for row in rows if blake2b(row[2].encode(), digest_size=1).digest()[0] % 2 == own]
    Random(17 + own).shuffle(rows)
    shop = [text for kind, _, text in rows if kind != "蒙牛"]
    posts = [text for kind, _, text in rows if kind == "蒙牛"]
    complaints = [
        text for kind, label, text in rows if kind != "蒙牛" and label == "0" and len(text) >= _COMPLAINT
    ]
    return Texts(phrases, shop, posts, complaints)


def _read(path: Path, column: str) -> list[tuple[str, str, str]]:
    """Return category, label and text of each row; empty if the file does not have them."""
    with path.open(encoding="utf-8", newline="") as file:
        return [(row.get("cat", ""), row.get("label", ""), row[column]) for row in csv.DictReader(file)]


def make_buyers(texts: Texts, rng: Random) -> list[Text]:
    """Return reviews of different buyers: stock phrases and real texts, some without author, some with one masked name."""
    bodies = [rng.choice(texts.phrases) for _ in range(STOCK)] + list(texts.shop[: BUYERS - STOCK])
    named = len(bodies) - WITHOUT_AUTHOR - MASKED
    authors = [f"买家{n}号" for n in range(named)] + [""] * WITHOUT_AUTHOR + ["j***n"] * MASKED
    rng.shuffle(bodies)
    rng.shuffle(authors)
    return [Text(rng.choice(_SITES), author, body) for author, body in zip(authors, bodies, strict=False)]


def make_forwards(posts: Sequence[str], rng: Random) -> list[Pair]:
    """Return posts and their forwards by others, with words before, behind, on both sides, or a microblog's mark."""
    kinds: tuple[Callable[[str], str], ...] = (
        lambda text: rng.choice(_BEFORE) + text,
        lambda text: text + rng.choice(_AFTER),
        lambda text: rng.choice(_FORWARD) + text,
        lambda text: rng.choice(_BEFORE) + text + rng.choice(_AFTER),
    )
    chosen = rng.sample(posts, min(FORWARDS, len(posts)))
    return [
        Pair(
            Text("weibo.com", f"博主{n}甲", text),
            Text("weibo.com", f"博主{n}乙", kinds[n % len(kinds)](text)),
        )
        for n, text in enumerate(chosen)
    ]


def make_complaints(texts: Texts, rng: Random) -> list[Pair]:
    """Return complaints, and each again on two other sites under another name."""
    pairs: list[Pair] = []
    for n, text in enumerate(rng.sample(texts.complaints, min(COMPLAINTS, len(texts.complaints)))):
        first, *others = (Text(site, f"投诉者{n}{site}", text) for site in _COMPLAINT_SITES)
        pairs += [Pair(first, other) for other in others]
    return pairs


def make_doubled(texts: Texts, rng: Random) -> list[Pair]:
    """Return texts that an author wrote twice; half of them are stock phrases."""
    chosen = rng.sample(texts.shop, min(TWICE // 2, len(texts.shop))) + rng.sample(texts.phrases, TWICE // 2)
    return [
        Pair(text, text) for text in (Text("jd.com", f"王小明{n}", body) for n, body in enumerate(chosen))
    ]


def link(given: Iterable[Text]) -> list[int | None]:
    """Store reviews, link them, and return for each the place of the review that it repeats."""
    with TemporaryDirectory() as folder:
        store = Store.open(f"sqlite:///{folder}/reviews.db")
        with store.begin() as tx:
            metadata.create_all(tx.engine_connection)
            products.add(tx, NewProduct(name=_PRODUCT, keywords=(_PRODUCT,), sites=()))
            imports.save(
                tx,
                "bench",
                [_imported(str(n), text) for n, text in enumerate(given)],
                products.ids(tx, [_PRODUCT]),
            )
        link_reposts(store, store.write, lambda: 0.0, 1.0)
        with store.read() as tx:
            rows = list(list_reviews(tx))
            place = dict(tx.rows("SELECT id, key FROM reviews"))
        store.close()
    found: list[int | None] = [None] * len(rows)
    for row in rows:
        original = row.near_of or row.same_as
        if original is not None:
            found[int(place[row.review])] = int(place[original])
    return found


def _imported(key: str, text: Text) -> ImportedReview:
    review = Review(key, "", text.body, text.author, "", None, None)
    page = page_of(text.site, "", _PRODUCT)
    return ImportedReview(_PRODUCT, _PRODUCT, text.site, "", review, page, copy_key(*text))


def recall(pairs: Sequence[Pair], others: Sequence[Text]) -> float:
    """Return the share of reposts that are linked to their original, or to what that one repeats, among other reviews."""
    found = link([*others, *(text for pair in pairs for text in pair)])
    linked = 0
    for n in range(len(pairs)):
        original = len(others) + 2 * n
        linked += found[original + 1] in (original, found[original]) and found[original + 1] is not None
    return round(linked / max(1, len(pairs)), 3)


def measure(shared: Path, half: str) -> dict[str, float]:
    """Return the shares of a half of the texts."""
    texts = load_texts(shared, half)
    rng = Random(23)
    buyers = make_buyers(texts, rng)
    found = link(buyers)
    others = [Text(rng.choice(_SITES), f"路过{n}号", text) for n, text in enumerate(texts.shop[-600:])]
    long_posts = [post for post in texts.posts if len(post) >= _LONG_POST]
    short_posts = [post for post in texts.posts if _SHORT_POST <= len(post) < _LONG_POST]
    groups = {
        "forwards": make_forwards(long_posts, rng),
        "complaints": make_complaints(texts, rng),
        "one_author": make_doubled(texts, rng),
    }
    figures = {f"{half}.{name}_found": recall(pairs, others) for name, pairs in groups.items()}
    every = Counter({name: len(pairs) for name, pairs in groups.items()})
    weighted = sum(figures[f"{half}.{name}_found"] * n for name, n in every.items())
    return {
        f"{half}.buyers_linked": round(sum(one is not None for one in found) / len(found), 4),
        f"{half}.reposts_found": round(weighted / every.total(), 3),
        **figures,
        f"{half}.short_forwards_found": recall(make_forwards(short_posts, rng), others),
    }


def run(shared: Path, smallest: bool) -> dict[str, Any]:
    """Link both halves; with `smallest` real texts are those of the samples.

    Returns:
        ``ratios``: share of reviews of different buyers that are linked, and of true reposts that are found, of texts that
        nothing was chosen on; ``figures``: the same by kind, for both halves.
    """
    shared = NO_SHARED if smallest else shared
    figures = {name: value for half in HALVES for name, value in measure(shared, half).items()}
    ratios = {name: figures[f"unseen.{name}"] for name in ("buyers_linked", "reposts_found")}
    return {"bench": "reposts", "ratios": ratios, "figures": figures}
