"""Parameters of a node, and recorded runs: the data that the run-time model learns from (2019 balance paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class NodeParameters:
    """The vector w of a node. Each is above 0; None: not known.

    Attributes:
        cpu_cores: cores a process may use.
        cpu_ghz: clock of a core.
        memory_gb: memory, in 10^9 bytes.
        net_mbps: bandwidth towards the web, in 10^6 bits a second.
        disk_mbps: rate of sequential writes that reach the disk, in 10^6 bits a second.
    """

    cpu_cores: float | None
    cpu_ghz: float | None
    memory_gb: float | None
    net_mbps: float | None
    disk_mbps: float | None

    def values(self) -> tuple[float | None, ...]:
        """The parameters in the paper's order."""
        return tuple(getattr(self, name) for name in PARAMETERS)

    @staticmethod
    def read(values: Mapping[str, float | None]) -> NodeParameters:
        """Read a mapping that has (at least) the names of `PARAMETERS`. Raises KeyError."""
        return NodeParameters(*(values[name] for name in PARAMETERS))


PARAMETERS: tuple[str, ...] = tuple(field.name for field in fields(NodeParameters))
"""Names of the parameters, in the paper's order."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A recorded run.

    Attributes:
        node: parameters of the node it ran on.
        urls: n, at least 1.
        seconds: its run time, above 0.
    """

    node: NodeParameters
    urls: int
    seconds: float
