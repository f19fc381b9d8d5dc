"""How well made reposts are found among real reviews, and what looking at a review costs.

The real texts (`data/reviews` of the shared data; without it, invented ones of `research.tools.pages`) are stored, then
reposts of some of them, made by seeded edits, and the sweep goes over all. Recall: reposts that are linked to their
source, or to what their source is itself linked to. Wrong: linked to another text. Car complaints are titles of
complaints that are all different, though many read alike: those among them that are linked are counted as false links
of real texts. Beside it SimHash (Charikar 2002, 64 bits, as Manku et al. 2007 use it) on the same shingles, at
several Hamming distances, comparing all pairs.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import Connection, insert, select, text

from app.run.settings import MIGRATIONS
from research.tools.pages import RULES, review_page
from tasks.jobs import repost_linking
from tasks.reading.extract import read_page
from tasks.reading.near_duplicates import SHINGLE, SHORTEST, plain
from tasks.store import reposts, schema
from tasks.store.database import Store
from tasks.store.tables import review_bands, review_links, reviews

_FILES = (
    ("online_shopping_10_cats.csv", "review"),
    ("waimai_10k_sample.csv", "review"),
    ("jd_phone_reviews.csv", "评论内容"),
    ("auto_complaints_12365auto.csv", "desc"),
)
_COMPLAINTS = _FILES[3][0]
_REPOSTS_EACH = 200
_INVENTED_PAGES = 10
_DISTANCES = (3, 6, 10, 14)
_NOW = datetime(2026, 1, 1, tzinfo=UTC)

Edit = Callable[[str, Random], str]


def _marks(source: str, rng: Random) -> str:
    return "".join(c if c.isalnum() else rng.choice("，。！？；～… ") for c in source) + rng.choice("！。~")


def _emoji(source: str, rng: Random) -> str:
    return source + rng.choice(["😡", "👍👍", "[怒]", "[哈哈]", "(^_^)"]) * rng.randint(1, 3)


def _prefix(source: str, rng: Random) -> str:
    return rng.choice(["转发微博：", "转：", "【转载】", "RT ", "扩散！", "大家看看："]) + source


def _forward(source: str, rng: Random) -> str:
    comment = rng.choice(["转发", "太过分了", "是真的吗？", "以后再也不买了", "哈哈哈"])
    return f"{comment}//@{rng.choice(['牛奶观察', 'user_2013'])}：{source}"


def _suffix(source: str, rng: Random) -> str:
    return source + rng.choice([" http://t.cn/zYx12Ab", "（来自网络）", "，转自微博", " @质量监督"])


def _word(source: str, rng: Random) -> str:
    at = rng.randrange(max(1, len(source) - 1))
    return source[:at] + rng.choice(["非常", "产品", "朋友", "服务", "感觉", "问题"]) + source[at + 2 :]


def _two_words(source: str, rng: Random) -> str:
    return _word(_word(source, rng), rng)


def _left_out(source: str, rng: Random) -> str:
    at = rng.randrange(max(1, len(source) - 1))
    return source[:at] + source[at + 2 :]


def _cut(source: str, rng: Random) -> str:  # noqa: ARG001 - every edit is called alike
    return source[: max(SHORTEST + 2, len(source) * 4 // 5)]


_EDITS: dict[str, Edit] = {
    "marks": _marks,
    "emoji": _emoji,
    "prefix": _prefix,
    "forward": _forward,
    "suffix": _suffix,
    "word": _word,
    "two_words": _two_words,
    "left_out": _left_out,
    "cut": _cut,
}


@dataclass(frozen=True, slots=True)
class _Made:
    """A repost that was made of the text at this place."""

    edit: str
    source: int
    body: str


def run(shared: Path) -> dict[str, Any]:
    """Store, sweep, and compare what was linked with what was made.

    Returns:
        ``ratios``: recall, precision (right links of all whose truth is known) and F1 of the sweep, and F1 of SimHash
        at its best distance; ``figures``: recall by edit, false links; what comparing and writing cost, and how long
        the writing of a step keeps other writers of SQLite waiting.
    """
    texts, complaints = _texts(shared)
    made = _made(texts, Random(7))
    figures, linked = _swept(texts, made)
    figures |= _quality("minhash", texts, made, linked, complaints)
    figures["natural_links"] = sum(place < len(texts) for place in linked)
    figures["complaints"] = len(complaints)
    nearest = _simhash_nearest([*texts, *(one.body for one in made)], len(texts), complaints)
    for distance in _DISTANCES:
        linked = {place: near for place, (far, near) in nearest.items() if far <= distance}
        figures |= _quality(f"simhash_{distance}", texts, made, linked, complaints)
    best = max((f"simhash_{distance}" for distance in _DISTANCES), key=lambda name: figures[f"{name}_f1"])
    ratios = {key: figures[f"minhash_{key}"] for key in ("recall", "precision", "f1")}
    return {
        "bench": "reposts",
        "ratios": ratios | {"best_simhash_f1": figures[f"{best}_f1"]},
        "figures": figures,
    }


def _texts(shared: Path) -> tuple[list[str], set[int]]:
    """Texts that are long enough, each once, and the places of the complaints among them."""
    found: dict[str, str] = {}
    seen: set[str] = set()
    for name, body in _shared_texts(shared) if (shared / "reviews").is_dir() else _invented_texts():
        key = plain(body)
        if len(key) >= SHORTEST and key not in seen:
            seen.add(key)
            found[body] = name
    return list(found), {place for place, name in enumerate(found.values()) if name == _COMPLAINTS}


def _shared_texts(shared: Path) -> Iterator[tuple[str, str]]:
    for name, column in _FILES:
        with (shared / "reviews" / name).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                yield name, row[column]


def _invented_texts() -> Iterator[tuple[str, str]]:
    for number in range(_INVENTED_PAGES):
        page = read_page(review_page(number).decode(), "http://example.com/", RULES, now=_NOW)
        for review in page.reviews:
            yield "invented", review.body


def _made(texts: Sequence[str], rng: Random) -> list[_Made]:
    return [
        _Made(name, source, edit(texts[source], rng))
        for name, edit in _EDITS.items()
        for source in rng.sample(range(len(texts)), min(_REPOSTS_EACH, len(texts) // 10))
    ]


def _swept(texts: Sequence[str], made: Sequence[_Made]) -> tuple[dict[str, float], dict[int, int]]:
    """What the sweep costs, and its links: place of the repost (texts first, then made) to place of the original."""
    bodies = [*texts, *(one.body for one in made)]
    with tempfile.TemporaryDirectory(prefix="reviewloop-bench-") as folder:
        store = Store.open(f"sqlite:///{folder}/reviews.db")
        schema.upgrade(store, MIGRATIONS)
        with store.engine.connect() as conn:
            # Reviews without pages: only their texts matter. SQLite obeys it only before a transaction begins.
            conn.connection.cursor().execute("PRAGMA foreign_keys = OFF")
            _insert(conn, bodies)
            conn.commit()
            before = _file_size(conn)
            compared, written = _steps(conn)
            grown = _file_size(conn) - before
            rows = conn.execute(select(review_links.c.review_id, review_links.c.original_id)).all()
            bands = conn.execute(select(review_bands.c.review_id)).all()
        store.close()
    figures = {
        "reviews": len(bodies),
        "characters_mean": round(sum(map(len, bodies)) / len(bodies), 1),
        "cpu_us_per_review": round(1e6 * (sum(compared) + sum(written)) / len(bodies), 1),
        "writer_cpu_us_per_review": round(1e6 * sum(written) / len(bodies), 1),
        "longest_hold_cpu_ms": round(1000 * max(written), 1),
        "index_bytes_per_review": round(grown / len(bodies), 1),
        "index_rows_per_review": round(len(bands) / len(bodies), 2),
    }
    return figures, {review - 1: original - 1 for review, original in rows}


def _steps(conn: Connection) -> tuple[list[float], list[float]]:
    """The sweep to its end; CPU seconds of each step's comparing and writing: other programs don't count."""
    compared: list[float] = []
    written: list[float] = []
    while True:
        begin = time.process_time()
        step = repost_linking.find(conn, _NOW, repost_linking.COMPARED_AT_ONCE)
        conn.commit()
        found = time.process_time()
        compared.append(found - begin)
        if step is None:
            return compared, written
        reposts.save(conn, step)
        conn.commit()
        written.append(time.process_time() - found)


def _insert(conn: Connection, bodies: Sequence[str]) -> None:
    same = {"page_id": 1, "title": "", "author": "", "date_text": "", "url": "", "site": "", "text_hash": b""}
    same |= {"collected_at": _NOW, "node": "", "attempt_id": 1}
    rows = [same | {"id": n, "key": str(n), "body": body} for n, body in enumerate(bodies, 1)]
    conn.execute(insert(reviews), rows)


def _file_size(conn: Connection) -> int:
    pages = conn.execute(text("PRAGMA page_count")).scalar_one()
    return int(pages) * int(conn.execute(text("PRAGMA page_size")).scalar_one())


def _quality(
    name: str, texts: Sequence[str], made: Sequence[_Made], linked: Mapping[int, int], complaints: set[int]
) -> dict[str, float]:
    """Recall by edit and in all, false links (wrong ones of reposts, and complaints), precision and F1."""
    right: Counter[str] = Counter()
    wrong = 0
    for place, one in enumerate(made, len(texts)):
        to = linked.get(place)
        # A source that is itself near another text is one with it.
        if to is not None and to in (one.source, linked.get(one.source)):
            right[one.edit] += 1
        elif to is not None:
            wrong += 1
    found, alike = sum(right.values()), len(complaints & linked.keys())
    recall, precision = found / len(made), found / max(1, found + wrong + alike)
    figures: dict[str, float] = {
        f"{name}_recall": round(recall, 3),
        f"{name}_precision": round(precision, 4),
        f"{name}_f1": round(2 * recall * precision / max(1e-9, recall + precision), 3),
        f"{name}_wrong": wrong,
        f"{name}_complaints_linked": alike,
    }
    return figures | {
        f"{name}_recall_{edit}": round(right[edit] * len(_EDITS) / len(made), 3) for edit in _EDITS
    }


def _simhash_nearest(bodies: Sequence[str], texts: int, complaints: set[int]) -> dict[int, tuple[int, int]]:
    """Of each complaint and each made repost the nearest other one of the first `texts`: its distance and place."""
    prints = [_simhash(_grams(plain(body))) for body in bodies]
    nearest = {}
    for place in [*sorted(complaints), *range(texts, len(bodies))]:
        own = prints[place]
        others = ((own ^ prints[at]).bit_count() if at != place else 64 for at in range(texts))
        nearest[place] = min(zip(others, range(texts), strict=True))
    return nearest


def _grams(plain_text: str) -> set[str]:
    return {plain_text[at : at + SHINGLE] for at in range(len(plain_text) - SHINGLE + 1)}


def _simhash(of: Iterable[str]) -> int:
    votes: dict[int, int] = defaultdict(int)
    for one in of:
        bits = int.from_bytes(blake2b(one.encode(), digest_size=8).digest(), "big")
        for place in range(64):
            votes[place] += 1 if bits >> place & 1 else -1
    return sum(1 << place for place, vote in votes.items() if vote > 0)
