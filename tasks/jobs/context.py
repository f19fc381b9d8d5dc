"""The settings of the loop, and the context of every sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cached_property
from random import Random

from splitter.catalog.entries import entries_of
from splitter.catalog.model import Catalog

from tasks.domain.batches import MOST_AT_ONCE
from tasks.fetching.hosts import HostCatalog
from tasks.jobs.scheduler_state import SchedulerState
from tasks.jobs.strategies import ALLOCATION
from tasks.scheduling.admission import bound
from tasks.scheduling.balance.curves import Curve
from tasks.scheduling.decision import AllocationSettings, AllocationStrategy, Distances
from tasks.scheduling.rebalancing import BufferRule
from tasks.scheduling.recall import RecallSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopSettings:
    """Settings of the loop; what can be switched off is for comparing (docs/benchmarks.md).

    Attributes:
        allocation: name in `tasks.jobs.strategies.ALLOCATION`.
        modification: False: every attempt gets the site's default quota and budget, and none ends early.
        only_sites: sites that are crawled; empty: all.
        wait_limit: most subtasks let into WAIT (`tasks.scheduling.admission`); the others stay in PRIORITY, where a
            late urgent one overtakes them.
        lease_batch: most leases in one message to a node.
        keep_log: how long after its end the event log of a subtask is kept; None: for ever.
    """

    allocation: str = "feedback"
    modification: bool = True
    recall: RecallSettings = field(default_factory=RecallSettings)
    allocating: AllocationSettings = field(default_factory=AllocationSettings)
    buffer: BufferRule = field(default_factory=BufferRule)
    only_sites: frozenset[str] = frozenset()
    wait_limit: int = 1000
    lease_batch: int = MOST_AT_ONCE
    keep_log: timedelta | None = None

    @property
    def uses_run_times(self) -> bool:
        """Whether the strategy decides by run times of nodes that a network learns."""
        return self.allocation == "balance"

    def strategy(self, distances: Distances | None, run_times: Mapping[str, Curve]) -> AllocationStrategy:
        """A new allocation strategy, by these settings, with these distances and run times of nodes."""
        return ALLOCATION[self.allocation](
            replace(self.allocating, distances=distances, run_times=run_times, floors=self.modification)
        )


@dataclass(frozen=True)
class Context:
    """The context of every sweep, besides a connection and the time.

    Attributes:
        catalog: sites and engines in force.
        settings: of the loop.
        hosts: limits and engines of hosts.
        rng: the only source of chance.
        state: what the scheduler keeps between sweeps.
    """

    catalog: Catalog
    settings: LoopSettings
    hosts: HostCatalog
    rng: Random
    state: SchedulerState

    @cached_property
    def host_names(self) -> frozenset[str]:
        """Every host of the catalog: engines' and sites'."""
        return frozenset(host for site in self.catalog.sites for host in self.hosts_of(site))

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Sites of the catalog that no node crawls, by the settings."""
        only = self.settings.only_sites
        return frozenset(self.catalog.sites) - only if only else frozenset()

    @cached_property
    def most_waiting(self) -> int:
        """The most subtasks in WAIT that a decision looks at."""
        return bound(self.settings.wait_limit, len(self.catalog.sites))

    @cached_property
    def entries(self) -> dict[str, str]:
        """By site, the hash of its entry in the catalog."""
        return entries_of(self.catalog)

    @property
    def hosts_of(self) -> Callable[[str], tuple[str, str]]:
        """(engine's host, site's host) of a site; a site that left the catalog has only itself."""
        return self.hosts.of_site
