"""Names to addresses, for connections only to addresses that may be asked."""

from __future__ import annotations

import socket

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from tasks.crawl.guard import address_allowed


class AddressRefused(OSError):
    """A name resolves to no address that may be asked (an OSError, as connectors expect of resolvers)."""


class GuardedResolver(AbstractResolver):
    """The system's resolver, less the addresses that may not be asked.

    It is asked by the connector for the very connection it is about to make, so what was checked is what is
    connected to. Needs a running event loop.
    """

    def __init__(self) -> None:
        self._system = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Public addresses of a host. Raises AddressRefused if it has none but special ones, else OSError."""
        found = await self._system.resolve(host, port, family)
        allowed = [address for address in found if address_allowed(address["host"], allow_loopback=False)]
        if not allowed:
            raise AddressRefused(f"{host} resolves to {found[0]['host']}, which is no public address")
        return allowed

    async def close(self) -> None:
        """Release the system's resolver."""
        await self._system.close()
