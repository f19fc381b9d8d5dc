import json
import re
import socket
import socketserver
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread

import pytest
from redis.exceptions import BusyLoadingError, ConnectionError, InvalidResponse, ResponseError

from app.cli.inspect import doctor as doctor_command
from app.cli.inspect.doctor import view_check
from app.run import doctor
from app.run import preflight as preflight_module
from app.run.doctor import CheckState, examine
from app.run.open_store import explain_redis, try_redis
from app.run.preflight import Preflight, SearxngAnswer
from app.run.setting_fields import Settings
from app.run.version import MIGRATIONS
from splitter.catalog.entries import NO_BROWSER
from splitter.catalog.load import builtin_text
from splitter.errors import Message
from tasks.domain.reasons import Reason, because
from tasks.jobs.obstacles import Obstacle, ObstacleKind
from tasks.store.queue import nodes
from tasks.store.queue.nodes import Node
from tasks.store.sql import schema
from tasks.store.sql.database import Store

NOW = datetime(2026, 6, 1, tzinfo=UTC)
DOWN = Obstacle(kind=ObstacleKind.ENGINE, because=because(Reason.OTHER, text="it is down"), mend="start it")
UNSUPPORTED = Obstacle(kind=ObstacleKind.UNSUPPORTED, because=because(Reason.OTHER, text="it is signed"))
SIGN_IN = Obstacle(
    kind=ObstacleKind.SIGN_IN, because=because(Reason.OTHER, text="it asks to sign in"), mend="set a variable"
)


def texts(check):
    view = view_check(check)
    return str(view.said), str(view.mend)


@pytest.fixture
def checks(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "_REDIS_S", 0.1)

    def look(found=None, now=NOW, **settings):
        monkeypatch.setattr(
            doctor, "preflight", lambda *_, **_more: found or Preflight(asked=("cca.org.cn",))
        )
        given = {"database_url": f"sqlite:///{tmp_path / 'r.db'}", "sites": "paper-2014", "contact": "me"}
        return {check.what: check for check in examine(Settings(**(given | settings)), lambda: now)}

    return look


def test_nothing_is_missing(checks):
    one = checks(found=Preflight(asked=("cca.org.cn",)))
    assert {what for what, check in one.items() if check.state is CheckState.FAILED} == set()
    assert one["database"].reason == "new_database"


def test_the_mail_server_is_told_without_its_password(checks):
    assert "mail" not in checks()
    one = checks(smtp_url="smtps://reports%40example.cn:geheim@mail.example.cn")["mail"]
    told = "mail.example.cn:465 (tls, user reports@example.cn), from reports@example.cn"
    assert (one.state, texts(one)) == (CheckState.OK, (told, ""))
    assert "geheim" not in repr(one)
    one = checks(smtp_url="smtps://reports:geheim@mail.example.cn")["mail"]
    assert (one.state, "REVIEWLOOP_MAIL_FROM" in texts(one)[0]) == (CheckState.FAILED, True)


@pytest.mark.parametrize(("hits", "state"), [(3, CheckState.WARNING), (0, CheckState.FAILED)])
def test_which_engines_of_a_searxng_answer(checks, hits, state):
    silent = {"baidu": "CAPTCHA"}
    answer = SearxngAnswer(url="http://x/search", engines=("baidu", "bing"), silent=silent, hits=hits)
    told = checks(Preflight(asked=("a.cn",), searxng={"searxng": answer}))["searxng"]
    assert told.state is state
    assert "baidu (CAPTCHA)" in texts(told)[0]


def test_a_browser_is_missed_only_where_pages_are_made_by_script(checks, monkeypatch, tmp_path):
    assert "browser" not in checks()
    sites = tmp_path / "sites.yaml"
    text = builtin_text("paper-2014")
    sites.write_text(text.replace("cca.org.cn: {", "cca.org.cn: {render: browser, "), "utf-8")
    monkeypatch.setattr(
        preflight_module, "missing", lambda _given: ("there is no Chromium", Message("install one"))
    )
    told = checks(sites=str(sites))["browser"]
    assert told.state is CheckState.WARNING
    assert told.parameters["rendered"] == 1
    assert texts(told)[0].endswith("can't be asked: its pages need a browser: there is no Chromium")
    assert texts(told)[1] == "install one"
    monkeypatch.setattr(preflight_module, "missing", lambda _given: ("", None))
    assert checks(sites=str(sites))["browser"].state is CheckState.OK


