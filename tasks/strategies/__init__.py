"""The three strategies as pure decisions: allocation, modification, recall (2014 paper).

Each takes frozen dataclasses, the time and a random generator, and returns a decision; a job performs it.
"""

from types import MappingProxyType

from tasks.strategies.allocation import allocate
from tasks.strategies.baseline import allocate_randomly
from tasks.strategies.decision import AllocationStrategy

ALLOCATION: MappingProxyType[str, AllocationStrategy] = MappingProxyType(
    {"feedback": allocate, "random": allocate_randomly}
)
"""Allocation strategies by the name an operator uses; `random` stands for allocation switched off."""
