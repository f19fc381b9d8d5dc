"""Alerts sent to real receivers on this machine: what arrives, who did not get it, and what stays secret."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

from app.run.setting_fields import Settings
from app.run.settings import as_environment, load_settings
from app.sending.alert_sending import Receivers, hide_secrets, place_of
from app.sending.mail_server import smtp_server
from app.views.words import switch_language
from splitter.errors import InputError
from tasks.domain.reasons import Reason, because
from tasks.domain.themes import ALL_THEMES
from tasks.scheduling.alerting import Alert
from tasks.store.queue import notices
from tasks.store.queue.notices import AlertRow
from tasks.store.sql.database import Store

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECRET = "very-secret-token"


@dataclass
class Hook:
    """A receiver of webhooks; it answers when it is let go on."""

    port: int = 0
    status: int = 200
    got: list[dict[str, str]] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        patient = f"cto={PATIENCE_S:g}&rto={PATIENCE_S:g}"  # apprise waits for 4 s
        return f"json://127.0.0.1:{self.port}/{SECRET}?+X-Key={SECRET}&{patient}"


@contextmanager
def served() -> Iterator[Hook]:
    hook = Hook()
    hook.go_on.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            hook.arrived.set()
            hook.go_on.wait(PATIENCE_S)
            self.send_response(hook.status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hook
    finally:
        hook.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_S)


@pytest.fixture
def hook() -> Iterator[Hook]:
    with served() as one:
        yield one


def row(subject: str, *, firing: bool = True, text: str = "node has ended") -> AlertRow:
    return AlertRow(
        rule="silent",
        subject=subject,
        because=because(Reason.OTHER, text=text),
        level=None,
        since=NOW - timedelta(minutes=5),
        firing=firing,
        told=not firing,
        told_at=None,
        trouble="",
    )


def test_a_webhook_gets_what_came_on_and_what_is_over_in_one_message(hook: Hook) -> None:
    told = Receivers([hook.address]).tell([row("n1"), row("n2", firing=False)], NOW)
    assert (told.told, told.trouble) == (True, "")
    (message,) = hook.got
    assert message["title"] == "reviewloop: 1 alert, 1 over"
    assert message["message"] == (
        "ALERT silent n1: node has ended\nover silent n2, after 5 min: node has ended"
    )


def test_a_message_is_in_the_language_of_the_receivers_and_the_log_in_english(
    hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    alert = replace(
        row("n1"),
        because=because(Reason.ENGINE_REFUSES, engine="baidu", nodes="n1", causes="captcha", times=2),
    )
    assert Receivers([hook.address, "log"], language="zh").tell([alert], NOW).told
    (message,) = hook.got
    assert message["title"] == "reviewloop：告警：无响应 n1"
    assert message["message"] == "告警 无响应 n1：baidu 拒绝 n1（验证码），已连续 2 次：reviewloop nodes list"
    assert "ALERT silent n1: baidu refuses n1 (captcha), 2 times in a row" in caplog.text


@pytest.mark.parametrize(
    "address", ["mailto:ann@example.cn", "mailto:ann@example.cn,bob@example.cn", "json://127.0.0.1:9/x"]
)
@pytest.mark.parametrize(
    ("code", "words"), [("zh", ("邮件服务器", "拒绝接收")), ("en", ("mail server", "it refused"))]
)
def test_a_reason_is_in_the_language_of_who_sends(address: str, code: str, words: tuple[str, str]) -> None:
    with switch_language(code):
        (told,) = Receivers([address], smtp_server("smtp://127.0.0.1:9?tls=off", "me@example.cn")).send(
            "t", "b"
        )
    assert any(word in told.why for word in words)


@pytest.mark.parametrize(
    ("theme", "name"), [("foreign_matter", "异物"), (ALL_THEMES, "全部投诉"), ("gone_from_the_file",) * 2]
)
def test_an_alert_names_the_theme_that_rises_in_the_language_of_its_receivers(
    hook: Hook, theme: str, name: str
) -> None:
    because_ = because(
        Reason.THEME_RISES,
        product="特仑苏",
        theme=theme,
        since="2026-10-12",
        complaints=9,
        expected=0.5,
        quotes="",
    )
    alert = replace(row("n1"), rule="rising", subject=f"特仑苏: {theme}", because=because_)
    Receivers([hook.address], language="zh").tell([alert], NOW)
    assert hook.got[0]["title"].endswith(f"特仑苏: {name}")
    assert hook.got[0]["message"].count(name) == 2
    assert alert.subject == f"特仑苏: {theme}", "programs read the id"


def test_a_single_alert_is_in_the_title_and_what_a_site_wrote_makes_no_line_of_its_own(hook: Hook) -> None:
    Receivers([hook.address]).tell([row("n1", text="a\nover silent n2\x1b[2J")], NOW)
    assert hook.got[0]["title"] == "reviewloop: ALERT: silent n1"
    assert hook.got[0]["message"].count("\n") == 0
    assert "\x1b" not in hook.got[0]["message"]


def test_one_that_refuses_is_named_without_its_secrets_and_the_others_get_it(
    hook: Hook, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with served() as broken:
        broken.status = 500
        told = Receivers([broken.address, hook.address]).tell([row("n1")], NOW)
    assert told.told
    assert "json://127.0.0.1: " in told.trouble
    assert "error=500" in told.trouble
    assert len(hook.got) == 1
    for said in (told.trouble, caplog.text, *capfd.readouterr()):
        assert SECRET not in said


def test_nobody_there_is_no_success(caplog: pytest.LogCaptureFixture) -> None:
    told = Receivers(["json://127.0.0.1:9/x"]).tell([row("n1")], NOW)
    assert not told.told
    assert "127.0.0.1" in told.trouble
    assert "did not reach" in caplog.text


def test_a_frozen_receiver_holds_nobody_and_gets_no_second_message(hook: Hook) -> None:
    with served() as frozen:
        frozen.go_on.clear()
        receivers = Receivers([frozen.address, hook.address], clock=lambda: 0.0)

        def goes_on() -> bool:
            """Until one has the message and the other holds it."""
            sending = any(thread.name == "alert-1" for thread in threading.enumerate())
            return sending or not frozen.arrived.is_set()

        first = receivers.send("one", "text", goes_on)
        assert [bool(one.why) for one in first] == [True, False]
        second = receivers.send("two", "text")
        assert "still has not taken" in second[0].why
        assert [one["title"] for one in hook.got] == ["one", "two"]
        assert len(frozen.got) == 1


def test_the_bound_ends_a_message_that_takes_too_long(hook: Hook) -> None:
    hook.go_on.clear()
    ticks = iter(range(10_000))
    (one,) = Receivers([hook.address], clock=lambda: float(next(ticks))).send("one", "text", bound_s=20.0)
    assert "in time" in one.why


def test_without_a_receiver_it_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    assert Receivers([]).tell([row("n1")], NOW).told
    assert "reviewloop: ALERT silent n1: node has ended" in caplog.text


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("log", "log"),
        ("json://user:pass@hooks.example:8080/path", "json://hooks.example"),
        ("mailto://user:pass@example.com", "mailto://example.com"),
        ("dingtalk://TOKEN", "dingtalk://"),
        ("wecombot://KEY", "wecombot://"),
        ("feishu://TOKEN", "feishu://"),
        ("slack://A/B/C", "slack://"),
        ("https://hooks.slack.com/services/A/B/C", "https://hooks.slack.com"),
        ("json://[broken", "json://"),
    ],
)
def test_of_a_receiver_only_the_scheme_and_an_open_host_are_told(address: str, place: str) -> None:
    assert place_of(address) == place


def test_what_went_wrong_is_told_without_the_parts_of_the_address() -> None:
    said = hide_secrets(
        f"POST /{SECRET}?key=a%2Fbcdef to h.cn failed\nx", f"json://h.cn/{SECRET}?key=a%2Fbcdef"
    )
    assert said == "POST /***?key=*** to h.cn failed\\nx"


def test_an_unknown_kind_is_refused_without_repeating_it() -> None:
    with pytest.raises(InputError, match="receiver 2 is no address") as error:
        Receivers(["log", f"nonesuch://{SECRET}"])
    assert SECRET not in str(error.value)


def test_receivers_are_settings_that_nothing_prints() -> None:
    settings = load_settings({"REVIEWLOOP_ALERT_TO": f" log  json://h/{SECRET} "})
    assert settings.alert_to == f"log json://h/{SECRET}"
    assert SECRET not in repr(settings)
    assert load_settings(as_environment(settings)) == settings
    with pytest.raises(InputError, match="receiver 1") as error:
        load_settings({"REVIEWLOOP_ALERT_TO": SECRET})
    assert SECRET not in str(error.value)


@pytest.mark.parametrize("text", ["manual:0", "manual:x", "nonesuch", "manual:1,,idle"])
def test_a_wrong_rule_is_refused_with_what_would_be_right(text: str) -> None:
    with pytest.raises(InputError, match="completion:50,silent:2,manual:1,idle:30,refusing:2,rising:3"):
        load_settings({"REVIEWLOOP_ALERTS": text})


def test_rules_are_read_with_the_usual_thresholds_and_written_back() -> None:
    some = load_settings({"REVIEWLOOP_ALERTS": "manual:10, idle"})
    assert dict(some.alerts.items()) == {"manual": 10.0, "idle": 30.0}
    assert load_settings(as_environment(some)) == some
    none = load_settings({"REVIEWLOOP_ALERTS": "off"})
    assert none.alerts.items() == []
    assert load_settings(as_environment(none)) == none
    assert load_settings(as_environment(Settings())) == Settings()


def test_what_is_on_is_listed_with_since_when(sqlite_url: str, reviewloop: Any) -> None:
    store = Store.open(sqlite_url)
    with store.begin() as tx:
        notices.keep_alerts(tx, [Alert("silent", "n1", because(Reason.NODE_AWAY))])
    store.close()
    listed = json.loads(reviewloop("alerts", "list", "--db", sqlite_url, "--json").stdout)
    assert [(one["rule"], one["subject"]) for one in listed["on"]] == [("silent", "n1")]
    assert listed["receivers"] == ["log"]
    assert "is not alive or is drained" in reviewloop("alerts", "list", "--db", sqlite_url).stdout
    bare = reviewloop("alerts", "list", REVIEWLOOP_DATABASE_URL=sqlite_url, REVIEWLOOP_ALERTS="manual:3")
    assert "is not alive or is drained" in bare.stdout
    assert "subtasks wait for a person" in bare.stdout


def test_a_wrong_receiver_is_refused_before_anything_is_crawled(tmp_path: Path, reviewloop: Any) -> None:
    db = tmp_path / "new.db"
    result = reviewloop("run", "--db", db, "特仑苏", REVIEWLOOP_ALERT_TO="nonesuch://x")
    assert result.exit_code == 2
    assert not db.exists()
