"""The three strategies as pure decisions: allocation, modification, recall (2014 paper).

Each takes frozen dataclasses or a ready queue, the time and a random generator, and decides; a job performs it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tasks.scheduling.baselines.balance import Balance
from tasks.scheduling.baselines.consistent_hash import ConsistentHash
from tasks.scheduling.baselines.feedback2014 import Feedback2014
from tasks.scheduling.baselines.least_loaded import LeastLoaded
from tasks.scheduling.baselines.proximity import proximity
from tasks.scheduling.baselines.random_node import RandomNode
from tasks.scheduling.baselines.round_robin import RoundRobin
from tasks.scheduling.baselines.sed import ShortestDelay
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
"""Allocation strategies by the name an operator uses; `random` stands for allocation switched off."""
