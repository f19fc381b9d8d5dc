"""What libcurl says of a transfer that broke, told as one of our error classes."""

from __future__ import annotations

import pycurl

from tasks.domain.crawl import ErrorClass, FetchError

# Codes of libcurl that pycurl has no name for: CURLE_PROXY, CURLE_TOO_LARGE.
_E_PROXY = 97
_E_TOO_LARGE = 100

_NO_CONNECTION = frozenset(
    {
        pycurl.E_COULDNT_RESOLVE_PROXY,
        pycurl.E_COULDNT_RESOLVE_HOST,
        pycurl.E_COULDNT_CONNECT,
        pycurl.E_INTERFACE_FAILED,
        pycurl.E_SSL_CONNECT_ERROR,
        pycurl.E_PEER_FAILED_VERIFICATION,
        pycurl.E_SSL_CIPHER,
        _E_PROXY,
    }
)
_TOO_LARGE = frozenset({pycurl.E_FILESIZE_EXCEEDED, _E_TOO_LARGE})
_NO_HTTP = frozenset({pycurl.E_UNSUPPORTED_PROTOCOL, pycurl.E_FTP_WEIRD_SERVER_REPLY})


def typed(code: int, message: str, host: str, timeout_s: float, *, begun: bool) -> FetchError:
    """The FetchError that tells how a request ended.

    Args:
        code: libcurl's, not 0; `message`: its own.
        timeout_s: what the request ran under.
        begun: some of the answer came.
    """
    said = " ".join(message.split())[:200]
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return FetchError(
            ErrorClass.TIMEOUT, f"no whole answer of {host} in time (at most {timeout_s:g} s): {said}"
        )
    if code in _NO_CONNECTION:
        return FetchError(ErrorClass.CONNECT, f"no connection to {host}: {said}")
    if code == pycurl.E_GOT_NOTHING and not begun:
        return FetchError(ErrorClass.CONNECT, f"{host} hung up without a word")
    if code in _TOO_LARGE:
        return FetchError(ErrorClass.TOO_LARGE, f"the answer of {host} is over the limit: {said}")
    if code in _NO_HTTP:
        return FetchError(ErrorClass.BAD_CONTENT, f"the answer of {host} is no HTTP: {said}")
    if code == pycurl.E_URL_MALFORMAT:
        return FetchError(ErrorClass.ADDRESS_REFUSED, f"libcurl reads no address for {host}: {said}")
    return FetchError(ErrorClass.CUT_OFF, f"the answer of {host} broke off: {said}")
