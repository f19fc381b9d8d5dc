"""A scenario (docs/simulator.md) as validated models; `scenario_file` reads one.

Times in seconds of virtual time, rates per page.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator

from splitter.catalog.model import Bounds
from splitter.catalog.names import Kind
from splitter.errors import InputError

ANY = "*"
"""Stands for every node or every site in `pairs`."""


class ScenarioError(InputError):
    """A scenario is wrong; the message carries file, line and key of each problem, and what would be right."""


Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0)]
Length = Annotated[float, Field(gt=0)]
PerSecond = Annotated[float, Field(gt=0, le=10_000)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Number = Annotated[int, Field(ge=0, le=100_000)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, allow_inf_nan=False)


class _Named(_Model):
    """Something with a name, or `count` of them: `name1`, `name2`, ...; `pairs` may name all by `name`."""

    name: str = Field(min_length=1)
    count: Count | None = None
    appears_at_s: Seconds = 0.0

    def names(self) -> Iterator[str]:
        """The names it stands for."""
        if self.count is None:
            yield self.name
        else:
            yield from (f"{self.name}{number}" for number in range(1, self.count + 1))


class NodeSpec(_Named):
    """A crawl node.

    Attributes:
        kind, kinds: what it may crawl; one of both.
        slots: attempts it runs at once.
        dies_at_s, back_at_s: it goes silent, and is there again; None: never.
        cpu_cores, cpu_ghz, memory_gb, net_mbps, disk_mbps: parameters of the 2019 paper; the simulator's rates
            don't depend on them.
    """

    kind: Kind | None = None
    kinds: tuple[Kind, ...] = ()
    slots: Count = 1
    dies_at_s: Seconds | None = None
    back_at_s: Seconds | None = None
    cpu_cores: Length | None = None
    cpu_ghz: Length | None = None
    memory_gb: Length | None = None
    net_mbps: Length | None = None
    disk_mbps: Length | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind is not None and self.kinds:
            raise ValueError("has both kind and kinds; right would be one of them")
        if self.dies_at_s is not None and self.dies_at_s <= self.appears_at_s:
            raise ValueError("dies before it appears; right would be dies_at_s later than appears_at_s")
        if self.back_at_s is not None and (self.dies_at_s is None or self.back_at_s <= self.dies_at_s):
            raise ValueError("comes back before it dies; right would be back_at_s later than dies_at_s")
        return self

    @property
    def all_kinds(self) -> frozenset[str]:
        """Kinds it may crawl; `meta` where nothing is said."""
        return frozenset(str(kind) for kind in self.kinds or (self.kind or Kind.META,))


class SiteSpec(_Named):
    """A site.

    Attributes:
        overhead_s: seconds an attempt costs before its first page.
        per_address_per_s, total_per_s: pages a second one node, and all of them, may start there; None: any.
        engine: where its result pages come from; None: they cost nothing but the overhead.
    """

    kind: Kind = Kind.META
    engine: str | None = None
    overhead_s: Seconds = 0.0
    per_address_per_s: Annotated[float, Field(gt=0, le=1000)] | None = None
    total_per_s: PerSecond | None = None


class EngineSpec(_Model):
    """A search engine, whose result pages an attempt reads before its pages.

    Attributes:
        seconds_per_page: of a result page.
        fault: the chance that it is not answered, and the attempt fails.
        per_address_per_s, total_per_s: result pages a second one node, and all of them, may start; None: any.
    """

    name: str = Field(min_length=1)
    seconds_per_page: Length = 0.1
    fault: Share = 0.0
    per_address_per_s: Annotated[float, Field(gt=0, le=1000)] | None = None
    total_per_s: PerSecond | None = None


class PairSpec(_Model):
    """Rates of matching pairs from a moment on; keys that are left out stay as they were.

    Attributes:
        node, site: a name, the name of a group (`count`), or "*".
        block_after_pages, block_window_s, block_for_s: after so many pages in so many seconds, nothing is
            collected for so long; `block_after_pages: null` takes it back.
        fault: share of the pages that are not collected whose cause is the host's fault (5xx, cut off): they slow
            the pace of a host with limits, as in production. The others are answered, but can't be read.
    """

    node: str = ANY
    site: str = ANY
    from_s: Seconds = 0.0
    seconds_per_page: Length = 1.0
    completion: Share = 1.0
    fail: Share = 0.0
    hang: Share = 0.0
    block_after_pages: Count | None = None
    block_window_s: Length = 60.0
    block_for_s: Length = 300.0
    fault: Share = 0.0


class Dist(StrEnum):
    """How hits of a task are drawn."""

    LOGNORMAL = "lognormal"
    CONSTANT = "constant"
    PARETO = "pareto"
    LISTED = "listed"


class Hits(_Model):
    """Hits of a task: drawn, rounded, at least 1; where they are listed, 0 is a task whose searches find nothing.

    Attributes:
        mean: of the distribution, before it is rounded.
        sigma: of the logarithm (lognormal).
        alpha: of the tail, above 1: P(more than x) ~ x ** -alpha (pareto).
        listed: by site, the hits of each of its tasks (listed); a site may have fewer than there are products.
        vain: by site, the searches of each of its tasks that find nothing, before the one that lists its hits (listed).
    """

    dist: Dist = Dist.LOGNORMAL
    mean: Length = 40.0
    sigma: Seconds = 0.6
    alpha: Annotated[float, Field(gt=1)] = 1.5
    listed: dict[str, tuple[Number, ...]] = Field(default_factory=dict)
    vain: dict[str, tuple[Number, ...]] = Field(default_factory=dict)


class Work(_Model):
    """One task per product and site.

    Attributes:
        arrive_s, arrive_every_s: when the first product's tasks arrive; how much later each next one's.
        chunk_pages: most hits of one subtask; 0: the whole task is one.
        tries_per_page: after so many a page is given up.
        hits_per_result_page: hits that one result page of an engine lists.
    """

    products: Count
    hits: Hits = Hits()
    arrive_s: Seconds = 0.0
    arrive_every_s: Seconds = 0.0
    chunk_pages: Annotated[int, Field(ge=0)] = 0
    tries_per_page: Annotated[int, Field(ge=1, le=20)] = 3
    hits_per_result_page: Count = 10


class Rtt(_Model):
    """Measured round trips: a square matrix in milliseconds, tab-separated.

    Attributes:
        file: relative to the scenario's folder.
        seed: nodes, then sites, are rows drawn without repeats; None: the first rows, in their order.
    """

    file: str
    seed: int | None = None


class Scenario(_Model):
    """All of a scenario.

    Attributes:
        duration_s, until_done: how long; one of both.
        quota, budget_s: bounds of what one attempt may take, as a catalog's sites have them.
        shared_slots: attempts at work beyond a node's slots, because they waited for permits, share them: slots are
            what the node can do. False: they don't, as on a node that mostly waits for answers.
        rtt_ms: seconds_per_page = 0.1 + 4 x round trip, wherever `pairs` say nothing else.
    """

    duration_s: Length | None = None
    until_done: bool = False
    nodes: tuple[NodeSpec, ...] = Field(min_length=1)
    sites: tuple[SiteSpec, ...] = Field(min_length=1)
    engines: tuple[EngineSpec, ...] = ()
    pairs: tuple[PairSpec, ...] = ()
    quota: Bounds = Bounds(min=1, max=1_000_000)
    budget_s: Bounds = Bounds(min=5, max=3600)
    shared_slots: bool = True
    work: Work
    rtt_ms: Rtt | None = None
    _kept: dict[Any, Any] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _plain_file(cls, data: Any) -> Any:
        if isinstance(data, dict) and isinstance(data.get("rtt_ms"), str):
            return {**data, "rtt_ms": {"file": data["rtt_ms"]}}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.until_done == (self.duration_s is not None):
            raise ValueError("right would be one of duration_s: SECONDS and until_done: true")
        _once("nodes", self.nodes)
        _once("sites", self.sites)
        engines = {one.name for one in self.engines}
        for site in self.sites:
            if site.engine is not None and site.engine not in engines:
                right = ", ".join(sorted(engines)) or "an entry of engines"
                raise ValueError(
                    f"site {site.name}: there is no engine {site.engine!r}; right would be {right}"
                )
        return self

    @property
    def kept(self) -> dict[Any, Any]:
        """A cache of what was worked out from it; no part of the scenario."""
        return self._kept


def _once(what: str, named: tuple[_Named, ...]) -> None:
    seen: set[str] = set()
    for one in named:
        for name in {*one.names(), one.name}:
            if name in seen:
                raise ValueError(f"{what}: {name!r} is there twice; right would be a name of its own")
            seen.add(name)
