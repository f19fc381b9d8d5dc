"""Content codings taken off a body piece by piece, within hard limits (decompression bombs)."""

from __future__ import annotations

import zlib
from typing import Protocol

from tasks.crawl.model import ErrorClass, FetchError

ACCEPT_ENCODING = "gzip, deflate"

_GZIP = frozenset({"gzip", "x-gzip"})
_UNREADABLE = frozenset({"br", "zstd", "compress", "x-compress", "dcb", "dcz"})
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_MAX_MEMBERS = 16
# Small pages may shrink a lot (templates full of blanks); the ratio only tells a bomb beyond this size.
_RATIO_FROM_BYTES = 262_144


class Body(Protocol):
    """What takes the pieces of a body in and holds it, decompressed, at the end."""

    def feed(self, data: bytes) -> None:
        """Take the next piece. Raises FetchError(TOO_LARGE or BAD_CONTENT)."""

    def finish(self) -> bytes:
        """The whole body. Raises FetchError(CUT_OFF) where its end is missing."""


class PlainBody:
    """A body without content coding, of at most ``max_bytes``."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> None:
        """See `Body`."""
        self._size += len(data)
        if self._size > self._max_bytes:
            raise FetchError(ErrorClass.TOO_LARGE, f"the body is over {self._max_bytes} bytes")
        self._parts.append(data)

    def finish(self) -> bytes:
        """See `Body`."""
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)


class DeflatedBody:
    """A gzip or deflate body: both its sizes and their ratio are limited while it streams.

    Args:
        coding: ``gzip`` or ``deflate``; the latter with or without zlib header, as servers differ.
        max_bytes: of the body as sent.
        max_inflated_bytes: of the body once decompressed.
        max_ratio: of the two, looked at once 256 KiB came out.
    """

    def __init__(self, coding: str, max_bytes: int, max_inflated_bytes: int, max_ratio: float) -> None:
        self._coding = coding
        self._max_bytes = max_bytes
        self._inflated = PlainBody(max_inflated_bytes)
        self._max_inflated_bytes = max_inflated_bytes
        self._max_ratio = max_ratio
        self._bytes_in = self._bytes_out = 0
        self._members = 0
        self._inflater: zlib._Decompress | None = None

    def feed(self, data: bytes) -> None:
        """See `Body`."""
        self._bytes_in += len(data)
        if self._bytes_in > self._max_bytes:
            raise FetchError(ErrorClass.TOO_LARGE, f"the body is over {self._max_bytes} bytes")
        try:
            while data:
                data = self._inflate(data)
        except zlib.error as error:
            raise FetchError(ErrorClass.BAD_CONTENT, f"the body is no {self._coding}: {error}") from error

    def finish(self) -> bytes:
        """See `Body`."""
        if self._inflater is not None and not self._inflater.eof:
            raise FetchError(ErrorClass.CUT_OFF, f"the {self._coding} body lacks its end")
        return self._inflated.finish()

    def _inflate(self, data: bytes) -> bytes:
        """Decompress one member's share of the data; what belongs to a further member is returned."""
        if self._inflater is None:
            self._inflater = self._next_member(data)
        elif self._inflater.eof:
            if self._coding != "gzip" or not data.startswith(_GZIP_MAGIC):
                return b""  # padding after the end, which browsers ignore too
            self._inflater = self._next_member(data)
        room = self._max_inflated_bytes + 1 - self._bytes_out
        out = self._inflater.decompress(data, room)
        self._bytes_out += len(out)
        self._check(bool(self._inflater.unconsumed_tail))
        self._inflated.feed(out)
        return self._inflater.unused_data

    def _check(self, more_waiting: bool) -> None:
        ratio = self._bytes_out / max(1, self._bytes_in)
        if self._bytes_out > _RATIO_FROM_BYTES and ratio > self._max_ratio:
            raise FetchError(ErrorClass.TOO_LARGE, f"the body inflates {ratio:.0f} times: a bomb")
        if more_waiting or self._bytes_out > self._max_inflated_bytes:
            raise FetchError(
                ErrorClass.TOO_LARGE, f"the body inflates to over {self._max_inflated_bytes} bytes"
            )

    def _next_member(self, data: bytes) -> zlib._Decompress:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise FetchError(ErrorClass.TOO_LARGE, f"the gzip body has over {_MAX_MEMBERS} members")
        if self._coding == "gzip":
            return zlib.decompressobj(_GZIP_WINDOW)
        zlib_header = data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)
        return zlib.decompressobj(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)


def body_for(content_encoding: str, max_bytes: int, max_inflated_bytes: int, max_ratio: float) -> Body:
    """What reads a body of this Content-Encoding header (empty: none).

    Values that are no coding at all (``utf-8``, ``none``: servers do send them) mean that there is none.

    Raises:
        FetchError: BAD_CONTENT for a coding that was not asked for and can't be read.
    """
    codings = [word for part in content_encoding.lower().split(",") if (word := part.strip())]
    known = [c for c in codings if c in _GZIP or c == "deflate"]
    if len(known) > 1 or any(c in _UNREADABLE for c in codings):
        raise FetchError(
            ErrorClass.BAD_CONTENT, f"content encoding {content_encoding[:80]!r} was not asked for"
        )
    if not known:
        return PlainBody(max_bytes)
    coding = "gzip" if known[0] in _GZIP else "deflate"
    return DeflatedBody(coding, max_bytes, max_inflated_bytes, max_ratio)
