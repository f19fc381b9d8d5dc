"""The lab's HTTP server: tells sites apart by Host, clients by source address, and logs every request."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from html import escape
from ipaddress import ip_address, ip_network
from pathlib import Path

from aiohttp import web

from app.lab.answers import LOGIN, Answer, Document, refusal
from app.lab.behaviour import Ask, Decision, Memory, decide
from app.lab.corpus import DEFAULT_REVIEWS, Corpus, load_texts
from app.lab.log import Entry, RequestLog
from app.lab.login import Knock
from app.lab.oauth import door_of
from app.lab.profile import Conducts, Profile, Role, load_profile
from app.lab.web import LocalWeb
from splitter.catalog.model import Catalog
from splitter.errors import InputError

LAB_HOST = "lab.local"
"""Host name of the lab's own pages; loopback addresses and localhost are the same."""

MOST_IN_FLIGHT = 12_000
"""Requests answered at once; those beyond get 503 at once."""

_LOOPBACK = ip_network("127.0.0.0/8")
_OWN_PATHS = ("/", "/__log", "/__truth")
_BACKLOG = 4096


class Lab:
    """A local web on one port; an async context manager once its address is known (`start` gives the port).

    Attributes:
        host, port: where it listens; port 0 before it is started.
        web: what it serves when all is well.
        log: its witness.
    """

    def __init__(
        self,
        catalog: Catalog,
        profile: Profile | str = "calm",
        *,
        seed: int = 1,
        log_path: Path | None = None,
        reviews: Path = DEFAULT_REVIEWS,
    ) -> None:
        """Set up a lab.

        Args:
            catalog: engines and sites to serve.
            profile: how it behaves: a profile, the name of a built-in one, or a file.
            seed: of its pages and faults.
            log_path: file for its log; None: in memory only.
            reviews: folder of real review texts; texts are made where it is not there.

        Raises:
            ProfileError: the profile is wrong.
        """
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.host, self.port = "", 0
        texts = load_texts(reviews, _refusing_patterns(catalog))
        self.web = LocalWeb(catalog, Corpus(catalog, seed, texts, self.profile.hits))
        self._started_s = time.monotonic()
        self.log = RequestLog(datetime.now(UTC), log_path)
        self._conducts = Conducts(self.profile)
        self._memory = Memory()
        self._doors = {host: door_of(rules, seed) for host, rules in self.profile.doors.items()}
        self._in_flight = 0
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Listen, and begin the lab's time.

        Args:
            host: an address in 127.0.0.0/8.
            port: 0: any that is free.

        Returns:
            The port.

        Raises:
            InputError: not a loopback address, or the port is taken.
        """
        _check_loopback(host)
        server = web.Server(self._answer, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
        except OSError as error:
            await runner.cleanup()
            raise InputError(f"the lab cannot listen on {host}:{port}: {error.strerror or error}") from error
        self._runner = runner
        self.host, self.port = host, runner.addresses[0][1]
        self._started_s = time.monotonic()
        return self.port

    async def stop(self) -> None:
        """Let go of hanging requests, close every connection and the log. May be called twice."""
        self._stopping.set()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
        self.log.close()

    async def __aenter__(self) -> Lab:
        if not self.port:
            await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        ask = Ask(
            client=request.remote or "",
            host=_host_of(request),
            target=request.raw_path,
            t=time.monotonic() - self._started_s,
        )
        role = self.web.role(ask.host)
        if role is None or (_is_own(ask.host) and request.path in _OWN_PATHS):
            return self._own(ask, request)
        if (said := await self._at_door(ask, request)) is not None:
            return said
        if request.method not in ("GET", "HEAD"):
            return self._send(ask, "bad_method", Document(405, "text/plain", b"GET or HEAD"))
        if self._in_flight >= MOST_IN_FLIGHT:
            return self._send(ask, "busy", refusal(Answer.UNAVAILABLE))
        self._in_flight += 1
        try:
            return await self._of_catalog(ask, role, request)
        finally:
            self._in_flight -= 1

    async def _at_door(self, ask: Ask, request: web.BaseRequest) -> web.Response | None:
        """What a site says to whoever has to sign in; None: let in. Its robots.txt is for everybody."""
        door = self._doors.get(ask.host.removeprefix("www."))
        if door is None or ask.target == "/robots.txt":
            return None
        headers = {name.lower(): value for name, value in request.headers.items()}
        said = door(Knock(request.method, ask.target, headers, await request.read(), ask.t))
        if said is None:
            return None
        response = self._send(ask, said.outcome, Document(said.status, said.content_type, said.body.encode()))
        for name, value in said.headers:
            response.headers.add(name, value)
        return response

    async def _of_catalog(self, ask: Ask, role: Role, request: web.BaseRequest) -> web.StreamResponse:
        """Answer for a host of the catalog. What a crawl needs to behave well is spared faults, not death."""
        conduct = self._conducts.at(ask.client, ask.host, role, ask.t)
        fixed = self._fixed(ask)
        if fixed and not conduct.dead:
            return self._send(ask, *fixed)
        decision = decide(conduct, self.seed, ask, self._memory)
        await self._wait(ask, decision)
        match decision.answer:
            case Answer.DEAD:
                return self._drop(ask, decision, request)
            case Answer.HANG:
                return await self._hang(ask, decision, request)
            case Answer.CUT_OFF:
                return await self._cut_off(ask, decision, request)
            case Answer.MOVED:
                return self._redirect(ask, decision, 301, f"http://www.{ask.host}{ask.target}")
            case Answer.LOGIN_REDIRECT:
                return self._redirect(ask, decision, 302, f"http://{ask.host}/login")
            case Answer.PAGE:
                document = self.web.document(ask.host, ask.target)
            case _:
                document = self.web.refusal(ask.host, ask.target, decision.answer)
        return self._send(ask, decision.answer.value, document, decision)

    async def _wait(self, ask: Ask, decision: Decision) -> None:
        try:
            await asyncio.sleep(decision.latency_s)
        except asyncio.CancelledError:
            self._note(ask, "client_gone", 0, 0, decision)
            raise

    def _fixed(self, ask: Ask) -> tuple[str, Document] | None:
        """Paths that are the same on every host."""
        match ask.target.partition("?")[0]:
            case "/robots.txt":
                return "robots", Document(200, "text/plain", self.profile.robots.text(ask.host).encode())
            case "/favicon.ico":
                return "favicon", Document(404, "text/plain", b"no icon")
            case "/login":
                return "login", LOGIN
        return None

    def _send(
        self, ask: Ask, outcome: str, document: Document, decision: Decision | None = None
    ) -> web.Response:
        self._note(ask, outcome, document.status, len(document.body), decision)
        headers = {"Content-Type": document.content_type}
        if document.location:
            headers["Location"] = document.location
        if decision and decision.retry_after_s is not None:
            headers["Retry-After"] = f"{max(1, round(decision.retry_after_s))}"
        return web.Response(status=document.status, body=document.body, headers=headers)

    def _redirect(self, ask: Ask, decision: Decision, status: int, location: str) -> web.Response:
        self._note(ask, decision.answer.value, status, 0, decision)
        return web.Response(status=status, headers={"Location": location})

    def _drop(self, ask: Ask, decision: Decision, request: web.BaseRequest) -> web.Response:
        self._note(ask, decision.answer.value, 0, 0, decision)
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _hang(self, ask: Ask, decision: Decision, request: web.BaseRequest) -> web.Response:
        # Noted first: the client that gives up must find its request in the log.
        self._note(ask, decision.answer.value, 0, 0, decision)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), decision.hang_s)
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _cut_off(self, ask: Ask, decision: Decision, request: web.BaseRequest) -> web.StreamResponse:
        document = self.web.document(ask.host, ask.target)
        half = document.body[: len(document.body) // 2]
        self._note(ask, decision.answer.value, document.status, len(half), decision)
        response = web.StreamResponse(
            status=document.status,
            headers={"Content-Type": document.content_type, "Content-Length": str(len(document.body))},
        )
        await response.prepare(request)
        await response.write(half)
        if request.transport:
            # close, not abort: the half has to arrive.
            request.transport.close()
        return response

    def _own(self, ask: Ask, request: web.BaseRequest) -> web.Response:
        """The lab's own pages, which are not logged; and hosts that are in no catalog."""
        if not _is_own(ask.host):
            text = f"The lab knows no host {ask.host!r}; those it knows are listed at http://{LAB_HOST}/\n"
            return self._send(ask, "unknown_host", Document(404, "text/plain; charset=utf-8", text.encode()))
        match request.path:
            case "/":
                return web.Response(text=_index(self), content_type="text/html")
            case "/__log":
                lines = "".join(map(self.log.line, self.log.entries()))
                return web.Response(text=lines, content_type="application/x-ndjson")
            case "/__truth":
                return self._truth(request)
        return web.Response(status=404, text="The lab's own pages are /, /__log and /__truth\n")

    def _truth(self, request: web.BaseRequest) -> web.Response:
        site = request.query.get("site", "")
        keywords = tuple(dict.fromkeys(re.split(r"[\s,&+]+", request.query.get("keywords", "").strip())))
        if site not in self.web.catalog.sites or not keywords[0]:
            return web.Response(status=400, text="right would be /__truth?keywords=WORD,WORD&site=SITE\n")
        return web.json_response(self.web.truth(site, keywords, whole="all" in request.query), dumps=_dumps)

    def _note(self, ask: Ask, outcome: str, status: int, sent: int, decision: Decision | None = None) -> None:
        tried = decision.tried if decision else 0
        self.log.add(Entry(ask.t, ask.client, ask.host, ask.target, status, outcome, sent, tried))


