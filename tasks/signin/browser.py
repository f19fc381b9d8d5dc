"""Pages, redirects and forms, as far as signing in needs a browser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from http.cookiejar import CookieJar
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlencode, urlsplit

import requests
from selectolax.lexbor import LexborHTMLParser, LexborNode
from splitter.errors import Message

from tasks.domain.address import resolve_reference, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.fetching.guard import SessionSettings
from tasks.fetching.guarded_session import GuardedAdapter, cause_of, guard_session
from tasks.reading.decode import decode
from tasks.reading.markup import check_markup, collapse
from tasks.signin.errors import SignInBroken

_MOST_REDIRECTS = 10
_NOT_SENT = ("submit", "image", "button", "reset", "file")
_AnySession = TypeVar("_AnySession", bound=requests.Session)


@dataclass(frozen=True, slots=True)
class Form:
    """A form as its page shows it.

    Attributes:
        action: address it is sent to.
        method: "get" or "post".
        encoding: of the page, and of the values sent.
        fields: names and values that a browser would send, except buttons.
        button: name and value of its first named button.
    """

    action: str
    method: str
    encoding: str
    fields: tuple[tuple[str, str], ...] = field(repr=False)
    button: tuple[str, str] | None

    def fill(self, values: Mapping[str, str], button: tuple[str, str] | None = None) -> str:
        """The request of a form with these values in their fields and a button pressed (default: the first).

        Raises:
            SignInBroken: it has no field of such a name.
        """
        names = [name for name, _ in self.fields]
        for name in values:
            if name not in names:
                raise SignInBroken(
                    "the form for {action} has no field {name!r}; it has {names}",
                    action=self.action.partition("?")[0],
                    name=name,
                    names=", ".join(names),
                )
        sent = [(name, values.get(name, value)) for name, value in self.fields]
        pressed = button or self.button
        return urlencode(
            [*sent, *([pressed] if pressed else [])], encoding=self.encoding, errors="xmlcharrefreplace"
        )


@dataclass(frozen=True, slots=True)
class VisitedPage:
    """A page the session went to.

    Attributes:
        url: after redirects.
        text: as sent, decoded; empty if a redirect led to its address and it was not requested.
    """

    url: str
    status: int
    text: str = field(repr=False)
    encoding: str

    def form(self, css: str) -> Form:
        """The first form that a selector matches. Raises SignInBroken if none does."""
        check_markup(self.text)
        node = LexborHTMLParser(self.text).css_first(css)
        if node is None or node.tag != "form":
            raise SignInBroken(
                "{url} (status {status}) shows no form {css!r}; mend the rule",
                url=_bare(self.url),
                status=self.status,
                css=css,
            )
        given = node.attributes
        buttons = [each for each in map(_button, node.css("button, input")) if each]
        return Form(
            resolve_reference(self.url, given.get("action") or self.url, self.encoding),
            "post" if (given.get("method") or "").lower() == "post" else "get",
            self.encoding,
            tuple(_entries(node)),
            buttons[0] if buttons else None,
        )

    def shown(self) -> str:
        """Return its text as a reader sees it, title included."""
        check_markup(self.text)
        tree = LexborHTMLParser(self.text)
        tree.strip_tags(["script", "style", "template"])
        return collapse(tree.root.text(separator=" ")) if tree.root is not None else ""


class Session:
    """The requests of one sign-in to a site; use it as a context manager, in one thread.

    Args:
        settings: how to reach the web.
        hosts: may get the filled-in values, as a form's own host may.
        now: aware; when the sign-in began.

    Attributes:
        now: see there.
    """

    def __init__(self, settings: SessionSettings, hosts: tuple[str, ...], now: datetime) -> None:
        self.now = now
        self._user_agent = settings.user_agent
        self._hosts = hosts
        self._adapter = GuardedAdapter(settings)
        self._http = self.over(requests.Session())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._adapter.close()

    @property
    def jar(self) -> CookieJar:
        """Cookies so far."""
        return self._adapter.jar

    def over(self, session: _AnySession) -> _AnySession:
        """A session of requests (or requests-oauthlib) with the connections, limits and cookies of this one."""
        return guard_session(session, self._adapter, self._user_agent)

    def get(self, url: str, stop_at: str = "") -> VisitedPage:
        """Go to an address, through its redirects.

        Args:
            stop_at: an address (without query) that is not requested when a redirect leads there.

        Raises:
            SignInBroken: there is no page.
        """
        with sign_in_errors(url):
            return self._go("GET", sendable(url), None, "", stop_at)

    def submit(self, page: VisitedPage, form: Form, body: str, stop_at: str = "") -> VisitedPage:
        """Send a form of a page; `stop_at` as in `get`.

        Raises:
            SignInBroken: there is no page, or the form leads to a host that may not have what is filled in.
        """
        source, target = urlsplit(page.url), urlsplit(form.action)
        if target.hostname != source.hostname and target.hostname not in self._hosts:
            raise SignInBroken(
                "the form of {url} leads to {hostname}; add it to hosts if right",
                url=_bare(page.url),
                hostname=target.hostname,
            )
        if source.scheme == "https" and target.scheme != "https":
            raise SignInBroken(
                "the form of {url} leads from https to http; nothing was sent", url=_bare(page.url)
            )
        with sign_in_errors(form.action):
            if form.method == "get":
                url = f"{form.action.partition('?')[0]}?{body}"
                return self._go("GET", url, None, page.url, stop_at)
            return self._go("POST", form.action, body, page.url, stop_at)

    def _go(self, method: str, url: str, body: str | None, referer: str, stop_at: str) -> VisitedPage:
        for _ in range(_MOST_REDIRECTS + 1):
            headers = {"Referer": referer} if referer else {}
            if body is not None:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
            response = self._http.request(method, url, data=body, headers=headers, allow_redirects=False)
            location = response.headers.get("location")
            if not location or not response.is_redirect:
                lowered = {name.lower(): value for name, value in response.headers.items()}
                return VisitedPage(url, response.status_code, *decode(response.content, lowered)[:2])
            after = resolve_reference(url, location)
            if stop_at and after.partition("?")[0] == stop_at.partition("?")[0]:
                return VisitedPage(after, response.status_code, "", "utf-8")
            if body is not None and response.status_code in (307, 308):
                raise SignInBroken(
                    "{url} sends the form on to {after}; name that page instead",
                    url=_bare(url),
                    after=_bare(after),
                )
            method, body, url = "GET", None, after
        raise FetchError(ErrorClass.REDIRECTS, Message("more than {most} redirects", most=_MOST_REDIRECTS))


@contextmanager
def sign_in_errors(url: str) -> Iterator[None]:
    """Turn errors of requests to an address into a SignInBroken that repeats no query and no body."""
    try:
        yield
    except FetchError as error:
        raise SignInBroken(
            "{url}: {error}: {detail}",
            url=_bare(url),
            error=error.error,
            detail=error.detail.partition("?")[0],
        ) from None
    except (requests.RequestException, OSError) as error:
        raise SignInBroken("{url}: {error}", url=_bare(url), error=Message(cause_of(error))) from None


def _bare(url: str) -> str:
    return url.partition("?")[0]


def _entries(form: LexborNode) -> Iterator[tuple[str, str]]:
    """Names and values that a browser would send, buttons left out (HTML, 4.10.21.4)."""
    for node in form.css("input, select, textarea"):
        given = node.attributes
        name = given.get("name")
        kind = (given.get("type") or "").lower()
        if not name or "disabled" in given or kind in _NOT_SENT:
            continue
        if node.tag == "input":
            if kind not in ("checkbox", "radio"):
                yield name, given.get("value") or ""
            elif "checked" in given:
                yield name, given.get("value") or "on"
        elif node.tag == "textarea":
            yield name, node.text()
        else:
            chosen = node.css_first("option[selected]") or node.css_first("option")
            if chosen is not None:
                yield name, chosen.attributes.get("value") or collapse(chosen.text())


def _button(node: LexborNode) -> tuple[str, str] | None:
    given = node.attributes
    default = "submit" if node.tag == "button" else "text"
    name = given.get("name")
    if not name or (given.get("type") or default).lower() != "submit":
        return None
    return name, given.get("value") or ""
