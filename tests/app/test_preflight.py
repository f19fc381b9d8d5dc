import json
import socket
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread

import pytest
from patience import PATIENCE_S

from app.cli.crawl.plan import searxng_notes
from app.run import preflight as module
from app.run.crawl_plan import crawl_plan
from app.run.preflight import Preflight, UnaskedSites, preflight
from app.run.setting_fields import Settings
from splitter.catalog.load import load_catalog
from splitter.errors import Message
from tasks.domain.reasons import Reason, because
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.queue.tasks import VirtualTask

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CATALOG = """
version: 1
name: small
rules:
  text: {main_text: true}
engines:
  own:
    kind: meta
    url: http://127.0.0.1:PORT/search
    params: {q: "{query}", format: json, pageno: "{page}"}
    paging_params: [pageno]
    private: true
    robots: {obey: false, reason: an instance of one's own}
    limits: {per_address_per_s: 1, total_per_s: 4}
    results: {format: json, hit: "results[]", link: url, title: title, empty: ["results="]}
  shop:
    kind: meta
    url: https://search.shop.example/q
    params: {q: "{query}", p: "{page}"}
    paging_params: [p]
    limits: {per_address_per_s: 0.5, total_per_s: 1}
    results: {hit: li, link: "a@href", title: a, empty: [nothing]}
  posts:
    kind: microblog
    url: https://posts.example/q
    params: {q: "{query}", p: "{page}"}
    paging_params: [p]
    inline: true
    sign_in: {cookies: {cookie: SUB}, hosts: [posts.example]}
    results: {hit: li, link: "a@href", title: a, empty: [nothing], post: {body: p}}
sites:
  a.example: {engine: own, rules: text}
  b.example: {engine: shop, rules: text, pages: 2}
  posts.example: {engine: posts, rules: text}
"""


@pytest.fixture
def catalog(tmp_path):
    def made(port=1):
        file = tmp_path / "sites.yaml"
        file.write_text(CATALOG.replace("PORT", str(port)), encoding="utf-8")
        return load_catalog(file)

    return made


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """What answers late on a slow machine has answered."""
    monkeypatch.setattr(module, "_NAMES_S", PATIENCE_S)
    monkeypatch.setattr(module, "_ONE_ANSWER_S", PATIENCE_S)
    monkeypatch.setattr(module, "LONGEST_S", 2 * PATIENCE_S)


class _Searxng(BaseHTTPRequestHandler):
    """What a SearXNG answers: `config`, and a search in which one engine is blocked."""

    config: object = {
        "version": "2026.1.1",
        "engines": [
            {"name": "baidu", "enabled": True, "categories": ["general"]},
            {"name": "bing", "enabled": False, "categories": ["general"]},
        ],
    }
    status = 200

    def do_GET(self):
        config = self.path.startswith("/config")
        found = {"results": [], "unresponsive_engines": [["baidu", "CAPTCHA"]]}
        self.send_response(200 if config else self.status)
        self.end_headers()
        self.wfile.write(json.dumps(self.config if config else found).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def searxng():
    served = []

    def serve(**attributes):
        handler = type("Handler", (_Searxng,), attributes)
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        Thread(target=server.serve_forever, daemon=True).start()
        served.append(server)
        return server.server_address[1]

    yield serve
    for server in served:
        server.shutdown()
        server.server_close()


@pytest.fixture
def names(monkeypatch):
    """Name servers that know these hosts, and of others what is said."""

    real = socket.getaddrinfo

    def know(*hosts, otherwise=socket.EAI_NONAME):
        def look_up(host, *args, **options):
            if host in hosts or host == "127.0.0.1":
                return real("127.0.0.1", *args, **options)
            raise socket.gaierror(otherwise, "said")

        monkeypatch.setattr(module.socket, "getaddrinfo", look_up)

    return know


def test_all_that_is_in_the_way(catalog, names):
    names("search.shop.example", "www.b.example", "a.example", "posts.example")
    found = preflight(Settings(), catalog())
    assert found.asked == ("b.example",)
    kinds = {site: [one.kind for one in those] for site, those in found.unasked.items()}
    assert kinds == {"a.example": [ObstacleKind.ENGINE], "posts.example": [ObstacleKind.SIGN_IN]}
    assert "REVIEWLOOP_LOGIN_POSTS_COOKIES" in str(found.unasked["posts.example"][0].mend)


@pytest.mark.parametrize("otherwise", [socket.EAI_NONAME, socket.EAI_AGAIN])
def test_no_network(catalog, names, otherwise):
    names(otherwise=otherwise)
    found = preflight(Settings(), catalog())
    assert found.asked == ()
    assert {those[0].kind for those in found.unasked.values()} == {ObstacleKind.NETWORK}


def test_an_engine_that_is_not_supported(catalog, names):
    names("search.shop.example", "www.b.example", "a.example", "posts.example")
    given = catalog()
    engine = given.engines[given.sites["b.example"].engine]
    engines = given.engines | {
        given.sites["b.example"].engine: engine.model_copy(update={"unsupported": "it is signed"})
    }
    found = preflight(Settings(), given.model_copy(update={"engines": engines}))
    assert found.asked == ()
    obstacle = found.unasked["b.example"][0]
    assert (obstacle.kind, str(obstacle.why).endswith("it is signed")) == (ObstacleKind.UNSUPPORTED, True)


def test_a_name_that_is_gone(catalog, names):
    names("search.shop.example", "a.example", "posts.example")
    found = preflight(Settings(), catalog())
    assert [(one.kind, str(one.why)) for one in found.unasked["b.example"]] == [
        (ObstacleKind.NAME, "b.example is no known name")
    ]


def test_a_name_server_that_never_answers_holds_nobody_up(catalog, monkeypatch):
    monkeypatch.setattr(module, "_NAMES_S", 0.05)
    monkeypatch.setattr(module, "_name_state", lambda _host: Event().wait())
    assert preflight(Settings(), catalog()).asked == ()


def test_a_searxng_whose_engine_is_blocked_can_be_asked_and_says_so(catalog, names, searxng):
    names("a.example")
    found = preflight(Settings(), catalog(searxng()))
    assert found.asked == ("a.example",)
    assert found.searxng["own"].engines == ("baidu",)
    notes = tuple(map(str, searxng_notes(found)))
    assert notes == (
        "own: SearXNG 2026.1.1 with baidu",
        "own: none of its engines answered a sample search",
        "own: baidu did not answer (CAPTCHA)",
    )


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"config": {"hello": 1}}, "is no SearXNG"),
        ({"status": 403}, "search.formats"),
        ({"status": 500}, "500"),
    ],
)
def test_a_searxng_that_is_none_or_refuses(catalog, names, searxng, attributes, said):
    names("a.example")
    [obstacle] = preflight(Settings(), catalog(searxng(**attributes))).unasked["a.example"]
    assert said in f"{obstacle.why}; {obstacle.mend}"


