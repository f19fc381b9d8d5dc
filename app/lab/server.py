"""The HTTP server of the lab.

The Host header selects the site, the source address stands for the client. Each request is logged.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from html import escape
from pathlib import Path

from aiohttp import web
from multidict import CIMultiDict

from app.lab.answers import LabAnswer, LabResponse, redirect, refusal
from app.lab.faults import LabDecision, LabRequest, Memory, decide
from app.lab.log import LabLog, LogEntry
from app.lab.pages import DEFAULT_REVIEWS, TEMPLATES, Corpus, load_texts
from app.lab.profile import Conducts, HostRole, Profile, load_profile
from app.lab.sign_in import FormServer, SignInRequest, SignInServer
from app.lab.web import LocalWeb
from splitter.catalog.model import Catalog
from splitter.errors import InputError, system_reason

LAB_HOST = "lab.local"
"""Host name of the lab's own pages. Loopback addresses and localhost are equivalent."""

_LOOPBACK = re.compile(r"127(\.\d{1,3}){3}")
_OWN_PATHS = ("/", "/__log", "/__truth")
_BACKLOG = 4096
# The same on every host of the catalog, next to robots.txt
_FIXED = {
    "/favicon.ico": ("favicon", LabResponse(404, "text/plain", b"no icon")),
    "/login": ("login", refusal(LabAnswer.LOGIN_PAGE)),
}


