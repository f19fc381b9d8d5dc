"""Pages made by script, in the Chromium of this machine: what they may ask for, how they end, what a hang costs."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S, patient_with_chromium, until

from tasks.domain.address import resolve_reference
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.pages import Response
from tasks.fetching import browser as module
from tasks.fetching import browser_jail, chromium, page_visit
from tasks.fetching.browser import Browser
from tasks.fetching.chromium import Chromium, NotRunning, find_chromium, missing
from tasks.fetching.permits import WaitTooLong
from tasks.fetching.script_cache import ScriptCache

URL = "http://shop.example/item/1"
ROOT = Path(__file__).parents[2]
needs_chromium = pytest.mark.skipif(any(missing()), reason=f"pages made by script: {missing()[0]}")


def response(body: str | bytes, url: str = URL, status: int = 200, **headers: str) -> Response:
    headers = {"content-type": "text/html; charset=utf-8"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    whole = body if isinstance(body, bytes) else body.encode()
    return Response(url=url, status=status, headers=headers, body=whole, elapsed_s=0.1)


class Site:
    """Answers what pages ask for, by address; what is not there is a 404."""

    def __init__(self, answers: Mapping[str, Any] | None = None) -> None:
        self.answers = answers or {}
        self.asked: list[str] = []
        self.headers: dict[str, Mapping[str, str]] = {}

    async def ask(self, url: str, headers: Mapping[str, str]) -> Response:
        self.asked.append(url)
        self.headers[url] = headers
        found = self.answers.get(url)
        if found is None:
            raise FetchError(ErrorClass.NOT_FOUND, "404", response=response("none", url, 404))
        if isinstance(found, Exception):
            raise found
        return found if isinstance(found, Response) else response(found, url, content_type="text/plain")


class Bench:
    """One browser, on one event loop, for all tests."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self.browser: Any = None

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._runner.run(work)

    def render(self, document: str | Response, site: Site | None = None) -> str:
        site = site or Site()
        page = response(document) if isinstance(document, str) else document
        made = self.run(
            self.browser.render(page, site.ask, lambda url: url.startswith("http://shop.example"))
        )
        assert isinstance(made, Response)
        return made.body.decode()

    def pids(self) -> tuple[int, int]:
        running = self.browser._chromium._running
        assert running is not None
        found = running.pids()
        assert found is not None
        return found


@pytest.fixture(scope="module", autouse=True)
def _patient() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patient_with_chromium(patch)
        yield


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    program = find_chromium()
    with asyncio.Runner() as runner:
        made = Bench(runner)

        async def start() -> None:
            assert program is not None
            made.browser = Browser(program)

        runner.run(start())
        yield made
        runner.run(made.browser.close())


@pytest.fixture
def calm(monkeypatch):
    """Between two steps of a page's scripts a slow machine may be quiet for longer."""
    monkeypatch.setattr(page_visit, "QUIET_S", 4 * page_visit.QUIET_S)


@pytest.mark.slow
@needs_chromium
@pytest.mark.usefixtures("calm")
def test_a_page_is_what_its_scripts_make_of_it(bench):
    site = Site(
        {
            "http://shop.example/app.js": "fetch('part?n=1', {headers: {'X-Part': 'yes'}}).then(a => a.text())"
            ".then(text => { document.querySelector('#app').textContent = text; })",
            "http://shop.example/item/part?n=1": "很好喝",
        }
    )
    document = response(
        "<title>牛奶</title><link rel=stylesheet href=/a.css><div id=app></div><script src=/app.js></script>".encode(
            "gbk"
        ),
        content_type="text/html; charset=gbk",
        etag='"1"',
        set_cookie="a=1; Path=/; Expires=Wed, 21 Oct 2099 07:28:00 GMT, b=2; Path=/",
    )
    made = bench.run(bench.browser.render(document, site.ask, lambda _: True))
    assert "<title>牛奶</title>" in made.body.decode()
    assert "很好喝" in made.body.decode()
    assert made.headers["content-type"] == "text/html; charset=utf-8"
    assert "etag" not in made.headers, "of the document, not of what was made of it"
    assert site.asked == ["http://shop.example/app.js", "http://shop.example/item/part?n=1"]
    part = site.headers["http://shop.example/item/part?n=1"]
    assert part["x-part"] == "yes"
    assert part["cookie"] == "a=1; b=2"
    assert "user-agent" not in part, "the node has its own"


