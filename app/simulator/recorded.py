"""The scenario of a recorded run: its nodes, its work, and the rates its attempts met, window by window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import yaml
from sqlalchemy import Connection

from app.simulator.scenario import (
    Dist,
    EngineSpec,
    Hits,
    NodeSpec,
    PairSpec,
    Scenario,
    ScenarioError,
    SiteSpec,
    Work,
)
from splitter.catalog.model import Catalog, Limits
from splitter.catalog.names import Kind
from tasks.domain.failures import ErrorClass
from tasks.fetching.hosts import HostCatalog
from tasks.store import nodes
from tasks.store.recorded import RecordedAttempt, RecordedTask, recorded_attempts, recorded_tasks

_WINDOWS = 12
"""Windows a run is cut into, at most."""

_SHORTEST_S = 60.0
_FEWEST_TRIED = 5
"""Pages a window's rates need, so as not to be chance; the run's own rates stand in elsewhere."""

_FASTEST_S = 1e-3

_FAULTS = (ErrorClass.SERVER_ERROR, ErrorClass.CUT_OFF, ErrorClass.TIMEOUT, ErrorClass.CONNECT)
"""Errors that slow the pace of a host."""

_FEWEST_SIZED = 3
"""Attempts that tried pages, before overhead and page time are separated by their sizes ..."""

_ALIKE = 1e-3
"""... and spread of 1 / pages, an attempt, below which sizes are the same."""


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
    limits: dict[str, Limits] = {}
    engines: dict[str, RecordedEngine] = {}
    if catalog is not None:
        book = HostCatalog(catalog)
        for name, site in catalog.sites.items():
            limits[name] = book.limits(name)
            host = book.of_engine(site.engine)
            if host != name:
                per_page = catalog.engine_of(name).hits_per_page
                engines[name] = RecordedEngine(host, book.limits(host), per_page)
    return recorded_scenario(known, recorded_tasks(conn), recorded_attempts(conn), limits, engines)


def recorded_scenario(
    nodes: Sequence[RecordedNode],
    tasks: Sequence[RecordedTask],
    attempts: Sequence[RecordedAttempt],
    limits: Mapping[str, Limits],
    engines: Mapping[str, RecordedEngine] | None = None,
) -> Scenario:
    """A recorded run as a scenario that is done when all is done.

    Of an attempt's active seconds, those of its site's overhead (`overheads`) are no page's; the others are, in equal
    parts. An attempt that failed without having tried a page counts as `fail`, one that went silent as `hang`. A
    pair that no attempt was made of gets the rates of its site over all nodes.

    A bound on such a scenario uses every rate of it, and draws every page anew. Rates from few pages are
    partly chance, and so is the bound: no scheduler could have known how to reach it.

    Args:
        nodes: those it had.
        tasks: with the hits found.
        attempts: closed ones.
        limits: of the sites' hosts, where the catalog has some.
        engines: by site, where its result pages come from; a site's overhead is then that of its result pages.

    Raises:
        ScenarioError: there is nothing to learn from: no node, no hit, or no page tried.
    """
    if not nodes or not tasks or not any(one.tried for one in attempts):
        raise ScenarioError(
            "the run holds no crawled page yet: nothing to simulate; run `reviewloop run` first"
        )
    hits: dict[str, list[int]] = defaultdict(list)
    kinds: dict[str, str] = {}
    overheads_s = overheads(attempts)
    for task in tasks:
        hits[task.site].append(max(1, task.hits))
        kinds[task.site] = task.kind
    return Scenario(
        until_done=True,
        nodes=tuple(
            NodeSpec(name=one.name, kinds=tuple(Kind(kind) for kind in sorted(one.kinds)), slots=one.slots)
            for one in nodes
        ),
        sites=tuple(
            _site(site, kinds[site], overheads_s.get(site, 0.0), limits.get(site), (engines or {}).get(site))
            for site in hits
        ),
        engines=tuple(_engines(engines or {}, overheads_s)),
        pairs=tuple(_pairs(attempts, list(hits), [one.name for one in nodes], overheads_s)),
        work=Work(
            products=max(map(len, hits.values())),
            hits=Hits(dist=Dist.LISTED, listed={site: tuple(of) for site, of in hits.items()}),
            hits_per_result_page=min((one.hits_per_page for one in (engines or {}).values()), default=10),
        ),
    )


def write_scenario(scenario: Scenario, path: Path) -> None:
    """Save a scenario as YAML. Raises ScenarioError: the file cannot be written."""
    data = scenario.model_dump(mode="json", exclude_unset=True)
    try:
        path.write_text(yaml.safe_dump(data, allow_unicode=True, sort_keys=False), "utf-8")
    except OSError as error:
        raise ScenarioError(f"{path} cannot be written: {error.strerror}") from error


def overheads(attempts: Sequence[RecordedAttempt]) -> dict[str, float]:
    """Seconds of an attempt that are no page's, by site with an attempt that tried pages.

    Active seconds of attempts are overhead + pages tried x seconds per page: where attempts of several sizes were
    made, the least squares line through them, of each node with a slope of its own and weighted by 1 / pages, since the
    variance of a sum of page times grows with their number. Elsewhere, and as its bounds: not below 0, nor more than
    half of what attempts of the site take on average (`tasks.scheduling.posterior`), nor more than the shortest took.
    Where sizes don't differ the two cannot be separated: then it is what attempts without a page took on average,
    within the same bounds, or 0.
    """
    by_site: dict[str, list[RecordedAttempt]] = defaultdict(list)
    for one in attempts:
        if one.outcome != "silent":
            by_site[one.site].append(one)
    found = {}
    for site, of in by_site.items():
        took = [one.active_s for one in of if one.tried]
        if not took:
            continue
        fitted = _intercept_s(of)
        if fitted is None:
            vain = [one.active_s for one in of if not one.tried]
            fitted = sum(vain) / len(vain) if vain else 0.0
        found[site] = round(max(0.0, min(fitted, 0.5 * sum(took) / len(took), min(took))), 4)
    return found


def _intercept_s(attempts: Sequence[RecordedAttempt]) -> float | None:
    """The overhead of the line (see `overheads`); None where sizes don't differ, or data are fewer than three."""
    by_node: dict[str, list[RecordedAttempt]] = defaultdict(list)
    for one in attempts:
        if one.tried:
            by_node[one.node].append(one)
    # With weights 1 / n, a node's slope is (sum of seconds - attempts x overhead) / pages: put in, one unknown is left.
    above = below = 0.0
    count = 0
    for of in by_node.values():
        count += len(of)
        pages, seconds = sum(one.tried for one in of), sum(one.active_s for one in of)
        inverse = sum(1.0 / one.tried for one in of)
        above += sum(one.active_s / one.tried for one in of) - len(of) * seconds / pages
        below += inverse - len(of) ** 2 / pages
    return above / below if count >= _FEWEST_SIZED and below > _ALIKE * count else None


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