def test_a_proxy_looks_names_up_itself(catalog, names):
    names()
    found = preflight(Settings(proxy="http://127.0.0.1:1"), catalog())
    assert found.asked == ("b.example",)


def test_a_sign_in_that_is_given_is_no_obstacle(catalog, names, monkeypatch):
    names("posts.example")
    monkeypatch.setenv("REVIEWLOOP_LOGIN_POSTS_COOKIES", "SUB=1")
    assert preflight(Settings(), catalog()).asked == ("posts.example",)


def test_the_plan_counts_requests_and_their_time(catalog):
    wanted = VirtualTask(
        id=0, product_id=0, product="光明牛奶", keywords=("光明", "牛奶"), aliases=(), pages=None, priority=0
    )
    found = Preflight(asked=("a.example", "b.example", "posts.example"))
    plan = crawl_plan(catalog(), found, [wanted], addresses=1)
    assert {one.site: (one.searches, one.pages) for one in plan.asked} == {
        "a.example": (1, 10),
        "b.example": (2, 20),
        "posts.example": (1, 0),
    }
    assert plan.requests == 34
    # 20 pages at the default limit, one address: 1 a second.
    assert (plan.slowest_host, plan.seconds) == ("b.example", 20.0)


def test_what_can_be_asked_is_looked_up_again_after_a_while():
    now, looks = [0.0], []

    def look():
        looks.append(now[0])
        return Preflight(asked=())

    unasked = UnaskedSites(look, Preflight(asked=()), lambda: now[0])
    assert not unasked.due
    assert unasked.list_unasked() == {}
    now[0] = 61.0
    assert unasked.due
    unasked.list_unasked()
    unasked.list_unasked()
    assert looks == [61.0]


def test_sites_made_by_script_need_a_browser_here(monkeypatch, tmp_path):
    file = tmp_path / "sites.yaml"
    text = CATALOG.replace("PORT", "1").replace("b.example: {", "b.example: {render: browser, ")
    file.write_text(text, encoding="utf-8")
    catalog = load_catalog(file)
    lab = Settings(lab=("127.0.0.1", 1))
    monkeypatch.setattr(module, "missing", lambda given: ("", None))
    assert preflight(lab, catalog).asked == ("a.example", "b.example", "posts.example")
    monkeypatch.setattr(
        module, "missing", lambda given: (f"there is no {given or 'Chromium'}", Message("install one"))
    )
    found = preflight(lab, catalog)
    assert found.asked == ("a.example", "posts.example")
    assert found.unasked == {
        "b.example": (
            Obstacle(
                kind=ObstacleKind.BROWSER,
                because=because(Reason.BROWSER_NEEDED, lacks="there is no Chromium"),
                mend=Message("install one"),
            ),
        )
    }
    elsewhere = preflight(lab, catalog, browser=lambda _settings: None)
    assert "b.example" in elsewhere.asked, "a node on another machine has one"
    of_rules = load_catalog(file).model_copy(
        update={"rules": {"text": catalog.rules["text"].model_copy(update={"render": "browser"})}}
    )
    assert preflight(lab, of_rules).asked == (), "rules say it for every site that is read by them"