def test_of_a_cluster_the_live_nodes_are_asked_for_a_browser(checks, monkeypatch, tmp_path):
    """What this machine lacks does not matter where others crawl."""
    sites = tmp_path / "sites.yaml"
    text = builtin_text("paper-2014")
    sites.write_text(text.replace("cca.org.cn: {", "cca.org.cn: {render: browser, "), "utf-8")
    monkeypatch.setattr(
        preflight_module, "missing", lambda _given: ("there is no Chromium", Message("install one"))
    )
    cluster = {"sites": str(sites), "redis_url": "redis://127.0.0.1:1"}
    store = Store.open(f"sqlite:///{tmp_path / 'r.db'}")
    schema.upgrade(store, MIGRATIONS)
    with store.begin() as conn:
        assert "there is no Chromium" in texts(checks(**cluster)["browser"])[0], "no node has told yet"
        nodes.register(conn, Node("a", frozenset(), 4), {"cca.org.cn": NO_BROWSER})
    told = checks(**cluster)["browser"]
    assert (told.state, "no node has one" in texts(told)[0]) == (CheckState.WARNING, True)
    with store.begin() as conn:
        nodes.register(conn, Node("b", frozenset(), 4), {"cca.org.cn": "1a"})
    told = checks(**cluster)["browser"]
    assert (told.state, texts(told)[0].startswith("1 of 2 live nodes have one")) == (CheckState.OK, True)
    store.close()


def test_a_clock_that_lost_its_battery(checks):
    assert checks(now=datetime(1970, 1, 2, tzinfo=UTC))["clock"].state is CheckState.FAILED


def test_a_clock_that_differs_from_the_databases(checks, postgres_store):
    url = postgres_store.engine.url.render_as_string(hide_password=False)
    told = checks(now=datetime.now(UTC) + timedelta(seconds=90), database_url=url)
    assert told["clock"].reason == "clock_skew"
    assert told["database"].state is CheckState.OK


def test_a_file_that_is_no_database(checks, tmp_path):
    (tmp_path / "r.db").write_text("this is no database, whatever its name says")
    assert checks()["database"].state is CheckState.FAILED


def test_a_folder_that_is_not_there(checks, tmp_path):
    assert checks(database_url=f"sqlite:///{tmp_path / 'no' / 'r.db'}")["disk"].state is CheckState.FAILED


def test_servers_that_do_not_answer(checks):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        told = checks(
            redis_url=f"redis://127.0.0.1:{port}/0",
            database_url=f"postgresql+psycopg2://nobody@127.0.0.1:{port}/none",
            lab=("127.0.0.1", port),
        )
    assert {told[what].state for what in ("Redis", "database", "lab")} == {CheckState.FAILED}
    assert texts(told["lab"])[1] == f"reviewloop lab --port {port}"


class RefusingRedis(socketserver.BaseRequestHandler):
    """A Redis that answers every command with the same error."""

    error = b"WRONGPASS invalid username-password pair or user is disabled."

    def handle(self):
        while self.request.recv(4096):
            self.request.sendall(b"-" + self.error + b"\r\n")


@pytest.mark.parametrize(
    "error", [RefusingRedis.error, b"NOAUTH Authentication required.", b"NOPERM this user has no permissions"]
)
def test_a_redis_that_refuses_the_password_is_not_told_to_be_started(checks, monkeypatch, error):
    monkeypatch.setattr(RefusingRedis, "error", error)
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), RefusingRedis) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        told = checks(redis_url=f"redis://user:geheim@127.0.0.1:{server.server_address[1]}/0")["Redis"]
        server.shutdown()
    assert (told.state, "REVIEWLOOP_REDIS_URL" in texts(told)[0]) == (CheckState.FAILED, True)
    assert "start it" not in texts(told)[0]
    assert "geheim" not in "".join(texts(told))


