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
    """Settings of the loop. Parts are switched off only for comparisons (docs/benchmarks.md).

    Attributes:
        allocation: name in `tasks.jobs.strategies.ALLOCATION`.
        modification: False gives every attempt the site's default quota and budget, and ends none early.
        only_sites: sites that are crawled; empty for all.
        wait_limit: maximum number of subtasks in WAIT (`tasks.scheduling.admission`). Others stay in PRIORITY, where
            later urgent subtasks overtake them.
        lease_batch: maximum number of leases in one message to a node.
        keep_log: time that the event log of a settled subtask is stored; `None` for ever.
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
        """True if the strategy uses run times of nodes that a network learns."""
        return self.allocation == "balance"

    def strategy(self, distances: Distances | None, run_times: Mapping[str, Curve]) -> AllocationStrategy:
        """Return a new allocation strategy with these distances and run times of nodes."""
        return ALLOCATION[self.allocation](
            replace(self.allocating, distances=distances, run_times=run_times, floors=self.modification)
        )


@dataclass(frozen=True)
class Context:
    """The context that all sweeps share.

    Attributes:
        catalog: sites and engines in force.
        settings: settings of the loop.
        hosts: limits and engines of hosts.
        rng: the only source of chance.
        state: the scheduler's state between sweeps.
    """

    catalog: Catalog
    settings: LoopSettings
    hosts: HostCatalog
    rng: Random
    state: SchedulerState

    @cached_property
    def host_names(self) -> frozenset[str]:
        """All hosts of the catalog's engines and sites."""
        return frozenset(host for site in self.catalog.sites for host in self.hosts_of(site))

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Sites of the catalog that the settings leave out."""
        only = self.settings.only_sites
        return frozenset(self.catalog.sites) - only if only else frozenset()

    @cached_property
    def most_waiting(self) -> int:
        """Maximum number of subtasks in WAIT that a decision considers."""
        return bound(self.settings.wait_limit, len(self.catalog.sites))

    @cached_property
    def entries(self) -> dict[str, str]:
        """Hashes of the catalog's entries by site."""
        return entries_of(self.catalog)

    @property
    def hosts_of(self) -> Callable[[str], tuple[str, str]]:
        """Return a function from a site to (engine's host, site's host). A site outside the catalog has only itself."""
        return self.hosts.site_hosts
