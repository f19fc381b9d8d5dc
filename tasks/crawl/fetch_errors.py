"""What the HTTP library raises, told as one of our error classes."""

from __future__ import annotations

import aiohttp
from aiohttp.http_exceptions import LineTooLong

from tasks.crawl.model import ErrorClass, FetchError
from tasks.crawl.resolver import AddressRefused


def typed(error: Exception, url: str, timeout_s: float) -> FetchError:
    """The FetchError that tells what happened to the request for ``url`` (it ran under ``timeout_s``)."""
    host = url.split("/", 3)[2]
    if isinstance(error, TimeoutError):
        return FetchError(ErrorClass.TIMEOUT, f"no whole answer of {host} in time (at most {timeout_s:g} s)")
    if isinstance(error, aiohttp.ClientConnectorError):
        return _not_connected(error, host)
    if isinstance(error, aiohttp.ServerDisconnectedError):
        if isinstance(error.message, str):
            return FetchError(ErrorClass.CONNECT, f"{host} hung up without a word")
        return FetchError(ErrorClass.CUT_OFF, f"{host} hung up within its headers")
    if isinstance(error, aiohttp.ClientPayloadError | OSError):
        return FetchError(ErrorClass.CUT_OFF, f"the answer of {host} broke off: {_line(error)}")
    if _says_too_long(error):
        return FetchError(ErrorClass.TOO_LARGE, f"the headers of {host} are over the limit: {_line(error)}")
    return FetchError(ErrorClass.BAD_CONTENT, f"the answer of {host} is no HTTP: {_line(error)}")


def _not_connected(error: aiohttp.ClientConnectorError, host: str) -> FetchError:
    if isinstance(error.os_error, AddressRefused):
        return FetchError(ErrorClass.ADDRESS_REFUSED, str(error.os_error))
    return FetchError(ErrorClass.CONNECT, f"no connection to {host}: {_line(error.os_error)}")


def _says_too_long(error: BaseException) -> bool:
    """One header line over the limit, or too many of them, which only the parser's message tells."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LineTooLong) or "Too many headers" in str(cause):
            return True
        cause = cause.__cause__
    return False


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
