"""One request on its way through libcurl: an easy handle and the answer it receives. It is reused."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from io import BytesIO
from ipaddress import ip_address

import certifi
import pycurl

from tasks.domain.public_ip import address_allowed

Outcome = tuple[int, str]
"""libcurl's code (0: a whole answer) and its message."""

_DNS_CACHE_S = 300
# CURLOPT_SUPPRESS_CONNECT_HEADERS, which pycurl has no name for: the proxy's headers are no answer of the host.
_SUPPRESS_CONNECT_HEADERS = 265
# Shared by all transfers of a multi handle: a page comes in one or two pieces.
_BUFFER_BYTES = 65_536
MAX_SENT = 2
"""Times a request is sent at most: the second time because a kept connection was found dead."""

# With the status line and the empty one. Interim answers and trailers count too.
_MAX_LINES = 130


@dataclass(frozen=True, slots=True)
class Wire:
    """How a node reaches the web: what all its transfers have in common.

    Attributes:
        max_body_bytes: of a body as sent; `max_line_bytes`: of one header line.
        local_address: source address; None: the system's choice.
        proxy: address of the node's proxy; None: none, whatever the environment contains.
        guarded: connections are made to public addresses only.
    """

    max_body_bytes: int
    max_line_bytes: int
    local_address: str | None
    proxy: str | None = field(repr=False)
    guarded: bool


class Transfer:
    """An easy handle and its buffers. libcurl writes bodies into them without a line of Python.

    Attributes:
        curl: the handle; `head_lines`: lines of the headers as they came, line ends included.
        sent: how often the request was sent, or was about to be.
        overfull: the headers were over the limit: too many lines, or one too long.
        refused: the address a connection was refused to; `connected`: a connection to another one was tried.
        future, moved, moved_at: of the transfer under way; kept by `Multi`.
    """

    def __init__(self, wire: Wire) -> None:
        self.future: asyncio.Future[Outcome] | None = None
        self.moved = 0
        self.moved_at = 0.0
        self.refused = ""
        self.connected = False
        self.overfull = False
        self.sent = 0
        self.head_lines: list[bytes] = []
        self._body = BytesIO()
        self._guarded = wire.guarded
        self._trusted = False
        self._max_line_bytes = wire.max_line_bytes
        self._origin = ""
        self._timeout_ms = 0
        self._sent_lines: list[bytes] = []
        self.curl = pycurl.Curl()
        self._set(wire)

    def prepare(
        self, origin: str, target: str, lines: list[bytes], timeout_s: float, *, trusted: bool = False
    ) -> None:
        """Make it ready for a GET.

        Args:
            origin: scheme, host and port to connect to.
            target: path and query, sent byte by byte (libcurl would rewrite ``%2f`` in an address).
            lines: header lines, ``Name: value``.
            timeout_s: for the whole transfer.
            trusted: the host may be on a private address.
        """
        self._trusted = trusted
        if origin != self._origin:
            self.curl.setopt(pycurl.URL, origin)
            self._origin = origin
        self.curl.setopt(pycurl.REQUEST_TARGET, target)
        if lines is not self._sent_lines:
            self.curl.setopt(pycurl.HTTPHEADER, lines)
            self._sent_lines = lines
        timeout_ms = max(1, int(timeout_s * 1000))
        if timeout_ms != self._timeout_ms:
            self.curl.setopt(pycurl.TIMEOUT_MS, timeout_ms)
            self._timeout_ms = timeout_ms

    def count_bytes(self) -> int:
        """Grows with everything that comes."""
        return self._body.tell() + len(self.head_lines)

    def body(self) -> bytes:
        """The body received so far, as sent: in its chunks, if it has any."""
        return self._body.getvalue()

    def status(self) -> int:
        """HTTP status, 0 before there is one."""
        return int(self.curl.getinfo(pycurl.RESPONSE_CODE))

    def first_byte_s(self) -> float:
        """Seconds from sending the request to the first byte of the answer; 0 unless it was sent exactly once.

        Looking up the name, connecting and TLS are left out: libcurl reads its clock for "pretransfer" once a
        connection stands and the request is about to go.
        """
        if self.sent != 1:  # the clock also ran through the dead connection
            return 0.0
        info = self.curl.getinfo
        return max(0.0, float(info(pycurl.STARTTRANSFER_TIME)) - float(info(pycurl.PRETRANSFER_TIME)))

    def clear(self) -> None:
        """Forget the answer; the handle can be used again."""
        self.head_lines.clear()
        self._body.seek(0)
        self._body.truncate()
        self.refused, self.connected, self.overfull = "", False, False
        self.sent = 0

    def _set(self, wire: Wire) -> None:
        setopt = self.curl.setopt
        setopt(pycurl.WRITEFUNCTION, self._body.write)
        setopt(pycurl.HEADERFUNCTION, self._take_line)
        setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        setopt(pycurl.PREREQFUNCTION, self._about_to_send)
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        # HTTP/2 would put requests we space out on one connection and save nothing: hosts are asked one by one.
        setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
        # Chunks come as they are sent: of a body decoded here, libcurl would not count the extensions of its chunks.
        setopt(pycurl.HTTP_TRANSFER_DECODING, 0)
        setopt(pycurl.MAXFILESIZE_LARGE, wire.max_body_bytes)
        setopt(pycurl.BUFFERSIZE, _BUFFER_BYTES)
        setopt(pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_S)
        setopt(pycurl.CAINFO, certifi.where())
        # An empty value keeps libcurl from looking into the environment.
        setopt(pycurl.PROXY, wire.proxy or "")
        setopt(pycurl.NOPROXY, "")
        setopt(_SUPPRESS_CONNECT_HEADERS, 1)
        if wire.local_address is not None:
            version = ip_address(wire.local_address).version
            setopt(pycurl.INTERFACE, f"host!{wire.local_address}")
            setopt(pycurl.IPRESOLVE, pycurl.IPRESOLVE_V4 if version == 4 else pycurl.IPRESOLVE_V6)

    def _take_line(self, line: bytes) -> int | None:
        """Keep a header line; 0 ends the transfer."""
        self.head_lines.append(line)
        if len(line) <= self._max_line_bytes and len(self.head_lines) <= _MAX_LINES:
            return None
        self.overfull = True
        return 0

    def _about_to_send(self, *_connection: object) -> int:
        """Send on at most one more kept connection if one dies without an answer; libcurl would try five."""
        self.sent += 1
        return int(pycurl.PREREQFUNC_OK if self.sent <= MAX_SENT else pycurl.PREREQFUNC_ABORT)

    def _open_socket(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> int:
        """A socket for the very address libcurl is about to connect to, or a refusal."""
        family, kind, protocol, (ip, *_port) = address
        if self._guarded and not self._trusted and not address_allowed(ip, allow_loopback=False):
            self.refused = ip
            return pycurl.SOCKET_BAD
        self.connected = True
        return socket.socket(family, kind, protocol).detach()