def test_a_redis_that_does_not_answer_now_is_named():
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        for url in (
            f"redis://127.0.0.1:{nobody.getsockname()[1]}/0",
            f"redis://:geheim@127.0.0.1:{nobody.getsockname()[1]}",
        ):
            said = str(try_redis(Settings(redis_url=url)))
            assert f"no Redis answers at redis://127.0.0.1:{nobody.getsockname()[1]}" in said
            assert "geheim" not in said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("Error 111 connecting to r.example.cn:7000. Connect call failed."), "no Redis answers at"),
        (ConnectionError("Error -2 connecting to r.example.cn:7000. Name or service not known."), "no name server"),
        (TimeoutError(), "no Redis answers at"),
        (ResponseError("DB index is out of range"), "no database of this number"),
        (ResponseError("NOPERM this user has no permissions to run the 'ping' command"), "grant it (ACL)"),
        (InvalidResponse("Protocol Error: b'HTTP/1.1 400 Bad Request'"), "is no Redis"),
        (ResponseError("unknown command 'SENTINEL', with args beginning with: 'MASTERS'"), "is no sentinel"),
        (BusyLoadingError("Redis is loading the dataset in memory"), "is loading its data"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_redis_is_said_with_its_place(error, said):
    settings = Settings(redis_url="redis://ann:geheim@r.example.cn:7000/99")
    told = str(explain_redis(settings, error))
    assert said in told
    assert "redis://r.example.cn:7000" in told
    assert "geheim" not in told


def test_a_postgres_that_refuses_us_is_not_told_to_be_started(checks, postgres_store):
    url = postgres_store.engine.url.set(database="none_of_this_name").render_as_string(hide_password=False)
    said, _ = texts(checks(database_url=url)["database"])
    assert "none_of_this_name" in said
    assert "there is no such database" in said
    assert "start it" not in said


@pytest.mark.parametrize(
    ("text", "state", "said"),
    [
        (None, CheckState.OK, "no file themes.yaml here"),
        ("goods:\n  leak: {zh: 漏, en: Leaks}\n", CheckState.OK, "themes.yaml is right"),
        ("gods:\n  leak: {zh: 漏, en: Leaks}\n", CheckState.FAILED, "themes.yaml:1: gods: "),
        ("goods：\n  leak: 1\n", CheckState.FAILED, "themes.yaml:1: not readable as YAML at column 6"),
        ("goods: 5\n", CheckState.FAILED, "must be a mapping of keys to values; found 5"),
    ],
)
def test_the_themes_file_is_checked(checks, tmp_path, monkeypatch, text, state, said):
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("themes.yaml").write_text(text, "utf-8")
    told = checks()["themes"]
    assert (told.state, said in texts(told)[0]) == (state, True)


def test_a_themes_file_that_a_setting_names_must_be_there(checks, tmp_path):
    assert checks(themes=str(tmp_path / "none.yaml"))["themes"].state is CheckState.FAILED


def test_a_wrong_catalog_leaves_the_other_checks(checks, tmp_path):
    (tmp_path / "sites.yaml").write_text("version: [", "utf-8")
    told = checks(sites=str(tmp_path / "sites.yaml"))
    assert (told["sites"].state, told["sites"].reason) == (CheckState.FAILED, "wrong_file")
    assert told["database"].state is CheckState.OK


@pytest.mark.parametrize("kind", [ObstacleKind.UNSUPPORTED, ObstacleKind.SIGN_IN])
def test_no_remedy_is_no_line(checks, kind):
    one = Obstacle(kind=kind, because=because(Reason.OTHER, text="it is so"))
    found = Preflight(asked=("a.cn",), unasked={"b.cn": (one,)})
    assert {texts(check)[1] for check in checks(found).values()} >= {""}
    assert "None" not in {texts(check)[1] for check in checks(found).values()}


def test_a_folder_that_only_others_may_write_to(checks, monkeypatch, tmp_path):
    """SQLite keeps files of its own beside the database."""
    monkeypatch.setattr(doctor.os, "access", lambda path, _mode: path != tmp_path)
    told = checks()["database"]
    assert (told.state, told.reason, told.parameters) == (CheckState.FAILED, "read_only", {"path": tmp_path})


def test_the_command(reviewloop, lab, tmp_path):
    url = f"sqlite:///{tmp_path / 'r.db'}"
    result = reviewloop("doctor", "--lab", f"{lab.host}:{lab.port}", "--db", url, "--json")
    assert result.exit_code == 0
    assert {check["state"] for check in json.loads(result.stdout)["checks"]} == {"ok"}
    assert "lab: " in reviewloop("doctor", "--lab", f"{lab.host}:{lab.port}", "--db", url).stdout


def test_what_nothing_mends_is_told_without_a_remedy(checks):
    found = checks(found=Preflight(asked=("cca.org.cn",), unasked={"tieba.baidu.com": (UNSUPPORTED,)}))
    told = [texts(check) for check in found.values() if check.reason == "site_obstacle"]
    assert told == [("tieba.baidu.com: it is signed", "")]


def test_every_reason_has_its_sentence():
    source = Path(doctor.__file__).read_text("utf-8")
    reasons = set(re.findall(r'_(?:ok|warning|failed)(?:, |\("[\w-]+", )"(\w+)"', source))
    assert {"full_disk", "no_redis"} <= reasons <= set(doctor_command.TEXTS)
    assert set(doctor_command.TEXTS) <= set(re.findall(r'"(\w+)"', source)), "a sentence without its reason"