ESCAPES = """
<link rel=dns-prefetch href="//TCP_PLACE"><link rel=preconnect href="http://TCP_PLACE"><link rel=prefetch href="http://TCP_PLACE/pf">
<link rel=icon href="http://TCP_PLACE/icon"><img src="http://TCP_PLACE/img"><iframe src="http://TCP_PLACE/frame"></iframe>
<video src="http://TCP_PLACE/video"></video><object data="http://TCP_PLACE/object"></object>
<style>@font-face { font-family: f; src: url(http://TCP_PLACE/font) }
p { font-family: f; background: url(http://TCP_PLACE/bg) }</style>
<p id=p>text</p><form id=f action="http://TCP_PLACE/form" method=post target=_blank></form>
<script>
const tries = [
  () => fetch("http://TCP_PLACE/post", {method: "POST", body: "x", mode: "no-cors"}).catch(() => 0),
  () => new WebSocket("ws://TCP_PLACE/ws"),
  () => new EventSource("http://TCP_PLACE/events"),
  () => navigator.sendBeacon("http://TCP_PLACE/beacon", "x"),
  () => window.open("http://TCP_PLACE/popup"),
  () => document.getElementById("f").submit(),
  () => navigator.serviceWorker.register("/sw.js").catch(() => 0),
  () => new WebTransport("https://TCP_PLACE/wt"),
  () => {
    const rtc = new RTCPeerConnection({iceServers: [{urls: "stun:UDP_PLACE"}, {urls: "turn:TCP_PLACE?transport=tcp",
      username: "u", credential: "c"}]});
    rtc.createDataChannel("d");
    rtc.createOffer().then(offer => rtc.setLocalDescription(offer));
  },
  () => fetch("http://TCP_PLACE/get").then(a => a.text()).then(t => { document.getElementById("p").textContent = t; }),
];
for (const one of tries) { try { one(); } catch (error) { console.log(error); } }
</script>
"""


@pytest.mark.slow
@needs_chromium
@pytest.mark.usefixtures("calm")
def test_the_browser_has_no_other_way_out(bench):
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        udp.bind(("127.0.0.1", 0))
        tcp.setblocking(False)
        udp.setblocking(False)
        places = {
            name: f"127.0.0.1:{one.getsockname()[1]}"
            for name, one in (("TCP_PLACE", tcp), ("UDP_PLACE", udp))
        }
        text = ESCAPES
        for name, place in places.items():
            text = text.replace(name, place)
        site = Site({f"http://{places['TCP_PLACE']}/get": "handed over"})
        made = bench.render(text, site)
        assert site.asked == [f"http://{places['TCP_PLACE']}/get"], (
            "all that a page can ask for goes through us"
        )
        assert "handed over" in made
        for one, what in ((tcp.accept, "connection"), (lambda: udp.recv(1), "packet")):
            with pytest.raises(BlockingIOError):
                pytest.fail(f"there was a {what}: {one()}")


