"""Content codings taken off a body piece by piece, within hard limits (decompression bombs).

Not left to libcurl: it limits what is sent, not what comes out of it, and its wheels know no zstd.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import brotli  # type: ignore[import-untyped]
import zstandard

from tasks.domain.crawl import ErrorClass, FetchError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_READABLE = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
_UNREADABLE = frozenset({"compress", "x-compress", "dcb", "dcz"})
# Codings whose members (frames) may follow each other, and how the next one starts.
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_MAX_MEMBERS = 16
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# The largest window a zstd decoder on the web has to have (RFC 9659, 3).
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# Four bytes of zstd may mean 128 KiB: so few go in at once that at most 8 MiB come out beyond the limit.
_ZSTD_STEP_BYTES = 256
_ZSTD_OUT_BYTES = 32_768
# Small pages may shrink a lot (templates full of blanks); the ratio only tells a bomb beyond this size.
_RATIO_FROM_BYTES = 262_144
_BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)


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


class Member(Protocol):
    """The decoder of one gzip member, of one zstd frame, of the whole of a body in another coding."""

    def step(self, data: bytes, room: int) -> tuple[bytes, bytes]:
        """What comes out of some of the data, and the data not looked at. Over ``room`` bytes: there is more."""

    @property
    def ended(self) -> bool:
        """True once the member's end was seen."""


class PackedBody:
    """A body in one content coding: both its sizes and their ratio are limited while it streams.

    Args:
        coding: ``gzip``, ``deflate`` (with or without zlib header, as servers differ), ``br`` or ``zstd``.
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
        self._member: Member | None = None

    def feed(self, data: bytes) -> None:
        """See `Body`."""
        self._bytes_in += len(data)
        if self._bytes_in > self._max_bytes:
            raise FetchError(ErrorClass.TOO_LARGE, f"the body is over {self._max_bytes} bytes")
        try:
            while data:
                data = self._step(data)
        except _BROKEN as error:
            raise FetchError(ErrorClass.BAD_CONTENT, f"the body is no {self._coding}: {error}") from error

    def finish(self) -> bytes:
        """See `Body`."""
        if self._member is not None and not self._member.ended:
            raise FetchError(ErrorClass.CUT_OFF, f"the {self._coding} body lacks its end")
        return self._inflated.finish()

    def _step(self, data: bytes) -> bytes:
        """Decompress some of the data; what was not looked at is returned."""
        if self._member is None or self._member.ended:
            magic = _MAGIC.get(self._coding, b"")
            if self._member is not None and not (magic and data.startswith(magic)):
                return b""  # padding after the end, which browsers ignore too
            self._member = self._next_member(data)
        out, rest = self._member.step(data, self._max_inflated_bytes + 1 - self._bytes_out)
        self._bytes_out += len(out)
        self._check()
        self._inflated.feed(out)
        return rest

    def _check(self) -> None:
        ratio = self._bytes_out / max(1, self._bytes_in)
        if self._bytes_out > _RATIO_FROM_BYTES and ratio > self._max_ratio:
            raise FetchError(
                ErrorClass.TOO_LARGE,
                f"the body inflates {ratio:.0f} times or more, {self._max_ratio:g} are allowed",
            )

    def _next_member(self, data: bytes) -> Member:
        self._members += 1
        if self._members > _MAX_MEMBERS:
            raise FetchError(ErrorClass.TOO_LARGE, f"the {self._coding} body has over {_MAX_MEMBERS} members")
        if self._coding == "br":
            return _BrotliMember()
        if self._coding == "zstd":
            return _ZstdMember()
        if self._coding == "gzip":
            return _ZlibMember(_GZIP_WINDOW)
        zlib_header = data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)
        return _ZlibMember(zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)


class _ZlibMember:
    def __init__(self, window: int) -> None:
        self._inflater = zlib.decompressobj(window)

    def step(self, data: bytes, room: int) -> tuple[bytes, bytes]:
        return self._inflater.decompress(data, room), self._inflater.unused_data

    @property
    def ended(self) -> bool:
        return self._inflater.eof


class _BrotliMember:
    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()

    def step(self, data: bytes, room: int) -> tuple[bytes, bytes]:
        return self._decoder.process(data, output_buffer_limit=room), b""

    @property
    def ended(self) -> bool:
        return bool(self._decoder.is_finished())


class _ZstdMember:
    def __init__(self) -> None:
        decoder = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
        self._decoder = decoder.decompressobj(write_size=_ZSTD_OUT_BYTES)

    def step(self, data: bytes, room: int) -> tuple[bytes, bytes]:
        parts: list[bytes] = []
        fed = 0
        while fed < len(data) and room > 0 and not self._decoder.eof:
            parts.append(self._decoder.decompress(data[fed : fed + _ZSTD_STEP_BYTES]))
            room -= len(parts[-1])
            fed += _ZSTD_STEP_BYTES
        return b"".join(parts), self._decoder.unused_data + data[fed:]

    @property
    def ended(self) -> bool:
        return self._decoder.eof


def body_for(content_encoding: str, max_bytes: int, max_inflated_bytes: int, max_ratio: float) -> Body:
    """What reads a body of this Content-Encoding header (empty: none).

    Values that are no coding at all (``utf-8``, ``none``: servers do send them) mean that there is none.

    Raises:
        FetchError: BAD_CONTENT for a coding that was not asked for and can't be read, and for one on another.
    """
    codings = [word for part in content_encoding.lower().split(",") if (word := part.strip())]
    known = [_READABLE[coding] for coding in codings if coding in _READABLE]
    if len(known) > 1 or any(c in _UNREADABLE for c in codings):
        raise FetchError(
            ErrorClass.BAD_CONTENT, f"content encoding {content_encoding[:80]!r} was not asked for"
        )
    if not known:
        return PlainBody(max_bytes)
    return PackedBody(known[0], max_bytes, max_inflated_bytes, max_ratio)