def _engines(by_site: Mapping[str, RecordedEngine], overheads_s: Mapping[str, float]) -> Iterator[EngineSpec]:
    """Each engine; a result page takes what attempts on its sites take beside their pages, on average."""
    for engine in dict.fromkeys(by_site.values()):
        took = [overheads_s[site] for site, of in by_site.items() if of == engine and site in overheads_s]
        yield EngineSpec(
            name=engine.name,
            seconds_per_page=max(_FASTEST_S, round(sum(took) / len(took), 4)) if took else 0.1,
            per_address_per_s=engine.limits.per_address_per_s,
            total_per_s=engine.limits.total_per_s,
        )


def _rates(attempts: Sequence[RecordedAttempt], overheads_s: Mapping[str, float]) -> dict[str, float]:
    """Keys of a pair's entry: rates of pages where some were tried; few data are taken as they are."""
    paged = [one for one in attempts if one.tried]
    tried, collected = sum(one.tried for one in paged), sum(one.collected for one in paged)
    failed = sum(one.outcome == "failed" and not one.tried for one in attempts)
    silent = sum(one.outcome == "silent" for one in attempts)
    rates = {"fail": round(failed / len(attempts), 4), "hang": round(silent / len(attempts), 4)}
    if tried:
        paged_s = sum(max(0.0, one.active_s - overheads_s.get(one.site, 0.0)) for one in paged)
        rates["seconds_per_page"] = round(max(_FASTEST_S, paged_s / tried), 4)
        rates["completion"] = round(min(1.0, collected / tried), 4)
        faults = sum(one.errors.get(kind, 0) for one in paged for kind in _FAULTS)
        rates["fault"] = round(min(1.0, faults / max(1, tried - collected)), 4)
    return rates


def _pairs(
    attempts: Sequence[RecordedAttempt], sites: list[str], nodes: list[str], overheads_s: Mapping[str, float]
) -> list[PairSpec]:
    by_pair: dict[tuple[str, str], list[RecordedAttempt]] = defaultdict(list)
    by_site: dict[str, list[RecordedAttempt]] = defaultdict(list)
    known = [one for one in attempts if one.site in set(sites) and one.node in set(nodes)]
    for one in known:
        by_pair[one.site, one.node].append(one)
        by_site[one.site].append(one)
    paged = {one.site for one in known if one.tried}
    entries = [PairSpec(**_rates(known, overheads_s))] if paged else []
    entries += [
        PairSpec(site=site, **_rates(of, overheads_s)) for site, of in by_site.items() if site in paged
    ]
    entries += [
        PairSpec(site=site, node=node, **_rates(of, overheads_s)) for (site, node), of in by_pair.items()
    ]
    return entries + _over_time(known, overheads_s)


def _over_time(attempts: Sequence[RecordedAttempt], overheads_s: Mapping[str, float]) -> list[PairSpec]:
    """Rates of each pair in each window that has enough of its pages."""
    begun = min(one.begun_at for one in attempts)
    length_s = (max(one.ended_at for one in attempts) - begun).total_seconds()
    window_s = max(_SHORTEST_S, length_s / _WINDOWS)

    def place(one: RecordedAttempt) -> tuple[str, str, int]:
        return one.site, one.node, int((one.begun_at - begun).total_seconds() / window_s)

    entries = []
    for (site, node, window), group in groupby(sorted(attempts, key=place), key=place):
        of = list(group)
        if sum(one.tried for one in of) >= _FEWEST_TRIED:
            rates = _rates(of, overheads_s)
            del rates["fail"], rates["hang"]
            entries.append(PairSpec(site=site, node=node, from_s=round(window * window_s, 1), **rates))
    return entries