class Lab:
    """A local web of simulated sites on one port.

    Attributes:
        host, port: Address of the server. The port is 0 before the start.
        web: The web without faults.
        log: One entry per request.
        sign_ins: Sign-in servers by host without www. At the start, these are the login walls of the profile.
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
            catalog: Engines and sites to serve.
            profile: A profile, the name of a built-in one, or a file.
            seed: Seed of pages and faults.
            log_path: File for the log. `None` keeps it in memory only.
            reviews: Folder of real review texts. If it is missing or `None`, artificial texts are composed.

        Raises:
            ProfileError: The profile is wrong.
        """
        self.profile = load_profile(profile) if isinstance(profile, str) else profile
        self.seed = seed
        self.host, self.port = "", 0
        texts = load_texts(reviews, _refusing_patterns(catalog))
        self.web = LocalWeb(catalog, Corpus(catalog, seed, texts, self.profile.hits))
        self.log = LabLog(datetime.now(UTC), log_path)
        self.sign_ins: dict[str, SignInServer] = {
            host: FormServer(wall, seed) for host, wall in self.profile.doors.items()
        }
        self._started_s = time.monotonic()
        self._awaits_request = self.profile.time_from == "first_request"
        self._conducts = Conducts(self.profile)
        self._memory = Memory()
        self._stopping = asyncio.Event()
        self._runner: web.ServerRunner | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen for requests, and begin to count the lab's time.

        Args:
            host: An address in 127.0.0.0/8.
            port: Zero selects any free port.

        Raises:
            InputError: The address is not loopback, or the port is taken.
        """
        if not _LOOPBACK.fullmatch(host):
            raise InputError("the lab listens on loopback only: {host!r} is not in 127.0.0.0/8", host=host)
        server = web.Server(self._answer, handler_cancellation=True, access_log=None)
        runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port, backlog=_BACKLOG).start()
        except OSError as error:
            await runner.cleanup()
            raise InputError(
                "the lab cannot listen on {host}:{port}: {reason}",
                host=host,
                port=port,
                reason=system_reason(error),
            ) from error
        self._runner = runner
        self.host, self.port = host, runner.addresses[0][1]
        self._started_s = time.monotonic()

    async def stop(self) -> None:
        """End hanging requests, and close all connections and the log. A second call does nothing."""
        self._stopping.set()
        if self._runner:
            await self._runner.cleanup()
            self._runner = None
        self.log.close()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        host = request.headers.get("Host", "").rsplit(":", 1)[0].lower().rstrip(".")
        if self._awaits_request and not _is_own(host):
            self._awaits_request = False
            self._started_s = time.monotonic()
            self.log.started = datetime.now(UTC)
        t = time.monotonic() - self._started_s
        asked = LabRequest(request.remote or "", host, request.raw_path, t)
        role = self.web.role(host)
        if role is None or (_is_own(host) and request.path in _OWN_PATHS):
            return self._own_page(asked, request)
        if (reply := await self._reply_to_sign_in(asked, request)) is not None:
            return reply
        if request.method not in ("GET", "HEAD"):
            return self._send(asked, "bad_method", LabResponse(405, "text/plain", b"GET or HEAD"))
        return await self._answer_for_host(asked, role, request)

    async def _reply_to_sign_in(self, asked: LabRequest, request: web.BaseRequest) -> web.Response | None:
        """Return the reply of the host's sign-in server, or `None` if the site should answer the request."""
        server = self.sign_ins.get(asked.host.removeprefix("www."))
        if server is None or asked.path == "/robots.txt":
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

    async def _answer_for_host(
        self, asked: LabRequest, role: HostRole, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Answer a request for a host of the catalog. Requests for robots.txt and other fixed paths get no faults.

        Only a dead host does not answer them.
        """
        conduct = self._conducts.find(asked.client, asked.host, role, asked.t)
        path = asked.path.partition("?")[0]
        if path == "/robots.txt" and not conduct.dead:
            robots = self.profile.robots.text(asked.host).encode()
            return self._send(asked, "robots", LabResponse(200, "text/plain", robots))
        if path in _FIXED and not conduct.dead:
            return self._send(asked, *_FIXED[path])
        decision = decide(conduct, self.seed, asked, self._memory)
        try:
            await asyncio.sleep(decision.latency_s)
        except asyncio.CancelledError:
            self._note(asked, "client_gone", 0, 0, decision)
            raise
        match decision.answer:
            case LabAnswer.DEAD | LabAnswer.HANG:
                return await self._send_nothing(asked, decision, request)
            case LabAnswer.CUT_OFF:
                return await self._send_half(asked, decision, request)
            case LabAnswer.MOVED:
                response = redirect(f"http://www.{asked.host}{asked.path}", 301)
            case LabAnswer.LOGIN_REDIRECT:
                response = redirect(f"http://{asked.host}/login")
            case LabAnswer.PAGE:
                response = self.web.document(asked.host, asked.path)
            case _:
                response = self.web.refusal(asked.host, asked.path, decision.answer)
        return self._send(asked, decision.answer.value, response, decision)

    def _send(
        self, asked: LabRequest, outcome: str, response: LabResponse, decision: LabDecision | None = None
    ) -> web.Response:
        self._note(asked, outcome, response.status, len(response.body), decision)
        headers = CIMultiDict([("Content-Type", response.content_type), *response.headers])
        if response.location:
            headers["Location"] = response.location
        if decision and decision.retry_after_s is not None:
            headers["Retry-After"] = f"{max(1, round(decision.retry_after_s))}"
        return web.Response(status=response.status, body=response.body, headers=headers)

    async def _send_nothing(
        self, asked: LabRequest, decision: LabDecision, request: web.BaseRequest
    ) -> web.Response:
        """Reset the connection without an answer: at once, or after a hang."""
        # Log first, so that a client that gives up finds its request in the log.
        self._note(asked, decision.answer.value, 0, 0, decision)
        if decision.answer is LabAnswer.HANG:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), decision.hang_s)
        if request.transport:
            request.transport.abort()
        return web.Response()

    async def _send_half(
        self, asked: LabRequest, decision: LabDecision, request: web.BaseRequest
    ) -> web.StreamResponse:
        """Send half of a page, then close the connection."""
        page = self.web.document(asked.host, asked.path)
        half = page.body[: len(page.body) // 2]
        self._note(asked, decision.answer.value, page.status, len(half), decision)
        headers = {"Content-Type": page.content_type, "Content-Length": str(len(page.body))}
        response = web.StreamResponse(status=page.status, headers=headers)
        await response.prepare(request)
        await response.write(half)
        if request.transport:
            # An abort could drop the half that must arrive.
            request.transport.close()
        return response

    def _own_page(self, asked: LabRequest, request: web.BaseRequest) -> web.Response:
        """Answer a request for a host that is not in the catalog, or for a page of the lab itself (not logged)."""
        if not _is_own(asked.host):
            text = f"The lab knows no host {asked.host!r}; those it knows are listed at http://{LAB_HOST}/\n"
            unknown = LabResponse(404, "text/plain; charset=utf-8", text.encode())
            return self._send(asked, "unknown_host", unknown)
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
        urls = self.web.truth(site, keywords, whole="all" in request.query)
        return web.json_response(urls, dumps=partial(json.dumps, ensure_ascii=False))

    def _note(
        self, asked: LabRequest, outcome: str, status: int, sent: int, decision: LabDecision | None = None
    ) -> None:
        tried = decision.tried if decision else 0
        self.log.add(LogEntry(**asdict(asked), status=status, outcome=outcome, bytes=sent, tried=tried))


def _is_own(host: str) -> bool:
    return host in ("", LAB_HOST, "localhost") or bool(_LOOPBACK.fullmatch(host))


def _refusing_patterns(catalog: Catalog) -> tuple[str, ...]:
    """Return the regular expressions in the catalog's rules that recognise refusals and empty answers."""
    results = [engine.results for engine in catalog.engines.values()]
    patterns = [pattern for rules in results for pattern in (*rules.empty, *rules.blocked)]
    patterns += [pattern for page_rules in catalog.rules.values() for pattern in page_rules.blocked]
    return tuple(dict.fromkeys(patterns))


def _index(lab: Lab) -> str:
    """Return the lab's front page. It lists the engines and sites."""
    catalog = lab.web.catalog
    hosts = [f"{name}: {engine.url}" for name, engine in catalog.engines.items()]
    hosts += [
        f"{site} {entry.title} ({entry.engine}, {entry.rules})" for site, entry in catalog.sites.items()
    ]
    items = "".join(f"<li>{escape(host)}</li>\n" for host in hosts)
    header = escape(f"catalog {catalog.name}, profile {lab.profile.name}, seed {lab.seed}")
    return TEMPLATES["lab"]["index"].format(header=header, items=items)
