"""Allocation strategies by name."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tasks.scheduling.baselines.balance import Balance
from tasks.scheduling.baselines.consistent_hash import ConsistentHash
from tasks.scheduling.baselines.feedback2014 import Feedback2014
from tasks.scheduling.baselines.proximity import proximity
from tasks.scheduling.baselines.sed import ShortestDelay
from tasks.scheduling.baselines.simple import LeastLoaded, RandomNode, RoundRobin
from tasks.scheduling.decision import AllocationSettings, AllocationStrategy
from tasks.scheduling.feedback import Feedback

ALLOCATION: Mapping[str, Callable[[AllocationSettings], AllocationStrategy]] = MappingProxyType(
    {
        "feedback": Feedback,
        "feedback2014": Feedback2014,
        "balance": Balance,
        "proximity": proximity,
        "sed": ShortestDelay,
        "least_loaded": LeastLoaded,
        "round_robin": RoundRobin,
        "hash": ConsistentHash,
        "random": RandomNode,
    }
)
"""Functions that make strategies, by name (`tasks.scheduling.strategy_names`)."""