def _check_loopback(host: str) -> None:
    with suppress(ValueError):
        if ip_address(host) in _LOOPBACK:
            return
    raise InputError(f"the lab listens on loopback only: {host!r} is not in 127.0.0.0/8")


def _host_of(request: web.BaseRequest) -> str:
    return request.headers.get("Host", "").rsplit(":", 1)[0].lower().rstrip(".")


def _is_own(host: str) -> bool:
    if host in ("", LAB_HOST, "localhost"):
        return True
    with suppress(ValueError):
        return ip_address(host) in _LOOPBACK
    return False


def _refusing_patterns(catalog: Catalog) -> tuple[str, ...]:
    """What makes a page look refused or empty to the catalog's rules, whoever wrote it there."""
    results = [engine.results for engine in catalog.engines.values()]
    patterns = [pattern for rules in results for pattern in (*rules.empty, *rules.blocked)]
    patterns += [pattern for page_rules in catalog.rules.values() for pattern in page_rules.blocked]
    return tuple(dict.fromkeys(patterns))


def _index(lab: Lab) -> str:
    """The lab's own front page: what it serves."""
    catalog = lab.web.catalog
    engines = "".join(
        f"<li>{escape(f'{name}: {engine.url}')}</li>\n" for name, engine in catalog.engines.items()
    )
    sites = "".join(
        f"<li>{escape(f'{site} {entry.title} ({entry.engine}, {entry.rules})')}</li>\n"
        for site, entry in catalog.sites.items()
    )
    return (
        "<!DOCTYPE html>\n<html><head><title>lab</title></head><body>\n"
        f"<h1>Lab: {escape(f'catalog {catalog.name}, profile {lab.profile.name}, seed {lab.seed}')}</h1>\n"
        f"<h2>Engines</h2>\n<ul>{engines}</ul>\n<h2>Sites</h2>\n<ul>{sites}</ul>\n"
        "<p>The Host header says which one is meant.\n"
        "See also /__log and /__truth?keywords=WORD,WORD&amp;site=SITE</p></body></html>\n"
    )


def _dumps(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
