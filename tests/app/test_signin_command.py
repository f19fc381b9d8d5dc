"""`reviewloop sites sign-in` over the lab's profile `login`."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from pseudo_catalog import all_in_brackets, list_words_outside
from tiny_world import ROOT

from app.lab.running import running_lab
from app.run.setting_fields import Settings
from app.run.settings import as_environment, load_settings
from splitter.catalog.load import builtin

ENVIRONMENT = {
    "REVIEWLOOP_SECRET_KEY": "a secret of the tests",
    "REVIEWLOOP_SITES": "lab-login",
    "REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_USER": "reader",
    "REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_PASSWORD": "读者-pass-1",
}


@pytest.fixture(scope="module")
def door():
    with running_lab(builtin("lab-login"), "login", reviews=ROOT / "there-is-no-such-folder") as lab:
        yield lab


@pytest.fixture
def sign_in(reviewloop, door, tmp_path):
    def invoke(*arguments, **environment):
        given = ENVIRONMENT | {"REVIEWLOOP_KEYS_FOLDER": str(tmp_path)} | environment
        return reviewloop("sites", "sign-in", *arguments, "--lab", f"{door.host}:{door.port}", **given)

    return invoke


def test_it_tells_until_when_and_never_what(sign_in, tmp_path):
    told = sign_in("bbs.example.com", "--json")
    assert told.exit_code == 0, told.stderr
    document = json.loads(told.stdout)
    assert document.keys() == {"site", "until", "kept_in"}
    left = datetime.fromisoformat(document["until"]) - datetime.now(UTC)
    assert timedelta(0) < left <= timedelta(seconds=600)
    plain = sign_in("bbs.example.com")
    assert plain.stdout.startswith("Signed in to bbs.example.com until 20")
    assert "sid-" not in told.output + plain.output
    assert (tmp_path / "reviewloop.sign-ins").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("site", "environment", "status", "says"),
    [
        ("t.example.com", {}, 2, "REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_SECRET is not set"),
        ("bbs.example.com", {"REVIEWLOOP_PROXY": "http://127.0.0.1:1"}, 2, "does not go through a proxy"),
        ("bbs.example.com", {"REVIEWLOOP_SECRET_KEY": "short"}, 2, "set REVIEWLOOP_SECRET_KEY to 16"),
        ("open.example.com", {}, 2, "does not say how to sign in to 'open.example.com'"),
        ("bbs.example.com", {"REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_PASSWORD": "wr0ng"}, 1, "did not work"),
    ],
)
def test_what_is_wrong_is_told(sign_in, site, environment, status, says):
    told = sign_in(site, **environment)
    assert told.exit_code == status
    assert says in told.stderr
    assert "wr0ng" not in told.output


@pytest.mark.parametrize(
    ("site", "environment"),
    [
        ("bbs.example.com", {}),
        ("open.example.com", {}),
        ("t.example.com", {}),
        ("bbs.example.com", {"REVIEWLOOP_SECRET_KEY": "short"}),
        ("bbs.example.com", {"REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_PASSWORD": "wr0ng"}),
    ],
)
def test_every_word_is_from_a_catalog(sign_in, reviewloop, site, environment):
    with all_in_brackets():
        told = sign_in(site, **environment)
    reviewloop("sites", "sign-in", "--help")  # the help of loaded commands is English again
    data = r"\breviewloop\b|[\w.-]+\.com\b\S*|/\S+|\b[A-Z]{2,}_\w+|https?://\S+"
    assert list_words_outside(told.output, data) == set()


def test_a_wrong_key_loses_nothing(sign_in, tmp_path):
    sign_in("bbs.example.com")
    before = (tmp_path / "reviewloop.sign-ins").read_bytes()
    told = sign_in("bbs.example.com", REVIEWLOOP_SECRET_KEY="another secret of the tests")
    assert (told.exit_code, "another REVIEWLOOP_SECRET_KEY" in told.stderr) == (2, True)
    assert (tmp_path / "reviewloop.sign-ins").read_bytes() == before


def test_settings_hide_the_key_and_hand_the_logins_to_child_processes(monkeypatch):
    monkeypatch.setenv("REVIEWLOOP_LOGIN_A_COM_USER", "someone")
    monkeypatch.setenv("REVIEWLOOP_OTHER", "gone")
    settings = load_settings({"REVIEWLOOP_SECRET_KEY": "a secret of the tests"})
    assert settings.secret_key == "a secret of the tests"
    assert "a secret" not in repr(settings)
    given = as_environment(settings)
    assert given["REVIEWLOOP_SECRET_KEY"] == "a secret of the tests"
    assert given["REVIEWLOOP_LOGIN_A_COM_USER"] == "someone"
    assert "REVIEWLOOP_OTHER" not in given
    assert "REVIEWLOOP_SECRET_KEY" not in as_environment(Settings())
