"""The scenario of a recorded run: its nodes, its work, and the rates its attempts met."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import yaml

from research.simulator.recorded_overheads import Overheads
from research.simulator.recorded_rates import pairs
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
from tasks.store.sql.transaction import Transaction


def scenario_of_run(tx: Transaction, catalog: Catalog | None) -> Scenario:
    """The scenario of the run in a store.

    Args:
        catalog: that it crawled by, for the limits of its hosts and for its engines; None: not known.

    Raises:
        ScenarioError: see `recorded_scenario`.
    """
    known = [
        NodeSpec(name=row.name, kinds=tuple(map(Kind, sorted(row.kinds))), slots=row.slots)
        for row in nodes.list_nodes(tx)
    ]
    return recorded_scenario(known, recorded_tasks(tx), recorded_attempts(tx), catalog)


def recorded_scenario(
    nodes: Sequence[NodeSpec],
    tasks: Sequence[RecordedTask],
    attempts: Sequence[RecordedAttempt],
    catalog: Catalog | None = None,
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
        catalog: has limits of hosts, bounds of an attempt, and where result pages come from: with an engine, a site's
            overhead is that of its result pages. None: a scenario's defaults.

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
    bounds: dict[str, Bounds] = {}
    engines: dict[str, str] = {}
    limits: dict[str, Limits] = {}
    per_page: list[int] = []
    if catalog is not None:
        book = HostCatalog(catalog)
        of_sites = {name: book.engine_host(site.engine) for name, site in catalog.sites.items()}
        engines = {name: host for name, host in of_sites.items() if host != name}
        limits = {name: book.limits(name) for name in (*of_sites, *engines.values())}
        per_page = [catalog.engine_of(name).hits_per_page for name in engines]
        crawled = [catalog.sites[one.site] for one in tasks if one.site in catalog.sites]
        for (quota, budget_s), _ in Counter((one.quota, one.budget_s) for one in crawled).most_common(1):
            bounds = {"quota": quota, "budget_s": budget_s}
    overhead = Overheads.of_attempts(attempts, engines)
    return Scenario(
        **bounds,
        until_done=True,
        shared_slots=False,
        nodes=tuple(nodes),
        sites=tuple(
            SiteSpec(
                name=site,
                kind=Kind(of[0].kind),
                overhead_s=0.0 if site in engines else overhead.by_site.get(site, 0.0),
                engine=engines.get(site),
                **_limits(limits.get(site)),
            )
            for site, of in by_site.items()
        ),
        engines=tuple(
            EngineSpec(name=name, seconds_per_page=overhead.of_result_page(name), **_limits(limits[name]))
            for name in dict.fromkeys(engines.values())
        ),
        pairs=tuple(pairs(attempts, by_site, {one.name for one in nodes}, overhead)),
        work=Work(
            products=max(map(len, by_site.values())),
            hits=Hits(
                dist=Dist.LISTED,
                listed={site: tuple(one.hits for one in of) for site, of in by_site.items()},
                vain={site: tuple(one.vain for one in of) for site, of in by_site.items()},
            ),
            hits_per_result_page=min(per_page, default=10),
        ),
    )


def _limits(limits: Limits | None) -> dict[str, float | None]:
    """Keys of a host."""
    if limits is None:
        return {"per_address_per_s": None, "total_per_s": None}
    return {"per_address_per_s": limits.per_address_per_s, "total_per_s": limits.total_per_s}


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
