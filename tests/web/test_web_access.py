"""Who gets in, who may change something, and what no page of another site can do."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import itsdangerous
import pytest
import requests
from dashboard import Serve, Served
from patience import PATIENCE_S
from sqlalchemy import select

from app.run.setting_fields import Settings
from app.run.settings import as_environment, load_settings
from app.web import server
from app.web.address import listening
from app.web.base.access import Access, Tokens, TooManyWrongTokens, VisitorRole, new_token, token_hash
from app.web.server import add_tokens
from splitter.errors import InputError
from tasks.store.sql.tables import subtasks

VIEWER, OPERATOR = "a-viewers-token", "an-operators-token"
TOKENS = {"web_viewer": token_hash(VIEWER), "web_operator": token_hash(OPERATOR)}


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the pauses that a server makes for wrong tokens; none takes time."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(server, "Access", partial(Access, pause=pause))
    return made


def _state(served: Served, number: int) -> str:
    with served.store.read() as tx:
        return str(
            tx.engine_connection.execute(select(subtasks.c.state).where(subtasks.c.id == number)).scalar_one()
        )


def test_a_name_that_is_not_this_servers_is_not_answered(sample: Served) -> None:
    assert sample.get("/", headers={"Host": "evil.example"}).status_code == 400
    assert sample.get("/").status_code == 200


def test_every_answer_forbids_what_is_not_from_here(sample: Served) -> None:
    for path in ("/", "/static/live.js", "/there-is-none", "/healthz"):
        policy = sample.get(path).headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'")
        assert "unsafe" not in policy
        assert "http" not in policy


OTHERS = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "https://127.0.0.1:1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
    {"Origin": "OWN", "Sec-Fetch-Site": "cross-site"},
]


@pytest.mark.parametrize("headers", OTHERS)
def test_a_change_from_another_sites_page_is_refused(served: Served, headers: dict[str, str]) -> None:
    sent = {name: value.replace("OWN", served.address.rstrip("/")) for name, value in headers.items()}
    for method, path, body in (
        ("POST", "failed", {"data": {"action": "retry", "subtask": "3"}}),
        ("POST", "products", {"data": {"draft": "x"}}),
        ("POST", "products/1/remove", {"data": {"sure": "yes"}}),
        ("POST", "nodes", {"data": {"node": "node1", "action": "drain"}}),
        ("POST", "sign-in", {"data": {"token": "x"}}),
        ("POST", "api/failed", {"json": {"action": "retry", "subtasks": [3]}}),
        ("PATCH", "api/products/1", {"json": {"priority": 1}}),
        ("DELETE", "api/products/1", {}),
    ):
        answer = served.session.request(
            method, served.address + path, headers=sent, timeout=PATIENCE_S, **body
        )
        assert answer.status_code == 403, path
    assert _state(served, 3) == "MANUAL"
    assert served.get("/api/audit").json() == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "OWN"},
        {"Origin": "OWN", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
)
def test_a_change_from_our_page_or_from_a_program_is_taken(served: Served, headers: dict[str, str]) -> None:
    sent = {name: value.replace("OWN", served.address.rstrip("/")) for name, value in headers.items()}
    form = {"action": "retry", "subtask": "3"}
    assert served.post("/failed", data=form, headers=sent).status_code == 200
    assert _state(served, 3) == "WAIT"


def test_a_page_of_another_site_may_be_linked_from(sample: Served) -> None:
    assert sample.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 200


def test_a_large_body_is_refused(sample: Served) -> None:
    assert sample.post("/failed", data=b"x" * 6_000_001).status_code == 413


def test_with_tokens_nobody_gets_in_without_one(serve: Serve) -> None:
    served = serve(**TOKENS)
    page = served.get("/failed?site=x", allow_redirects=False)
    assert (page.status_code, page.headers["Location"]) == (303, "/sign-in?next=%2Ffailed%3Fsite%3Dx")
    assert served.get("/api/queues").status_code == 401
    assert served.get("/metrics").status_code == 401
    wrong = served.get("/metrics", headers={"Authorization": "Bearer wrong"})
    assert (wrong.status_code, "no token of this dashboard" in wrong.text) == (401, True)
    assert served.get("/healthz").status_code == 200


def test_a_viewer_may_look_and_an_operator_may_act(serve: Serve) -> None:
    served = serve(**TOKENS)
    form = {"action": "retry", "subtask": "3"}
    assert served.post("/sign-in", data={"token": VIEWER}).status_code == 200
    assert "Try again" not in served.get("/failed").text
    assert (
        served.post(
            "/failed",
            data={
                **form,
            },
        ).status_code
        == 403
    )
    served.session.cookies.clear()
    signed_in = served.post("/sign-in", data={"token": OPERATOR, "name": "李雷"}, allow_redirects=False)
    assert "httponly" in signed_in.headers["Set-Cookie"]
    assert "samesite=strict" in signed_in.headers["Set-Cookie"]
    assert (
        served.post(
            "/failed",
            data={
                **form,
            },
        ).status_code
        == 200
    )
    assert "李雷" in served.get("/audit").text
    served.post("/sign-out", data={})
    assert served.get("/", allow_redirects=False).status_code == 303


def test_a_token_may_come_with_the_request(serve: Serve) -> None:
    served = serve(**TOKENS)
    assert served.get("/audit", headers={"Authorization": f"Bearer {VIEWER}"}).status_code == 200
    assert (
        served.get("/audit", headers={"Authorization": "Bearer wrong"}, allow_redirects=False).status_code
        == 303
    )


def test_signing_in_leads_to_no_other_server(serve: Serve) -> None:
    served = serve(**TOKENS)
    for elsewhere in ("//evil.example", "https://evil.example/", "/\\evil.example"):
        form = {"token": VIEWER, "next": elsewhere}
        assert served.post("/sign-in", data=form, allow_redirects=False).headers["Location"] == "/"


def _access(pause: Callable[[float], Awaitable[None]]) -> Access:
    return Access(Tokens(token_hash(VIEWER), token_hash(OPERATOR)), pause)


def test_a_wrong_token_waits_and_the_right_one_never_does() -> None:
    pauses = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    async def run() -> None:
        access = _access(pause)
        for n in range(1, 101):
            assert await access.sign_in("wrong", "", "192.0.2.1") is None
            assert len(pauses) == n
        assert await access.sign_in(OPERATOR, "", "192.0.2.1") is not None
        assert await access.visitor({}, f"Bearer {VIEWER}", "192.0.2.1") is not None
        assert len(pauses) == 100

    asyncio.run(run())


def test_wrong_tokens_that_wait_are_limited_for_an_address_and_in_all() -> None:
    async def run() -> None:
        released = asyncio.Event()

        async def pause(seconds: float) -> None:
            await released.wait()

        access = _access(pause)

        async def send_wrong(address: int, n: int) -> list[asyncio.Task[dict[str, str] | None]]:
            sent = [asyncio.create_task(access.sign_in("wrong", "", f"192.0.2.{address}")) for _ in range(n)]
            await asyncio.sleep(0)
            return sent

        first = await send_wrong(1, 7)
        assert [task.done() for task in first] == [False] * 5 + [True] * 2
        assert isinstance(first[5].exception(), TooManyWrongTokens)
        assert isinstance(first[6].exception(), TooManyWrongTokens)
        assert await access.sign_in(OPERATOR, "", "192.0.2.1") is not None
        others = [task for address in (2, 3, 4, 5) for task in await send_wrong(address, 5)]
        assert [task.done() for task in others] == [False] * 15 + [True] * 5
        assert all(task.exception() is not None for task in others[15:])
        assert await access.sign_in(OPERATOR, "", "192.0.2.5") is not None
        released.set()
        assert await asyncio.gather(*first[:5], *others[:15]) == [None] * 20
        assert await access.sign_in("wrong", "", "192.0.2.1") is None

    asyncio.run(run())


def test_a_wrong_token_is_slowed_in_the_form_and_in_the_header(serve: Serve, pauses: list[float]) -> None:
    served = serve(**TOKENS)
    assert served.post("/sign-in", data={"token": "wrong"}).status_code == 401
    assert served.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert pauses == [1.0, 1.0]


@pytest.mark.parametrize(
    ("trusted", "address"), [(("127.0.0.0/8", "10.0.0.0/8"), "203.0.113.5"), (("10.0.0.0/8",), "127.0.0.1")]
)
def test_only_a_trusted_proxy_may_name_the_client(
    serve: Serve, trusted: tuple[str, ...], address: str
) -> None:
    served = serve(**TOKENS, trusted_proxies=trusted)
    forwarded = {"X-Forwarded-For": "198.51.100.1, 203.0.113.5, 10.0.0.9"}
    served.post("/sign-in", data={"token": OPERATOR, "name": "lilei"}, headers=forwarded)
    served.post(
        "/failed",
        data={
            "action": "retry",
            "subtask": "3",
        },
    )
    assert f"lilei, {address}" in served.get("/audit").text


def test_trusted_proxies_are_a_setting_that_child_processes_get() -> None:
    settings = load_settings({"REVIEWLOOP_TRUSTED_PROXIES": "127.0.0.1, 10.0.0.0/8,2001:db8::/32"})
    assert {str(one) for one in settings.trusted_proxies} == {"127.0.0.1/32", "10.0.0.0/8", "2001:db8::/32"}
    assert load_settings(as_environment(settings)).trusted_proxies == settings.trusted_proxies
    for wrong in ("proxy.example", "10.0.0.1/8", "*"):
        with pytest.raises(InputError, match="REVIEWLOOP_TRUSTED_PROXIES="):
            load_settings({"REVIEWLOOP_TRUSTED_PROXIES": wrong})


def test_a_session_ends_by_itself(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    served = serve(**TOKENS)
    served.post("/sign-in", data={"token": VIEWER})
    assert served.get("/audit", allow_redirects=False).status_code == 200
    now = itsdangerous.TimestampSigner("").get_timestamp() + 13 * 3600
    monkeypatch.setattr(itsdangerous.TimestampSigner, "get_timestamp", lambda _: now)
    assert served.get("/audit", allow_redirects=False).status_code == 303


def test_a_session_that_nobody_signed_is_none(serve: Serve) -> None:
    served = serve(**TOKENS)
    served.post("/sign-in", data={"token": VIEWER})
    [cookie] = served.session.cookies
    data, _, signature = str(cookie.value).partition(".")
    forged = base64.b64encode(b'{"role": "operator", "who": "mallory"}').decode()
    assert data != forged
    for value in (f"{forged}.{signature}", "null", "", "x.y.z", forged):
        headers = {"Cookie": f"reviewloop_session={value}"}
        assert (
            requests.get(
                f"{served.address}audit",
                headers=headers,
                allow_redirects=False,
                timeout=PATIENCE_S,
                proxies={"http": ""},
            ).status_code
            == 303
        )


def test_an_address_that_others_reach_gets_tokens_that_last(tmp_path: Path) -> None:
    empty = Settings(keys_folder=str(tmp_path))
    own, shown = add_tokens(empty, "0.0.0.0")
    assert Tokens(own.web_viewer, own.web_operator).role_of(shown) is VisitorRole.OPERATOR
    assert own.web_viewer != own.web_operator
    assert add_tokens(empty, "0.0.0.0") == (own, shown), "at the next start, too"
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert add_tokens(empty, "127.0.0.1") == (empty, "")
    given = Settings(**TOKENS, keys_folder=str(tmp_path))
    assert add_tokens(given, "192.168.1.5") == (given, "")
    one = empty.replace(web_operator=token_hash(OPERATOR))
    assert add_tokens(one, "192.168.1.5") == (one.replace(web_viewer=own.web_viewer), "")


def test_a_taken_port_and_a_wrong_address_are_said() -> None:
    with listening("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 is taken"):
            listening("127.0.0.1", port)
    with pytest.raises(InputError, match="no address of this machine"):
        listening("203.0.113.7", 0)


def test_tokens_are_random_and_kept_hashed() -> None:
    assert new_token() != new_token()
    assert VIEWER not in token_hash(VIEWER)
    assert Tokens(token_hash(VIEWER)).role_of(VIEWER) is VisitorRole.VIEWER
    assert Tokens(token_hash(VIEWER)).role_of("") is None
    assert Tokens().role_of("") is None
