"""Header lines of an answer to a mapping."""

from __future__ import annotations

from functools import lru_cache

from tasks.domain.crawl import ErrorClass, FetchError

_END = (b"\r\n", b"\n")


def whole(lines: list[bytes]) -> bool:
    """True if the headers came to their end."""
    return _END[0] in lines or _END[1] in lines


def parsed(lines: list[bytes]) -> dict[str, str]:
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
    """Name and value; no name for what is no header."""
    name, colon, value = line.decode("utf-8", "surrogateescape").partition(":")
    return (name.strip().lower(), value.strip()) if colon else ("", "")


def _last_head(lines: list[bytes]) -> list[bytes]:
    """Without its status line."""
    if lines[-1] in _END and not any(line in _END for line in lines[:-1]):
        return lines[1:]
    starts = [number for number, line in enumerate(lines) if line.startswith(b"HTTP/")]
    head = lines[starts[-1] + 1 if starts else 0 :]
    return head[: next((number for number, line in enumerate(head) if line in _END), len(head))]


def _check_lengths(headers: dict[str, str]) -> None:
    """Repeated lengths must be one and the same (RFC 9110, 8.6): else nobody knows where the body ends."""
    lengths = {part.strip() for part in headers["content-length"].split(",")}
    if len(lengths) > 1:
        raise FetchError(ErrorClass.BAD_CONTENT, f"several content lengths: {headers['content-length'][:80]}")
    headers["content-length"] = lengths.pop()
