"""A report arrives: in a folder, at a webhook, by mail over TLS; what fails is told without what is secret."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, HTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from patience import PATIENCE_S

from app.sending.alert_sending import Receivers
from app.sending.delivery import Sender, parse_destination, send, shown_destination
from app.sending.mail_server import Security, SmtpServer, smtp_server
from app.sending.mailing import Mailing
from app.sending.parcel import DeliveryFailed, Parcel
from splitter.errors import InputError

PASSWORD = "geheim/wort"
HOOK = "/hook/T0KEN"


@pytest.fixture
def parcel(tmp_path: Path) -> Parcel:
    path = tmp_path / "report-3.html"
    path.write_bytes("<p>光明高钙牛奶</p>".encode())
    return Parcel(
        path=path, media_type="text/html; charset=utf-8", kind="report", subject="Report", text="一份\n"
    )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key and a certificate for 127.0.0.1 that signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "mail")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "mail.pem"
    plain = serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


class MailServer:
    """A mail server on loopback that speaks as much SMTP as a client needs.

    Args:
        says: answers instead of the usual ones, by command; None: it falls silent.
    """

    def __init__(self, certificate: Path, security: Security, says: dict[str, str | None]) -> None:
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(certificate)
        self._security = security
        self._says = says
        self.heard: list[str] = []
        self.mails: list[EmailMessage] = []
        self.port = 0
        self._begun = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> MailServer:
        self._thread.start()
        assert self._begun.wait(PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set)
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        tls = self._tls if self._security is Security.TLS else None
        async with await asyncio.start_server(self._connected, "127.0.0.1", 0, ssl=tls) as server:
            self.port = server.sockets[0].getsockname()[1]
            self._begun.set()
            await self._end.wait()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.CancelledError, OSError):
            await self._serve(reader, writer)
        writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        usual = {"": "220 here", "AUTH": "235 ok", "MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go on"}
        usual |= {"STARTTLS": "220 go on", "QUIT": "221 bye", ".": "250 taken"}
        secure = self._security is Security.TLS
        command, data = "", b""
        while True:
            if command == "EHLO":
                offers = ["250-here", *([] if secure else ["250-STARTTLS"]), "250 AUTH PLAIN"]
                said: str | None = "\r\n".join(offers)
            else:
                said = self._says.get(command, usual.get(command, "502 what?"))
            if said is None:
                await self._end.wait()  # what waits for nothing else is garbage
                return
            writer.write(f"{said}\r\n".encode())
            await writer.drain()
            if command == "STARTTLS":
                await writer.start_tls(self._tls)
                secure = True
            if command == "DATA" and said.startswith("354"):
                data = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(message_from_bytes(data, policy=policy.default))  # type: ignore[arg-type]
                command = "."
                continue
            line = (await reader.readline()).decode().strip()
            if not line:
                return
            self.heard.append(("tls " if secure else "") + line)
            command = line.split()[0].upper()

    def address(self, user: str = "reports@example.cn", password: str = PASSWORD) -> SmtpServer:
        return SmtpServer(
            host="127.0.0.1",
            port=self.port,
            security=self._security,
            user=user,
            password=password,
            sender="reports@example.cn",
        )


def _trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


@pytest.mark.parametrize("security", [Security.TLS, Security.STARTTLS])
def test_a_mail_carries_the_file_and_the_password_goes_over_tls_only(
    parcel: Parcel, certificate: Path, security: Security
) -> None:
    with MailServer(certificate, security, {}) as server:
        Mailing(server.address(), _trusting(certificate)).send(parcel, ["a@example.cn", "b@example.cn"])
    (mail,) = server.mails
    assert (mail["From"], mail["To"]) == ("reports@example.cn", "a@example.cn, b@example.cn")
    (file,) = mail.iter_attachments()
    assert (file.get_filename(), file.get_content_type()) == ("report-3.html", "text/html")
    assert file.get_payload(decode=True) == parcel.path.read_bytes()
    body = mail.get_body()
    assert body is not None
    assert body.get_content().strip() == "一份"
    assert all(line.startswith("tls ") for line in server.heard if "AUTH" in line or "MAIL" in line)
    assert any("AUTH" in line for line in server.heard)


@pytest.mark.parametrize(
    ("says", "told_"),
    [
        ({"AUTH": f"535 {PASSWORD} is wrong"}, "refuses user and password (535)"),
        ({"RCPT": "550 nobody of that name"}, "a@example.cn: 550 nobody of that name"),
        ({"DATA": f"554 {PASSWORD}\x1b[2J?"}, "554 ***"),
        ({"": "554 not here"}, "554 not here"),
        ({"STARTTLS": "454 not now"}, "454 not now"),
    ],
)
def test_what_a_mail_server_refuses_is_told_without_the_password(
    parcel: Parcel, certificate: Path, says: dict[str, str | None], told_: str
) -> None:
    with MailServer(certificate, Security.STARTTLS, says) as server, pytest.raises(DeliveryFailed) as failed:
        Mailing(server.address(), _trusting(certificate)).send(parcel, ["a@example.cn"])
    assert told_ in str(failed.value)
    assert PASSWORD not in str(failed.value) + repr(failed.value) + repr(server.address())
    assert "\x1b" not in str(failed.value)
    assert server.mails == []


def test_a_certificate_of_a_stranger_is_refused_before_the_password(
    parcel: Parcel, certificate: Path
) -> None:
    with MailServer(certificate, Security.TLS, {}) as server:
        with pytest.raises(DeliveryFailed, match=r"(?i)certificate"):
            Mailing(server.address()).send(parcel, ["a@example.cn"])
        assert server.heard == []


def test_alerts_go_by_the_same_mail_server(certificate: Path) -> None:
    with MailServer(certificate, Security.OFF, {}) as server:
        mail = server.address(user="", password="")
        (sent,) = Receivers(["mailto:me@example.cn,you@example.cn"], mail).send("ALERT: silent n1", "两分钟")
    assert (sent.to, sent.why) == ("mailto:***@example.cn", "")
    (got,) = server.mails
    assert (got["To"], got["Subject"]) == ("me@example.cn, you@example.cn", "ALERT: silent n1")
    assert got.get_content().split() == ["两分钟", "."]
    with MailServer(certificate, Security.OFF, {"RCPT": "550 nobody of that name"}) as server:
        mail = server.address(user="", password="")
        (refused,) = Receivers(["mailto:me@example.cn"], mail).send("ALERT", "text")
    assert "550 nobody of that name" in refused.why
    with pytest.raises(InputError, match="needs the mail server: REVIEWLOOP_SMTP_URL"):
        Receivers(["mailto:me@example.cn"])


@pytest.mark.parametrize("silent_at", ["", "MAIL"])
def test_a_frozen_mail_server_is_left_behind(parcel: Parcel, certificate: Path, silent_at: str) -> None:
    with MailServer(certificate, Security.OFF, {silent_at: None}) as server:
        sender = Sender(smtp=server.address(user="", password=""), user_agent="test")
        with pytest.raises(DeliveryFailed, match="not done within"):
            send(parcel, "mailto:a@example.cn", sender, within_s=0.4)
        ends = iter([True, False])
        with pytest.raises(DeliveryFailed, match="the run ended"):
            send(parcel, "mailto:a@example.cn", sender, goes_on=lambda: next(ends, False))
    assert server.mails == []


class _Hook(BaseHTTPRequestHandler):
    status = 200
    got: list[tuple[str, str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.got.append((self.path, self.headers["Content-Type"], body))
        self.send_response(self.status)
        if self.status == 302:
            self.send_header("Location", "http://127.0.0.1:1/")
        self.end_headers()
        self.wfile.write(f"no such hook: {HOOK}".encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hook() -> Iterator[tuple[str, type[_Hook]]]:
    handler = type("Handler", (_Hook,), {"got": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}{HOOK}?key=T0KEN", handler
        server.shutdown()
        thread.join(PATIENCE_S)


NOBODY = Sender(smtp=None, user_agent="reviewloop/test")


def test_a_webhook_gets_the_file_as_a_form(parcel: Parcel, hook: tuple[str, type[_Hook]]) -> None:
    url, handler = hook
    send(parcel, url, NOBODY, private=True)
    ((path, kind, body),) = handler.got
    form = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + body, policy=policy.default)
    parts = {part.get_param("name", header="content-disposition"): part for part in form.iter_parts()}  # type: ignore[attr-defined]
    assert path == f"{HOOK}?key=T0KEN"
    assert parts["what"].get_content().strip() == "report"
    assert (parts["file"].get_filename(), parts["file"].get_content_type()) == ("report-3.html", "text/html")
    assert parts["file"].get_payload(decode=True) == parcel.path.read_bytes()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_a_webhook_that_refuses_is_told_without_its_address(
    parcel: Parcel, hook: tuple[str, type[_Hook]], status: int
) -> None:
    url, handler = hook
    handler.status = status
    with pytest.raises(DeliveryFailed, match=f"http://127.0.0.1/... answers {status}") as failed:
        send(parcel, url, NOBODY, private=True)
    assert "T0KEN" not in str(failed.value)
    assert len(handler.got) == 1


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_a_private_address_is_reached_only_where_it_was_named_so(
    parcel: Parcel, hook: tuple[str, type[_Hook]], host: str
) -> None:
    url, handler = hook
    with pytest.raises(DeliveryFailed, match="no public address") as failed:
        send(parcel, url.replace("127.0.0.1", host), NOBODY)
    assert "T0KEN" not in str(failed.value)
    assert handler.got == []


def test_what_is_too_large_is_not_sent(parcel: Parcel, hook: tuple[str, type[_Hook]]) -> None:
    with parcel.path.open("wb") as file:
        file.truncate(20_000_001)
    with pytest.raises(DeliveryFailed, match="write it to a folder"):
        send(parcel, hook[0], NOBODY, private=True)


@pytest.mark.parametrize(
    ("to", "kept"),
    [
        ("mailto:a@example.cn, b@example.cn", "mailto:a@example.cn,b@example.cn"),
        ("file:/reports", "file:/reports"),
        ("file:///reports", "file:/reports"),
        ("file:reports", f"file:{Path.cwd() / 'reports'}"),
        (" https://hooks.example.cn/x?key=1", "https://hooks.example.cn/x?key=1"),
    ],
)
def test_a_destination(to: str, kept: str) -> None:
    assert parse_destination(to, private=False) == kept


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("", "nowhere to send to; write mailto:"),
        ("boss@example.cn", "write mailto:"),
        ("ftp://example.cn/", "write mailto:"),
        ("mailto:boss", "no mail address"),
        ("mailto:a@example.cn\r\nBcc: b@example.cn", "no mail address"),
        ("https://user:word@example.cn/", "a user or a password"),
        ("https://example.cn:99999/", "port"),
        ("http://10.0.0.5/hook", "--private"),
        ("file:", "file:FOLDER"),
    ],
)
def test_a_wrong_destination_is_refused_with_what_would_be_right(to: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse_destination(to, private=False)


def test_of_a_webhook_only_the_host_is_told() -> None:
    assert shown_destination("https://hooks.example.cn/T0KEN?key=1") == "https://hooks.example.cn/..."
    assert shown_destination("mailto:a@example.cn") == "mailto:a@example.cn"


def test_the_address_of_a_mail_server() -> None:
    one = smtp_server("smtps://reports%40example.cn:geheim%2Fwort@mail.example.cn", "")
    assert (one.port, one.security, one.user, one.password) == (
        465,
        Security.TLS,
        "reports@example.cn",
        PASSWORD,
    )
    assert one.sender == "reports@example.cn"
    assert PASSWORD not in repr(one)
    relay = smtp_server("smtp://relay:25?tls=off", "reports@example.cn")
    assert (relay.port, relay.security, relay.user) == (25, Security.OFF, "")
    assert smtp_server("smtp://u:p@relay", "a@b.cn").security is Security.STARTTLS


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("mail.example.cn", "write smtps://"),
        ("https://mail.example.cn", "write smtps://"),
        ("smtps://u:geheim/wort@mail.example.cn", "%2F"),
        ("smtps://u:p@mail.example.cn:smtp", "write smtps://"),
        ("smtps://mail.example.cn?tls=off", "remove .tls=off"),
        ("smtps://user@mail.example.cn", "go together"),
        ("smtp://u:geheim@mail.example.cn?tls=off", "not sent without TLS"),
    ],
)
def test_a_wrong_address_of_a_mail_server_is_refused_without_its_password(url: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        smtp_server(url, "reports@example.cn")
    assert "geheim" not in str(refused.value)


def test_mail_needs_a_sender() -> None:
    with pytest.raises(InputError, match="REVIEWLOOP_MAIL_FROM"):
        smtp_server("smtps://user:word@mail.example.cn", "")
