"""Codings taken off a body, within hard limits (decompression bombs, chunk extensions).

Not left to libcurl: it limits what is sent, not what comes out of it, its wheels know no zstd, and it does not count
the framing of chunks.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import brotli  # type: ignore[import-untyped]
import zstandard
from splitter.errors import Message

from tasks.domain.failures import ErrorClass, FetchError

ACCEPT_ENCODING = "gzip, deflate, br, zstd"

_READABLE = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
_UNREADABLE = frozenset({"compress", "x-compress", "dcb", "dcz"})
# Codings whose members (frames) may follow each other, and how the next one starts.
_MAGIC = {"gzip": b"\x1f\x8b", "zstd": b"\x28\xb5\x2f\xfd"}
_MAX_MEMBERS = 16
_MOST_UNPACKED, _MOST_RATIO = 52_428_800, 100.0  # a sitemap may have 50 MiB unpacked
_GZIP_WINDOW = 16 + zlib.MAX_WBITS
# The largest window a zstd decoder on the web has to have (RFC 9659, 3).
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# Four bytes of zstd may mean 128 KiB. Steps of this size overshoot the limit by at most 8 MiB.
_ZSTD_STEP_BYTES = 256
_ZSTD_OUT_BYTES = 32_768
# Small pages may shrink a lot (templates full of blanks): the ratio reveals a bomb only beyond this size.
_RATIO_FROM_BYTES = 262_144
_BROKEN = (zlib.error, brotli.error, zstandard.ZstdError)

_MOST_CHUNKS = 32_768
# Size, extensions; libcurl has checked the form.
_CHUNK = re.compile(rb"([0-9A-Fa-f]++)[^\n]*+\n")

_Member = tuple[bytes, bytes, bool]
"""The output of a gzip member, a zstd frame or a whole body; the data after it; whether its end was seen."""


def unpack(body: bytes) -> bytes:
    """A list as it is read: one that is a packed file (sitemap.xml.gz), unpacked.

    Raises:
        FetchError: as `inflate_body`.
    """
    if not body.startswith(_MAGIC["gzip"]):
        return body
    return inflate_body(body, "gzip", max_bytes=_MOST_UNPACKED, max_ratio=_MOST_RATIO)


def join_chunks(body: bytes, transfer_encoding: str) -> bytes:
    """Return the data of a whole body that came in chunks (RFC 9112, 7.1).

    Raises:
        FetchError: TOO_LARGE for very many chunks; BAD_CONTENT for another Transfer-Encoding, as none was asked for.
    """
    coding = transfer_encoding.strip().lower()
    if coding == "identity":
        return body
    if coding != "chunked":
        raise FetchError(
            ErrorClass.BAD_CONTENT,
            Message("transfer encoding {coding!r} was not asked for", coding=coding[:80]),
        )
    pieces: list[bytes] = []
    place = 0
    while True:
        head = _CHUNK.match(body, place)
        if head is None:
            break
        size = int(head[1], 16)
        if size == 0:
            break
        if len(pieces) == _MOST_CHUNKS:
            raise FetchError(
                ErrorClass.TOO_LARGE, Message("the body has over {most} chunks", most=_MOST_CHUNKS)
            )
        start = head.end()
        pieces.append(body[start : start + size])
        # A line break ends the data.
        place = body.find(b"\n", start + size) + 1
    return b"".join(pieces)


def inflate_body(body: bytes, content_encoding: str, *, max_bytes: int, max_ratio: float) -> bytes:
    """A body without the coding of its Content-Encoding header.

    Values that are no coding at all (``utf-8``, ``none``: servers do send them) mean that there is none.

    Args:
        body: as sent, not empty.
        content_encoding: ``gzip``, ``deflate`` (with or without zlib header, as servers differ), ``br`` or ``zstd``.
        max_bytes: of the body once decompressed.
        max_ratio: of its two sizes; smaller results than 256 KiB may have any.

    Raises:
        FetchError: TOO_LARGE over a limit; CUT_OFF if its end is missing; BAD_CONTENT if it is broken, and for
            a coding that was not asked for and can't be read, or one on another.
    """
    coding = _coding_of(content_encoding)
    if coding is None:
        return body
    most = min(max_bytes, max(_RATIO_FROM_BYTES, int(max_ratio * len(body))))
    decode, magic = _DECODERS[coding], _MAGIC.get(coding)
    pieces: list[bytes] = []
    size, rest, ended = 0, body, True
    # Anything behind the end that is no other member is padding, which browsers ignore too.
    while rest and ended and (not pieces or (magic is not None and rest.startswith(magic))):
        if len(pieces) == _MAX_MEMBERS:
            raise FetchError(
                ErrorClass.TOO_LARGE,
                Message("the {coding} body has over {most} members", coding=coding, most=_MAX_MEMBERS),
            )
        try:
            piece, rest, ended = decode(rest, most + 1 - size)
        except _BROKEN as error:
            raise FetchError(
                ErrorClass.BAD_CONTENT,
                Message("the body is no {coding}, or is cut off", coding=coding),
            ) from error
        pieces.append(piece)
        size += len(piece)
        if size > most:
            if most == max_bytes:
                raise FetchError(
                    ErrorClass.TOO_LARGE, Message("the body inflates to over {most:,} bytes", most=most)
                )
            raise FetchError(
                ErrorClass.TOO_LARGE,
                Message("the body inflates to over {ratio:g} times what was sent", ratio=max_ratio),
            )
    if not ended:
        raise FetchError(ErrorClass.CUT_OFF, Message("the {coding} body lacks its end", coding=coding))
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _coding_of(content_encoding: str) -> str | None:
    """The coding of a body; None for none. Raises FetchError for one that can't be read."""
    codings = [word for part in content_encoding.lower().split(",") if (word := part.strip())]
    known = [_READABLE[coding] for coding in codings if coding in _READABLE]
    if len(known) > 1 or any(coding in _UNREADABLE for coding in codings):
        raise FetchError(
            ErrorClass.BAD_CONTENT,
            Message("content encoding {coding!r} was not asked for", coding=content_encoding[:80]),
        )
    return known[0] if known else None


def _gzip(data: bytes, most: int, window: int = _GZIP_WINDOW) -> _Member:
    inflater = zlib.decompressobj(window)
    return inflater.decompress(data, most), inflater.unused_data, inflater.eof


def _deflate(data: bytes, most: int) -> _Member:
    zlib_header = data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0)
    return _gzip(data, most, zlib.MAX_WBITS if zlib_header else -zlib.MAX_WBITS)


def _brotli(data: bytes, most: int) -> _Member:
    decoder = brotli.Decompressor()
    return decoder.process(data, output_buffer_limit=most), b"", bool(decoder.is_finished())


def _zstd(data: bytes, most: int) -> _Member:
    decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW_BYTES)
    decoder = decompressor.decompressobj(write_size=_ZSTD_OUT_BYTES)
    pieces: list[bytes] = []
    fed = 0
    while fed < len(data) and most > 0 and not decoder.eof:
        pieces.append(decoder.decompress(data[fed : fed + _ZSTD_STEP_BYTES]))
        most -= len(pieces[-1])
        fed += _ZSTD_STEP_BYTES
    return b"".join(pieces), decoder.unused_data + data[fed:], decoder.eof


_DECODERS: dict[str, Callable[[bytes, int], _Member]] = {
    "gzip": _gzip,
    "deflate": _deflate,
    "br": _brotli,
    "zstd": _zstd,
}
