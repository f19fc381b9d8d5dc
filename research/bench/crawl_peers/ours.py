"""The whole product as a contestant: the embedded runner from products to stored reviews, until all is done.

Planning, admission, allocation, leases, robots.txt, send times, result pages, duplicates, node-run control and
recall are all in the seconds measured; nothing is switched off. Limits of the hosts are as high as a catalog allows.
Variant `without_rules`: the same pages, of sites without rules. Variant `without_judging`: neither the voices of reviews nor
whether a page is about the product are judged, which no peer does either.
"""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import func, select

from app.run.embedded import EmbeddedRunner
from app.run.nodes import make_nodes
from app.run.open_store import open_store
from app.run.process import Until, run_coroutine
from app.run.setting_fields import Settings
from research.bench.crawl_peers.contest import Call, Figures, Watch, take_part
from research.bench.crawl_peers.web import (
    HITS,
    PAGES_OF_A_PRODUCT,
    PAGES_OF_A_SITE,
    PAGES_OF_A_TASK,
    SITES,
    keyword,
    site,
)
from research.tools.cpu_parts import CpuParts
from research.tools.pages import RULES, catalog_of
from splitter.catalog.model import Catalog
from splitter.catalog.rules import PageRules
from tasks.jobs import sweeps
from tasks.reading import page_jobs
from tasks.reading.judge import reviews as judged_reviews
from tasks.scheduling.feedback import Feedback
from tasks.store.content import products
from tasks.store.content.products import NewProduct
from tasks.store.sql.database import Store
from tasks.store.sql.tables import pages
from tasks.worker import page_collector, page_reader

THREADS = {
    "MainThread": "lanes",
    "reviewloop-writer": "writing",
    "reader": "reading",
    **dict.fromkeys(("asyncio", "uvloop"), "scheduling"),
}
"""Parts of the product by their threads. Some functions are timed apart: pages are read and judged in threads of lanes and of
sweeps, and the scheduler decides within its transaction, on the writer's thread."""
NODES = 4
SLOTS = 4
_LONGEST_S = 400.0


def catalog(pages: int, rules: PageRules = RULES, *, judge: bool = True) -> Catalog:
    """Return a catalog of one engine and the first sites that have `pages` pages.

    Args:
        judge: of the sites.
    """
    sites = [site(n) for n in range(min(SITES, pages // PAGES_OF_A_SITE))]
    params = {"q": "{query}", "page": "{page}"}
    made = catalog_of(
        sites, pages=PAGES_OF_A_TASK, params=params, paging_params=("page",), hits_per_page=HITS
    )
    judged = {name: one.model_copy(update={"judge": judge}) for name, one in made.sites.items()}
    return made.model_copy(update={"rules": dict.fromkeys(made.rules, rules), "sites": judged})


def crawl(call: Call) -> Figures:
    """Crawl the pages of as many products as they belong to; less than one product's: of its first sites."""
    if call.variant == "without_judging":
        setattr(page_jobs, "add_judgements_of_pages", lambda pages, *_: list(map(tuple, pages)))  # noqa: B010
    settings = Settings(
        database_url=f"sqlite:///{call.database}", lab=("127.0.0.1", call.port), slots=SLOTS, seed=1
    )
    with open_store(settings) as store:
        _add_products(store, max(1, call.pages // PAGES_OF_A_PRODUCT))
        watch = Watch()
        with _parts().measured() as parts:
            run_coroutine(_run(settings, store, call))
        figures = watch.figures(*_stored(store))
    return replace(figures, parts=parts)


def _parts() -> CpuParts:
    """Return what measures the parts; from now on reading and judging are timed."""
    parts = CpuParts(THREADS)
    for part, place, name in (
        ("reading", page_reader, "run_together"),
        ("judging", page_jobs, "add_judgements_of_pages"),
        ("themes", judged_reviews, "read_themes_of"),
        ("judging", page_collector, "matchable_text"),
        ("judging", page_collector, "judge_page"),
        ("scheduling", Feedback, "decide"),
        ("scheduling", sweeps, "modify"),
    ):
        setattr(place, name, parts.timed(part, getattr(place, name)))
    return parts


async def _run(settings: Settings, store: Store, call: Call) -> None:
    nodes = make_nodes(NODES, settings.slots, lab=True)
    until = Until(done=True, seconds=_LONGEST_S)
    rules = PageRules(main_text=True) if call.variant == "without_rules" else RULES
    crawled = catalog(call.pages, rules, judge=call.variant != "without_judging")
    await EmbeddedRunner(settings, crawled, store, nodes, until).run()


def _add_products(store: Store, count: int) -> None:
    with store.begin() as tx:
        for number in range(count):
            products.add(tx, NewProduct(name=keyword(number), keywords=(keyword(number),)))


def _stored(store: Store) -> tuple[int, float]:
    with store.read() as tx:
        count, first = tx.engine_connection.execute(select(func.count(), func.min(pages.c.fetched_at))).one()
    return count, first.timestamp() if first is not None else 0.0


if __name__ == "__main__":
    take_part(crawl)
