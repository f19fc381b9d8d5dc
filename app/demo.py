"""The demo: the main job on the built-in lab, from four product names to their reviews, in about a minute."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp

from app import wiring
from app.config import DEFAULT_DATABASE, Settings
from app.embedded import Until
from app.imports import new_product
from app.lab.running import running_lab
from app.runs import Watcher, run
from app.summary import Summary
from splitter.catalog.load import BUILTIN
from tasks.store import products
from tasks.store.database import Store, read_now
from tasks.store.reports import Stored
from tasks.store.review_rows import ReviewRow, review_rows
from tasks.store.verify import Verification, verify

PRODUCTS = ("光明高钙牛奶", "特仑苏", "蒙牛早餐奶", "雀巢中老年奶粉")
NODES = 4
SLOTS = 8
LONGEST_S = 90.0

SILENT_AFTER_S = 12.0
REQUEST_TIMEOUT_S = 6.0
BACKOFF_S = 0.5
REST_FACTOR = 0.05
"""What the demo shortens (`app.config.Settings`), so that five recalls of a dead site fit into a minute."""

_SAMPLES = 3
_SHORTEST_SAMPLE = 20


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What the demo shows at its end.

    Attributes:
        samples: a few reviews, from different products where there are.
    """

    summary: Summary
    samples: tuple[ReviewRow, ...]
    verification: Verification


def demo_settings(database_url: str | None, seed: int) -> Settings:
    """Settings of the demo; the environment has no say in them.

    Args:
        database_url: None: a new one in a temporary folder, which stays there to be looked at.
    """
    return Settings(
        database_url=database_url
        or f"sqlite:///{Path(mkdtemp(prefix='reviewloop-demo-')) / DEFAULT_DATABASE[10:]}",
        sites=BUILTIN[0],
        slots=SLOTS,
        seed=seed,
        silent_after_s=SILENT_AFTER_S,
        request_timeout_s=REQUEST_TIMEOUT_S,
        backoff_s=BACKOFF_S,
        rest_factor=REST_FACTOR,
    )


@contextmanager
def opened(settings: Settings) -> Iterator[tuple[Settings, Store]]:
    """The lab and the store of the demo, with its products in it."""
    with running_lab(settings.catalog(), "demo") as lab:
        settings = replace(settings, lab=(lab.host, lab.port))
        with wiring.opened_store(settings) as store:
            with store.begin() as conn:
                now = read_now(conn)
                for name in PRODUCTS:
                    products.add(conn, now, new_product(name))
            yield settings, store


def crawl(settings: Settings, store: Store, watcher: Callable[[Stored], Watcher]) -> DemoResult:
    """Run the loop until all is settled, and look at what it brought."""
    done = run(settings, store, NODES, Until(done=True, seconds=LONGEST_S), watcher)
    with store.read() as conn:
        return DemoResult(done, _samples(review_rows(conn)), verify(conn, read_now(conn)))


def _samples(rows: Iterator[ReviewRow]) -> tuple[ReviewRow, ...]:
    """The first review long enough to be worth reading, of each product."""
    found: dict[str, ReviewRow] = {}
    for row in rows:
        if row.same_as is None and len(row.body) >= _SHORTEST_SAMPLE:
            found.setdefault(row.product, row)
        if len(found) == _SAMPLES:
            break
    return tuple(islice(found.values(), _SAMPLES))
