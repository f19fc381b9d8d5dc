"""Turns libcurl's result into a response, its headers or one typed error."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

import pycurl
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError, error_class
from tasks.domain.pages import Response
from tasks.domain.patience import retry_wait_s

_END = (b"\r\n", b"\n")

# Codes of libcurl that pycurl has no name for: CURLE_PROXY, CURLE_TOO_LARGE.
_E_PROXY = 97
_E_TOO_LARGE = 100

_NO_CONNECTION = frozenset(
    {
        pycurl.E_COULDNT_RESOLVE_PROXY,
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


class NameUnknown(FetchError):
    """The host's name has no address."""


def headers_ended(lines: list[bytes]) -> bool:
    """True if the headers came to their end."""
    return _END[0] in lines or _END[1] in lines


def headers_of(lines: list[bytes]) -> dict[str, str]:
    """Headers of the last head among these lines: interim answers (1xx) come before it, trailers after it.

    Names are lower-case; a repeated header is one with its values joined by commas. Bytes outside UTF-8 become
    surrogates.

    Raises:
        FetchError: BAD_CONTENT for content lengths that differ.
    """
    headers: dict[str, str] = {}
    for line in _last_head(lines):
        name, value = _field(line)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    if "," in headers.get("content-length", ""):
        _check_lengths(headers)
    headers.pop("", None)
    return headers


# Most lines of an answer are those of the last one of the same host.
@lru_cache(maxsize=512)
def _field(line: bytes) -> tuple[str, str]:
    """Return name and value of a header line; an empty name if it is no header."""
    name, colon, value = line.decode("utf-8", "surrogateescape").partition(":")
    return (name.strip().lower(), value.strip()) if colon else ("", "")


def _last_head(lines: list[bytes]) -> list[bytes]:
    """Return the lines of the last head without its status line."""
    if lines[-1] in _END and not any(line in _END for line in lines[:-1]):
        return lines[1:]
    starts = [number for number, line in enumerate(lines) if line.startswith(b"HTTP/")]
    head = lines[starts[-1] + 1 if starts else 0 :]
    return head[: next((number for number, line in enumerate(head) if line in _END), len(head))]


def _check_lengths(headers: dict[str, str]) -> None:
    """Raise unless repeated lengths are equal (RFC 9110, 8.6): else the end of the body is unknown."""
    lengths = {part.strip() for part in headers["content-length"].split(",")}
    if len(lengths) > 1:
        raise FetchError(
            ErrorClass.BAD_CONTENT,
            Message("several content lengths: {lengths}", lengths=headers["content-length"][:80]),
        )
    headers["content-length"] = lengths.pop()


def transfer_error(code: int, message: str, host: str, timeout_s: float, *, begun: bool) -> FetchError:
    """The error of a transfer that broke.

    Args:
        code: libcurl's, not 0.
        message: libcurl's.
        timeout_s: of the request.
        begun: some of the answer came.
    """
    said = " ".join(message.split())[:200]
    if code == pycurl.E_OPERATION_TIMEDOUT:
        return FetchError(
            ErrorClass.TIMEOUT,
            Message(
                "no whole answer of {host} in time (at most {timeout_s:g} s): {said}",
                host=host,
                timeout_s=timeout_s,
                said=Message(said.partition(" after ")[0]),
            ),
        )
    if code == pycurl.E_COULDNT_RESOLVE_HOST:
        return NameUnknown(ErrorClass.CONNECT, Message("{host} is no known name", host=host))
    if code in _NO_CONNECTION:
        # The beginning repeats the host: "Failed to connect to x.cn port 443 after 2 ms: Couldn't connect to server".
        cause = Message(said.rpartition(": ")[2])
        return FetchError(
            ErrorClass.CONNECT, Message("no connection to {host}: {said}", host=host, said=cause)
        )
    if code == pycurl.E_GOT_NOTHING and not begun:
        return FetchError(ErrorClass.CONNECT, Message("{host} hung up without a word", host=host))
    if code in _TOO_LARGE:
        return FetchError(
            ErrorClass.TOO_LARGE,
            Message("the answer of {host} is over the limit: {said}", host=host, said=said),
        )
    if code in _NO_HTTP:
        return FetchError(
            ErrorClass.BAD_CONTENT, Message("the answer of {host} is no HTTP: {said}", host=host, said=said)
        )
    if code == pycurl.E_URL_MALFORMAT:
        return FetchError(
            ErrorClass.ADDRESS_REFUSED,
            Message("libcurl reads no address for {host}: {said}", host=host, said=said),
        )
    return FetchError(
        ErrorClass.CUT_OFF,
        Message("the answer of {host} broke off: {said}", host=host, said=Message(said.rpartition(": ")[2])),
    )


def status_error(answer: Response, now: datetime) -> FetchError:
    """Return the error of an answer whose status is no success; `now` (aware) serves a wait until a date."""
    return FetchError(
        error_class(answer.status),
        Message("status {status}", status=answer.status),
        retry_after_s=retry_wait_s(answer.headers, answer.status, now),
        response=answer,
    )
