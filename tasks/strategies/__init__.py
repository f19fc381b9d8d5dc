"""The three strategies as pure decisions: allocation, modification, recall (2014 paper).

Each takes frozen dataclasses or a board, the time and a random generator, and decides; a job performs it.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tasks.strategies.allocation.balanced import Balance
from tasks.strategies.allocation.chance import Chance
from tasks.strategies.allocation.feedback import Feedback
from tasks.strategies.allocation.feedback2014 import Feedback2014
from tasks.strategies.allocation.hashing import Hashing
from tasks.strategies.allocation.least_loaded import LeastLoaded
from tasks.strategies.allocation.nearest import proximity
from tasks.strategies.allocation.round_robin import RoundRobin
from tasks.strategies.allocation.sed import ShortestDelay
from tasks.strategies.decision import AllocationSettings, AllocationStrategy

ALLOCATION: Mapping[str, Callable[[AllocationSettings], AllocationStrategy]] = MappingProxyType(
    {
        "feedback": Feedback,
        "feedback2014": Feedback2014,
        "balance": Balance,
        "proximity": proximity,
        "sed": ShortestDelay,
        "least_loaded": LeastLoaded,
        "round_robin": RoundRobin,
        "hash": Hashing,
        "random": Chance,
    }
)
"""Allocation strategies by the name an operator uses; `random` stands for allocation switched off."""
