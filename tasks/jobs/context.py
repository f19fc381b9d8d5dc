"""What every sweep needs besides a connection and the time: catalog, strategies and their settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random

from splitter.catalog.model import Catalog

from tasks.crawl.hosts import HostBook
from tasks.jobs.mind import Mind
from tasks.store.views import BufferRule
from tasks.store.writer import MOST_AT_ONCE
from tasks.strategies import ALLOCATION
from tasks.strategies.decision import AllocationSettings, AllocationStrategy, Distances
from tasks.strategies.levelling import LevellingSettings
from tasks.strategies.modification import ModificationSettings
from tasks.strategies.narrowing import NarrowSettings
from tasks.strategies.recall import RecallSettings


@dataclass(frozen=True, slots=True)
class LoopSettings:
    """Settings of the loop; what is switched off is for comparing (docs/benchmarks.md).

    Attributes:
        allocation: name in `tasks.strategies.ALLOCATION`.
        modification: False: every attempt gets the site's default quota and budget.
        wait_limit: most subtasks let into WAIT (`tasks.strategies.admission`); the others stay in PRIORITY, where a
            late urgent one overtakes them.
        lanes: requests of one attempt in flight at once, on the nodes.
        lease_grain: most leases in one message to a node.
    """

    allocation: str = "feedback"
    modification: bool = True
    recall: RecallSettings = field(default_factory=RecallSettings)
    allocating: AllocationSettings = field(default_factory=AllocationSettings)
    modifying: ModificationSettings = field(default_factory=ModificationSettings)
    buffer: BufferRule = field(default_factory=BufferRule)
    levelling: LevellingSettings = field(default_factory=LevellingSettings)
    narrowing: NarrowSettings = field(default_factory=NarrowSettings)
    wait_limit: int = 1000
    lanes: int = 4
    lease_grain: int = MOST_AT_ONCE

    def strategy(self, distances: Distances | None) -> AllocationStrategy:
        """A new allocation strategy, as these settings want it, that knows these distances."""
        return ALLOCATION[self.allocation](replace(self.allocating, distances=distances))


@dataclass(frozen=True, slots=True)
class Context:
    """The catalog, the settings, chance, and what a scheduler remembers."""

    catalog: Catalog
    settings: LoopSettings
    hosts: HostBook
    rng: Random
    mind: Mind

    @property
    def hosts_of(self) -> Callable[[str], tuple[str, str]]:
        """(engine's host, site's host) of a site; a site that left the catalog has only itself."""

        def of(site: str) -> tuple[str, str]:
            found = self.catalog.sites.get(site)
            return (self.hosts.of_engine(found.engine) if found else site, site)

        return of
