"""A forward proxy behind which the whole web is a lab on this machine, over TLS, too.

For programs that insist on https and on names that nobody here knows: they are told to go through it and not to check
certificates. One request a connection, which is then closed.
"""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Address = tuple[str, int]

_MOST_HEAD = 65_536
_ANSWER_S = 30.0


class WebProxy:
    """The proxy; `asked` counts requests by host.

    Args:
        lab: where requests go.
        own: hosts with their port (HOST:PORT) that are themselves.
    """

    def __init__(self, lab: Address, own: Mapping[str, Address], tls: ssl.SSLContext) -> None:
        self.asked: Counter[str] = Counter()
        self._lab = lab
        self._own = own
        self._tls = tls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a connection."""
        with suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError, TimeoutError, ValueError):
            async with asyncio.timeout(_ANSWER_S):
                head = await _head(reader)
                if head.startswith(b"CONNECT "):
                    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    await writer.drain()
                    await writer.start_tls(self._tls)
                    head = await _head(reader)
                await self._pass_on(head, writer)
        writer.close()

    async def _pass_on(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, url, version = first.split(" ", 2)
        headers = [line for line in lines if not line.lower().startswith(("connection:", "proxy-"))]
        host = next(line.split(":", 1)[1].strip() for line in headers if line.lower().startswith("host:"))
        parts = urlsplit(url)
        if parts.netloc:
            url = parts._replace(scheme="", netloc="").geturl() or "/"
        self.asked[host] += 1
        theirs, ours = await asyncio.open_connection(*self._own.get(host, self._lab))
        try:
            request = "\r\n".join([f"{method} {url} {version}", *headers, "Connection: close", "", ""])
            ours.write(request.encode("latin-1"))
            while data := await theirs.read(65_536):
                writer.write(data)
                await writer.drain()
        finally:
            ours.close()


async def _head(reader: asyncio.StreamReader) -> bytes:
    return await reader.readuntil(b"\r\n\r\n")


@contextmanager
def web_proxy(lab: Address, own: Mapping[str, Address]) -> Iterator[tuple[Address, Counter[str]]]:
    """Serve one on a free port, in a thread; its address, and how often each host was asked."""
    ready, loop = Event(), asyncio.new_event_loop()
    proxy = WebProxy(lab, own, _own_certificate())
    at: list[Address] = []

    async def serve() -> None:
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=_MOST_HEAD)
        at.append(server.sockets[0].getsockname()[:2])
        ready.set()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.run_forever()

    thread = Thread(target=run, daemon=True)
    thread.start()
    ready.wait()
    try:
        yield at[0], proxy.asked
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def _own_certificate() -> ssl.SSLContext:
    """A context with a certificate that nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lab.pem"
        file.write_bytes(private + certificate.public_bytes(pem))
        context.load_cert_chain(file)
    return context
