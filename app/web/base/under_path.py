"""Serve the dashboard under a path that a setting or a trusted proxy's header X-Forwarded-Prefix names."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

_PATH = re.compile(r"(?:/[A-Za-z0-9._~-]+)*")


class UnderPath:
    """ASGI middleware that sets the `root_path` of each request.

    The proxy may remove the path from the request or leave it: under `/reviews`, both `/reviews/products` and
    `/products` are the page of products.

    Args:
        path: the path, for example "/reviews"; empty for the root.
        proxies: addresses of proxies whose header may set another path.
        names: first components of the application's own paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        path: str,
        proxies: Collection[IPv4Network | IPv6Network],
        names: Collection[str],
    ) -> None:
        self._app = app
        self._path = path
        self._proxies = proxies
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Set the `root_path` of a request, and pass the request on."""
        if scope["type"] == "http" and (root := self._find_root(scope)):
            inner = self._remove(root, scope["path"])
            scope = {**scope, "root_path": root, "path": root + inner}
        await self._app(scope, receive, send)

    def _find_root(self, scope: Scope) -> str:
        given = Headers(scope=scope).get("x-forwarded-prefix")
        if given is None or not self._is_proxy((scope.get("client") or ("",))[0]):
            return self._path
        root = given.rstrip("/")
        return root if _PATH.fullmatch(root) else self._path

    def _is_proxy(self, address: str) -> bool:
        try:
            client = ip_address(address)
        except ValueError:
            return False
        return any(client in network for network in self._proxies)

    def _remove(self, root: str, path: str) -> str:
        """Return `path` without `root` at its beginning.

        A page may have the same name as `root`, for example `/reviews`. Its path is returned as it is.
        """
        inner = path.removeprefix(root)
        if path == root:
            return path if root.split("/")[1] in self._names else "/"
        if not path.startswith(f"{root}/") or inner.split("/")[1] not in self._names:
            return path
        return inner


def inner_path(scope: Scope) -> str:
    """Return the path of a request without the path under which the dashboard is served."""
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", "")) or "/"