def test_what_is_closed_off_gets_no_socket(tmp_path):
    if not browser_jail.is_supported():
        pytest.skip("Linux on x86_64 and aarch64 only")
    tries = (
        "import socket\n"
        "for family in (socket.AF_INET, socket.AF_INET6, socket.AF_PACKET, socket.AF_VSOCK, socket.AF_UNIX):\n"
        "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):\n"
        "        try:\n            socket.socket(family, kind)\n            print(family.name)\n"
        "        except PermissionError:\n            pass\n"
    )
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {tries!r}], check=True)"
    said = subprocess.run(
        [
            sys.executable,
            "-I",
            "-S",
            browser_jail.__file__,
            tmp_path / "pid",
            "512",
            sys.executable,
            "-c",
            child,
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert set(said.stdout.split()) == {"AF_UNIX"}, "nor does a child of it"
    assert (tmp_path / "pid").read_text().split()[1] == str(os.getpid())


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    "script", ["while (true);", "addEventListener('pagehide', () => { while (true); }); while (true) alert(1);"]
)  # fmt: skip
def test_a_page_that_hangs_is_ended_with_its_class(bench, monkeypatch, script):
    monkeypatch.setattr(module, "PATIENCE_S", 1.0)
    monkeypatch.setattr(module, "CLOSE_S", 1.0)
    with pytest.raises(FetchError) as ended:
        bench.render(f"<p>text</p><script>{script}</script>")
    assert ended.value.error is ErrorClass.UNREADABLE
    monkeypatch.undo()
    assert "after it" in bench.render("<p>after it</p>")


@pytest.mark.slow
@needs_chromium
def test_a_page_that_never_stops_asking_is_read_as_it_is_then(bench, monkeypatch):
    monkeypatch.setattr(page_visit, "MOST_REQUESTS", 5)
    site = Site()
    made = bench.render(
        "<p>there</p><script>let n = 0; setInterval(() => fetch('/' + n++).catch(() => 0), 5)</script>", site
    )
    assert "there" in made
    assert len(site.asked) == 5


@pytest.mark.slow
@needs_chromium
def test_what_a_page_takes_from_its_own_host_decides_about_it(bench):
    page = "<p>there</p><script>fetch('URL').catch(() => 0)</script>"
    own, other = "http://shop.example/api", "http://count.example/api"
    limited = FetchError(ErrorClass.RATE_LIMITED, "429", retry_after_s=7)
    with pytest.raises(FetchError) as refused:
        bench.render(page.replace("URL", own), Site({own: limited}))
    assert refused.value is limited
    with pytest.raises(WaitTooLong):
        bench.render(page.replace("URL", own), Site({own: WaitTooLong("shop.example", 60)}))
    for error in (limited, WaitTooLong("count.example", 60)):
        assert "there" in bench.render(page.replace("URL", other), Site({other: error}))
    refused_there = FetchError(ErrorClass.ROBOTS, "robots.txt refuses it")
    assert "there" in bench.render(page.replace("URL", own), Site({own: refused_there}))


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize(
    ("encoding", "query", "written"),
    [
        ("gbk", "光明", "%B9%E2%C3%F7"),
        ("gbk", "光🥛", "%B9%E2%26%23129371%3B"),
        ("big5", "光明", "%A5%FA%A9%FA"),
        ("shift_jis", "ソニー", "%83\\%83j%81["),
        ("euc-kr", "우유", "%BF%EC%C0%AF"),
        ("utf-16", "光明", "%E5%85%89%E6%98%8E"),
        ("windows-1251", "кефир光", "%EA%E5%F4%E8%F0%26%2320809%3B"),
    ],
)
def test_links_of_a_page_are_those_that_chromium_asks(bench, encoding, query, written):
    document = f"<base href='/deep/'><p><a href='光?kw={query}&amp;n=2#光'>next</a></p>"
    kinds = f"text/html; charset={encoding}"
    page = response(document.encode(encoding, "xmlcharrefreplace"), content_type=kinds)
    expected = f"http://shop.example/deep/%E5%85%89?kw={written}&amp;n=2"
    assert expected in bench.render(page)
    reference = resolve_reference("http://shop.example/deep/", f"光?kw={query}&n=2", encoding)
    assert reference == expected.replace("&amp;", "&")


@pytest.mark.slow
@needs_chromium
def test_a_page_that_its_scripts_make_too_large_is_not_read(bench, monkeypatch):
    monkeypatch.setattr(page_visit, "MOST_CHARACTERS", 10_000)
    with pytest.raises(FetchError) as refused:
        bench.render(
            "<script>Object.defineProperty(Element.prototype, 'outerHTML', {get: () => 'small'});"
            "document.documentElement.append('x'.repeat(20000))</script>"
        )
    assert refused.value.error is ErrorClass.TOO_LARGE


@pytest.mark.slow
@needs_chromium
@pytest.mark.usefixtures("calm")
def test_chromium_that_was_killed_is_started_again_for_the_same_page(bench):
    bench.render("<p>first</p>")
    before, _ = bench.pids()

    async def killed_meanwhile() -> str:
        asked = asyncio.Event()
        going = asyncio.Event()

        async def ask(url: str, _headers: Mapping[str, str]) -> Response:
            asked.set()
            await going.wait()
            return response("made", url)

        page = response("<script>fetch('/x').then(a => a.text()).then(t => document.title = t)</script>")
        rendering = asyncio.ensure_future(bench.browser.render(page, ask, lambda _: True))
        await asyncio.wait_for(asked.wait(), PATIENCE_S)
        os.kill(before, signal.SIGKILL)
        going.set()
        return (await rendering).body.decode()

    assert "<title>made</title>" in bench.run(killed_meanwhile())
    assert bench.pids()[0] != before


@pytest.mark.slow
@needs_chromium
def test_a_chromium_that_is_frozen_or_has_had_its_pages_is_replaced(bench, monkeypatch):
    bench.render("<p>first</p>")
    before, _ = bench.pids()
    monkeypatch.setattr(module, "PATIENCE_S", 0.5)
    monkeypatch.setattr(module, "CLOSE_S", 0.5)
    os.killpg(before, signal.SIGSTOP)
    with pytest.raises((FetchError, WaitTooLong)):
        bench.render("<p>never</p>")
    monkeypatch.undo()
    until(lambda: not _lives(before))
    bench.browser._chromium._not_before_s = 0.0
    assert "again" in bench.render("<p>again</p>")
    before, _ = bench.pids()
    monkeypatch.setattr(chromium, "MOST_PAGES", 1)
    bench.render("<p>one more</p>")
    assert bench.pids()[0] != before, "another after so many pages"
    until(lambda: not _lives(before))


_NODE = """
import asyncio, sys
from pathlib import Path
from tasks.domain.pages import Response
from tasks.fetching import browser as module, chromium
from tasks.fetching.browser import Browser

async def ask(url, headers):
    print(browser._chromium._running.pids()[0], flush=True)
    await asyncio.sleep(600)

async def main():
    global browser
    module.PATIENCE_S = module.LONGEST_S = chromium.START_S = 600
    browser = Browser(Path(sys.argv[1]))
    page = Response(url="http://a.cn/", status=200, headers={}, body=b"<script src=x></script>", elapsed_s=0)
    await browser.render(page, ask, lambda _: True)

asyncio.run(main())
"""


@pytest.mark.slow
@needs_chromium
def test_chromium_ends_with_its_node_even_when_that_is_killed():
    node = subprocess.Popen(
        [sys.executable, "-c", _NODE, str(find_chromium())], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert node.stdout is not None
    with node.stdout:
        pid = int(node.stdout.readline())
        assert _lives(pid)
        node.kill()
        node.wait()
        until(lambda: not _lives(pid))


def _lives(pid: int) -> bool:
    """Whether a process is there and has not ended: one that nobody has waited for yet has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


@pytest.mark.slow
@needs_chromium
def test_a_chromium_that_does_not_start_is_tried_again_after_a_while():
    now_s = 0.0
    keeper = Chromium(Path("/bin/false"), lambda: now_s)
    with pytest.raises(NotRunning, match="/bin/false does not start") as not_now:
        asyncio.run(keeper.enter())
    assert not_now.value.wait_s == 1.0


def test_a_chromium_that_dies_again_and_again_is_started_ever_more_seldom():
    now_s = 100.0
    keeper = Chromium(Path("/bin/false"), lambda: now_s)
    waits = []
    for _ in range(9):
        keeper._note_death()
        waits.append(keeper._not_before_s - now_s)
        now_s = keeper._not_before_s
    assert waits == [0, 1, 2, 4, 8, 16, 32, 60, 60]
    now_s -= 10.0
    with pytest.raises(NotRunning, match="9 times in a row") as not_now:
        asyncio.run(keeper.enter())
    assert not_now.value.wait_s == 10.0


def test_what_is_missing_is_said_with_what_mends_it(monkeypatch, tmp_path):
    monkeypatch.setattr(chromium, "find_spec", lambda _name: None)
    assert tuple(map(str, missing())) == ("Playwright is not installed", "pip install 'reviewloop[browser]'")
    monkeypatch.setattr(chromium, "find_spec", lambda _name: object())
    assert missing("/no/such/chromium")[0] == "REVIEWLOOP_CHROMIUM names no program"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert missing()[0] == "there is no Chromium on PATH"
    program = tmp_path / "google-chrome"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    assert missing() == ("", None)
    assert find_chromium() == program


def test_scripts_are_kept_as_long_as_their_hosts_allow(monkeypatch):
    now_s = 0.0
    cache = ScriptCache(lambda: now_s)
    script = response("x" * 10, content_type="text/javascript", cache_control="public, max-age=60")
    cache.keep("a", script)
    assert cache.get("a") is script
    now_s = 60.0
    assert cache.get("a") is None
    for headers in (
        {"cache_control": "private, max-age=60"},
        {"cache_control": "no-store"},
        {"cache_control": "max-age=60", "vary": "Cookie"},
        {"cache_control": "max-age=60", "set_cookie": "a=1"},
        {},
    ):
        cache.keep("b", response("x", **headers))
        assert cache.get("b") is None
    monkeypatch.setattr("tasks.fetching.script_cache.MOST_BYTES", 25)
    for name in "cdcef":
        cache.keep(name, script)
    assert [name for name in "cdef" if cache.get(name)] == ["e", "f"]
