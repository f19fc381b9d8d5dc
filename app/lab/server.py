"""The lab's HTTP server: a request's Host names the site, its source address the client; every request is logged."""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from html import escape
from ipaddress import ip_address, ip_network
from pathlib import Path

from aiohttp import web
from multidict import CIMultiDict

from app.lab.answers import LOGIN, Answer, Document, redirect, refusal
from app.lab.behaviour import Decision, LabRequest, Memory, decide
from app.lab.corpus import DEFAULT_REVIEWS, Corpus, load_texts
from app.lab.log import LogEntry, RequestLog
from app.lab.login import SignInRequest
from app.lab.oauth import sign_in_server
from app.lab.pages import TEMPLATES
from app.lab.profile import Conducts, Profile, Role, TimeFrom, load_profile
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
    """A local web on one port.

    Attributes:
        host, port: where it listens; port 0 before it is started.
        web: what it serves when all is well.
        log: one entry a request.
    """

    def __init__(
        self,
        catalog: Catalog,
        profile: Profile | str = "calm",
        *,
        seed: int = 1,
        log_path: Path | None = None,
        reviews: Path | None = DEFAULT_REVIEWS,
    ) -> None:
        """Set up a lab.

        Args:
            catalog: engines and sites to serve.
            profile: how it behaves: a profile, the name of a built-in one, or a file.
            seed: of its pages and faults.
            log_path: file for its log; None: in memory only.
            reviews: folder of real review texts; texts are made where it is not there, or None is given.

        Raises:
            ProfileError: the profile is wrong.
        """
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.host, self.port = "", 0
        texts = load_texts(reviews, _refusing_patterns(catalog))
        self.web = LocalWeb(catalog, Corpus(catalog, seed, texts, self.profile.hits))
        self._started_s = time.monotonic()
        self._awaits_request = self.profile.time_from is TimeFrom.FIRST_REQUEST
        self.log = RequestLog(datetime.now(UTC), log_path)
        self._conducts = Conducts(self.profile)
        self._memory = Memory()
        self._sign_ins = {host: sign_in_server(rules, seed) for host, rules in self.profile.doors.items()}
        self._in_flight = 0
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen, and begin the lab's time.

        Args:
            host: an address in 127.0.0.0/8.
            port: 0: any that is free.

        Raises:
            InputError: not a loopback address, or the port is taken.
        """
        if not _is_loopback(host):
            raise InputError(f"the lab listens on loopback only: {host!r} is not in 127.0.0.0/8")
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

    async def stop(self) -> None:
        """End hanging requests, close every connection and the log. May be called twice."""
        self._stopping.set()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
        self.log.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        host = _host_of(request)
        if self._awaits_request and not _is_own(host):
            self._awaits_request = False
            self._started_s = time.monotonic()
            self.log.restart(datetime.now(UTC))
        t = time.monotonic() - self._started_s
        asked = LabRequest(request.remote or "", host, request.raw_path, t)
        role = self.web.role(asked.host)
        if role is None or (_is_own(asked.host) and request.path in _OWN_PATHS):
            return self._own(asked, request)
        if (reply := await self._sign_in_reply(asked, request)) is not None:
            return reply
        if request.method not in ("GET", "HEAD"):
            return self._send(asked, "bad_method", Document(405, "text/plain", b"GET or HEAD"))
        if self._in_flight >= MOST_IN_FLIGHT:
            return self._send(asked, "busy", refusal(Answer.UNAVAILABLE))
        self._in_flight += 1
        try:
            return await self._of_catalog(asked, role, request)
        finally:
            self._in_flight -= 1

    async def _sign_in_reply(self, asked: LabRequest, request: web.BaseRequest) -> web.Response | None:
        """The reply of a site that asks to sign in; None: the request may pass. Its robots.txt is for everybody."""
        server = self._sign_ins.get(asked.host.removeprefix("www."))
        if server is None or asked.target == "/robots.txt":
            return None
        form = await request.post()
        reply = server(
            SignInRequest(
                method=request.method,
                path=request.path,
                query=request.query,
                form={name: value for name, value in form.items() if isinstance(value, str)},
                cookies=request.cookies,
                authorization=request.headers.get("Authorization", ""),
                t=asked.t,
            )
        )
        return None if reply is None else self._send(asked, *reply)

    async def _of_catalog(
        self, asked: LabRequest, role: Role, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Answer for a host of the catalog. robots.txt and the like are spared faults, but not a dead host."""
        conduct = self._conducts.at(asked.client, asked.host, role, asked.t)
        fixed = self._fixed(asked)
        if fixed and not conduct.dead:
            return self._send(asked, *fixed)
        decision = decide(conduct, self.seed, asked, self._memory)
        try:
            await asyncio.sleep(decision.latency_s)
        except asyncio.CancelledError:
            self._note(asked, "client_gone", 0, 0, decision)
            raise
        match decision.answer:
            case Answer.DEAD | Answer.HANG:
                return await self._no_answer(asked, decision, request)
            case Answer.CUT_OFF:
                return await self._cut_off(asked, decision, request)
            case Answer.MOVED:
                document = redirect(f"http://www.{asked.host}{asked.target}", 301)
            case Answer.LOGIN_REDIRECT:
                document = redirect(f"http://{asked.host}/login")
            case Answer.PAGE:
                document = self.web.document(asked.host, asked.target)
            case _:
                document = self.web.refusal(asked.host, asked.target, decision.answer)
        return self._send(asked, decision.answer.value, document, decision)

    def _fixed(self, asked: LabRequest) -> tuple[str, Document] | None:
        """Paths that are the same on every host."""
        match asked.target.partition("?")[0]:
            case "/robots.txt":
                return "robots", Document(200, "text/plain", self.profile.robots.text(asked.host).encode())
            case "/favicon.ico":
                return "favicon", Document(404, "text/plain", b"no icon")
            case "/login":
                return "login", LOGIN
        return None

    def _send(
        self, asked: LabRequest, outcome: str, document: Document, decision: Decision | None = None
    ) -> web.Response:
        self._note(asked, outcome, document.status, len(document.body), decision)
        headers = CIMultiDict([("Content-Type", document.content_type), *document.headers])
        if document.location:
            headers["Location"] = document.location
        if decision and decision.retry_after_s is not None:
            headers["Retry-After"] = f"{max(1, round(decision.retry_after_s))}"
        return web.Response(status=document.status, body=document.body, headers=headers)

    async def _no_answer(
        self, asked: LabRequest, decision: Decision, request: web.BaseRequest
    ) -> web.Response:
        """Reset the connection: at once, or when a hang is over."""
        # Noted first: the client that gives up must find its request in the log.
        self._note(asked, decision.answer.value, 0, 0, decision)
        if decision.answer is Answer.HANG:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), decision.hang_s)
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _cut_off(
        self, asked: LabRequest, decision: Decision, request: web.BaseRequest
    ) -> web.StreamResponse:
        document = self.web.document(asked.host, asked.target)
        half = document.body[: len(document.body) // 2]
        self._note(asked, decision.answer.value, document.status, len(half), decision)
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

    def _own(self, asked: LabRequest, request: web.BaseRequest) -> web.Response:
        """The lab's own pages, which are not logged; and hosts that are in no catalog."""
        if not _is_own(asked.host):
            text = f"The lab knows no host {asked.host!r}; those it knows are listed at http://{LAB_HOST}/\n"
            return self._send(
                asked, "unknown_host", Document(404, "text/plain; charset=utf-8", text.encode())
            )
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
        return web.json_response(
            self.web.truth(site, keywords, whole="all" in request.query),
            dumps=partial(json.dumps, ensure_ascii=False),
        )

    def _note(
        self, asked: LabRequest, outcome: str, status: int, sent: int, decision: Decision | None = None
    ) -> None:
        self.log.add(
            LogEntry(
                t=asked.t,
                client=asked.client,
                host=asked.host,
                path=asked.target,
                status=status,
                outcome=outcome,
                bytes=sent,
                tried=decision.tried if decision else 0,
            )
        )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host) in _LOOPBACK
    except ValueError:
        return False


def _host_of(request: web.BaseRequest) -> str:
    return request.headers.get("Host", "").rsplit(":", 1)[0].lower().rstrip(".")


def _is_own(host: str) -> bool:
    return host in ("", LAB_HOST, "localhost") or _is_loopback(host)


def _refusing_patterns(catalog: Catalog) -> tuple[str, ...]:
    """Patterns by which the catalog's rules take a page for refused or empty."""
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
    what = escape(f"catalog {catalog.name}, profile {lab.profile.name}, seed {lab.seed}")
    return TEMPLATES["lab"]["index"].format(what=what, engines=engines, sites=sites)
