"""The proxy that a node goes through. Its address may hold a password, which is never shown."""

from __future__ import annotations

from urllib.parse import urlsplit


class Proxy:
    """A proxy by its whole address. Only its scheme, host and port are printed.

    No dataclass: `dataclasses.asdict` would take the address out of it.
    """

    __slots__ = ("url",)

    def __init__(self, url: str) -> None:
        self.url = url

    @property
    def place(self) -> str:
        """HOST:PORT. Hosts see all nodes behind it as one address."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def __repr__(self) -> str:
        return f"{urlsplit(self.url).scheme}://{self.place}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Proxy) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)
