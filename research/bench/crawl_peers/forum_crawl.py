"""A crawl of threads of several forum programs: how many pages learned rules read, how rightly, and what they save.

The pages are made from the samples in tests/reading/cases/programs.yaml, with other authors, days, texts, quotes and
numbers of posts, and an advertisement among the posts. An installed package doesn't have the samples.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import yaml

from app.run.version import ROOT
from splitter.catalog.rules import PageRules
from tasks.reading.extract import read_page
from tasks.reading.learned_rules import LearnedRules

_SAMPLES = ROOT / "tests" / "reading" / "cases" / "programs.yaml"
_NOW = datetime(2026, 11, 20, tzinfo=UTC)
_MOST_POSTS, _QUOTED, _TWO_PARAGRAPHS = 20, 0.1, 0.2
_NAMES = [
    "khixxx",
    "tidepool",
    "jonas88",
    "Brigitte",
    "woodcutter",
    "Ellen.K",
    "rasmus",
    "nightowl",
    "Okafor",
    "lindqvist",
    "zed_x",
    "Amelie",
    "hollis",
]
_THINGS = [
    "kettle",
    "lid",
    "hinge",
    "tram",
    "station",
    "maker",
    "filter",
    "handle",
    "spring",
    "shop",
    "letter",
    "cable",
    "lamp",
    "battery",
    "engine",
    "window",
]
_ACTS = ["broke", "held", "leaked", "answered", "sent", "sold", "came", "fell", "stayed", "opened", "closed"]
_WHEN = (
    "after a month",
    "in the morning",
    "without any glue",
    "for five euros",
    "near the station",
    "since the spring",
)

T = TypeVar("T")


def learned_figures(pages_each: int) -> dict[str, float]:
    """Read so many pages of each program twice: in full, and by learned rules.

    Returns:
        ``served``: share of the pages read by rules. ``bodies``, ``authors``, ``days``: share of the reviews for which
        these are the full reader's, with the same key; ``pages`` the share of pages that are equal in everything.
        ``full_ms`` and ``learned_ms``: CPU milliseconds, mean of all pages. Empty without the samples.
    """
    if not _SAMPLES.exists():
        return {}
    samples = yaml.safe_load(_SAMPLES.read_text("utf-8"))
    programs = [one for one in samples if "rows" in one and not one.keys() & {"head", "body"}]
    learned, rules = LearnedRules(), PageRules(main_text=True)
    same = {"bodies": 0, "authors": 0, "days": 0, "pages": 0}
    reviews, spent_ms = 0, [0.0, 0.0]
    for number, program in enumerate(programs):
        for place, (title, page) in enumerate(_pages(program, pages_each, random.Random(number))):
            url = f"https://forum{number}.example.org/threads/{title.lower().replace(' ', '-')}.{place}/"
            full, full_ms = _timed(lambda: read_page(page, url, rules, now=_NOW))  # noqa: B023
            quick, quick_ms = _timed(
                lambda: read_page(page, url, rules, now=_NOW, read_thread=learned.read_thread_page)  # noqa: B023
            )
            spent_ms = [spent_ms[0] + full_ms, spent_ms[1] + quick_ms]
            reviews += len(full.reviews)
            by_key = {one.key: one for one in quick.reviews}
            pairs = [(one, by_key[one.key]) for one in full.reviews if one.key in by_key]
            same["bodies"] += sum(one.body == other.body for one, other in pairs)
            same["authors"] += sum(one.author == other.author for one, other in pairs)
            same["days"] += sum(one.date == other.date for one, other in pairs)
            same["pages"] += full == quick
    pages = pages_each * len(programs)
    agreement = {name: round(n / (pages if name == "pages" else reviews), 4) for name, n in same.items()}
    full_ms, learned_ms = (round(one / pages, 2) for one in spent_ms)
    return {"served": learned.served / pages, **agreement, "full_ms": full_ms, "learned_ms": learned_ms}


def _timed(read: Callable[[], T]) -> tuple[T, float]:
    began_s = time.thread_time()
    return read(), 1000 * (time.thread_time() - began_s)


def _pages(program: Mapping[str, Any], count: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield title and HTML of pages of a program."""
    for _ in range(count):
        day = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=rng.randrange(250))
        posts: list[str] = []
        said: list[str] = []
        for n in range(rng.randint(2, _MOST_POSTS)):
            day += timedelta(days=rng.randint(0, 3))
            name, (old, _, _, *others) = rng.choice(_NAMES), rng.choice(program["rows"])
            marks = [name[0].upper() if one == old[0].upper() else one.replace(old, name) for one in others]
            quoted = said and rng.random() < _QUOTED
            quote = (
                f'<blockquote class="quote">{name} wrote: {rng.choice(said)}</blockquote>' if quoted else ""
            )
            said.append(_sentence(rng))
            further = f"<br><br>{_sentence(rng)}" if rng.random() < _TWO_PARAGRAPHS else ""
            row = (name, f"{day:%Y-%m-%d}", f"{quote}{said[-1]}{further}", *marks)
            posts.append(program["each"].format(*row, n=n % 9 + 1))
        advertisement = f'<div class="ad"><a href="/go/1">Buy the new {rng.choice(_THINGS)} today, free delivery</a></div>'
        posts.insert(rng.randint(1, len(posts)), advertisement)
        title = f"{rng.choice(_THINGS).title()} {rng.choice(_ACTS)} {rng.choice(_WHEN)}"
        yield title, f"<html><title>{title}</title><body><h1>{title}</h1>{''.join(posts)}</body></html>"


def _sentence(rng: random.Random) -> str:
    parts = (
        f"the {rng.choice(_THINGS)} {rng.choice(_ACTS)} {rng.choice(_WHEN)}" for _ in range(rng.randint(2, 6))
    )
    return ", and ".join(parts).capitalize() + "."
