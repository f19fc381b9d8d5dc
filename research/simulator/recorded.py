"""The scenario of a recorded run: its nodes, its work, and the rates its attempts met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import yaml
from sqlalchemy import Connection

from research.simulator.recorded_overheads import Overheads
from research.simulator.recorded_rates import FASTEST_S, pairs
from research.simulator.recorded_rows import RecordedAttempt, RecordedTask, recorded_attempts, recorded_tasks
from research.simulator.scenario import (
    Dist,
    EngineSpec,
    Hits,
    NodeSpec,
    Scenario,
    ScenarioError,
    SiteSpec,
    Work,
)
from splitter.catalog.model import Bounds, Catalog, Limits
from splitter.catalog.names import Kind
from tasks.fetching.hosts import HostCatalog
from tasks.store.queue import nodes


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A node of the run."""

    name: str
    kinds: frozenset[str]
    slots: int


@dataclass(frozen=True, slots=True)
class RecordedEngine:
    """The source of result pages: its host, its limits, and the hits that one page lists."""

    name: str
    limits: Limits
    hits_per_page: int


@dataclass(frozen=True, slots=True)
class RecordedBounds:
    """Hits and seconds one attempt may take."""

    quota: Bounds
    budget_s: Bounds


def scenario_of_run(conn: Connection, catalog: Catalog | None) -> Scenario:
    """The scenario of the run in a store.

    Args:
        catalog: that it crawled by, for the limits of its hosts and for its engines; None: not known.

    Raises:
        ScenarioError: see `recorded_scenario`.
    """
    known = [
        RecordedNode(row.node.name, frozenset(row.node.kinds), row.node.slots) for row in nodes.listed(conn)
    ]
    tasks = recorded_tasks(conn)
    limits: dict[str, Limits] = {}
    engines: dict[str, RecordedEngine] = {}
    bounds: RecordedBounds | None = None
    if catalog is not None:
        book = HostCatalog(catalog)
        crawled = [catalog.sites[one.site] for one in tasks if one.site in catalog.sites]
        usual = Counter((site.quota, site.budget_s) for site in crawled).most_common(1)
        bounds = RecordedBounds(*usual[0][0]) if usual else None
        for name, site in catalog.sites.items():
            limits[name] = book.limits(name)
            host = book.of_engine(site.engine)
            if host != name:
                per_page = catalog.engine_of(name).hits_per_page
                engines[name] = RecordedEngine(host, book.limits(host), per_page)
    return recorded_scenario(known, tasks, recorded_attempts(conn), limits, engines, bounds)


def recorded_scenario(
    nodes: Sequence[RecordedNode],
    tasks: Sequence[RecordedTask],
    attempts: Sequence[RecordedAttempt],
    limits: Mapping[str, Limits],
    engines: Mapping[str, RecordedEngine] | None = None,
    bounds: RecordedBounds | None = None,
) -> Scenario:
    """A recorded run as a scenario that is done when all is done.

    Of an attempt's active seconds, those of its result pages or of its site's overhead (`recorded_rates.Overheads`)
    are no page's; the others are, in equal parts. An attempt that failed without having asked for a page counts as
    `fail`, one that went silent as `hang`. A pair that no attempt was made of gets the rates of its site over all
    nodes. A task whose result pages were not read yet is taken to be as one of its site that was.

    A bound on such a scenario uses every rate of it, and draws every page anew. Rates from few pages are
    partly chance, and so is the bound: no scheduler could have known how to reach it.

    Args:
        nodes: those it had.
        tasks: with the hits found.
        attempts: closed ones.
        limits: of the sites' hosts, where the catalog has some.
        engines: by site, where its result pages come from; a site's overhead is then that of its result pages.
        bounds: of an attempt; None: a scenario's.

    Raises:
        ScenarioError: there is nothing to learn from: no node, no hit, or no page tried.
    """
    if not nodes or not tasks or not any(one.tried for one in attempts):
        raise ScenarioError(
            "the run holds no crawled page yet: nothing to simulate; run `reviewloop run` first"
        )
    by_site: dict[str, list[RecordedTask]] = defaultdict(list)
    for task in tasks:
        by_site[task.site].append(task)
    by_site = {site: done for site, of in by_site.items() if (done := _all_read(of))}
    engines = engines or {}
    overhead = Overheads.of_attempts(attempts, {site: of.name for site, of in engines.items()})
    bounded = {} if bounds is None else {"quota": bounds.quota, "budget_s": bounds.budget_s}
    return Scenario(
        **bounded,
        until_done=True,
        shared_slots=False,
        nodes=tuple(
            NodeSpec(name=one.name, kinds=tuple(Kind(kind) for kind in sorted(one.kinds)), slots=one.slots)
            for one in nodes
        ),
        sites=tuple(
            _site(site, of[0].kind, overhead.by_site.get(site, 0.0), limits.get(site), engines.get(site))
            for site, of in by_site.items()
        ),
        engines=tuple(_engines(engines, overhead)),
        pairs=tuple(pairs(attempts, by_site, {one.name for one in nodes}, overhead)),
        work=Work(
            products=max(map(len, by_site.values())),
            hits=Hits(
                dist=Dist.LISTED,
                listed={site: tuple(one.hits for one in of) for site, of in by_site.items()},
                vain={site: tuple(one.vain for one in of) for site, of in by_site.items()},
            ),
            hits_per_result_page=min((one.hits_per_page for one in engines.values()), default=10),
        ),
    )


def _all_read(tasks: Sequence[RecordedTask]) -> list[RecordedTask]:
    """Tasks of a site; each that was not read with the hits, and the vain searches, of one that was."""
    read = [one for one in tasks if one.read]
    alike = cycle(read)
    return [one if one.read else next(alike) for one in tasks] if read else []


def write_scenario(scenario: Scenario, path: Path) -> None:
    """Save a scenario as YAML. Raises ScenarioError: the file cannot be written."""
    data = scenario.model_dump(mode="json", exclude_unset=True)
    try:
        path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), "utf-8")
    except OSError as error:
        raise ScenarioError(f"{path} cannot be written: {error.strerror}") from error


def _site(
    name: str, kind: str, overhead_s: float, limits: Limits | None, engine: RecordedEngine | None
) -> SiteSpec:
    return SiteSpec(
        name=name,
        kind=Kind(kind),
        overhead_s=overhead_s if engine is None else 0.0,
        engine=engine.name if engine is not None else None,
        per_address_per_s=limits.per_address_per_s if limits is not None else None,
        total_per_s=limits.total_per_s if limits is not None else None,
    )


def _engines(by_site: Mapping[str, RecordedEngine], overhead: Overheads) -> Iterator[EngineSpec]:
    """Each engine; a result page takes what attempts on its sites take beside their pages."""
    for engine in dict.fromkeys(by_site.values()):
        page_s = overhead.of_result_page(engine.name)
        yield EngineSpec(
            name=engine.name,
            seconds_per_page=max(FASTEST_S, round(page_s, 4)) if page_s is not None else 0.1,
            per_address_per_s=engine.limits.per_address_per_s,
            total_per_s=engine.limits.total_per_s,
        )
