"""Every kind of address times every mistake: exit status 2, no traceback, and no part of the secret anywhere."""

import logging
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from app.cli.main import cli
from tasks.domain.given_address import AddressKind, read_address, read_redis

SECRET = ("Geh3im", "W0rt")
"""Both parts of the password; a mark stands between them in some mistakes."""
PASSWORD = "".join(SECRET)

USER = f"user:{PASSWORD}@"
BASES = {
    "database": ("postgresql", "db.example:5432/name"),
    "redis": ("redis", "cache.example:6379/0"),
    "sentinel": ("sentinel", "s1.example:26379;sentinel://s2.example:26379/0"),
    "proxy": ("http", "proxy.example:8080"),
    "mail server": ("smtps", "mail.example:465"),
    "receiver": ("jsons", "hooks.example:8443/T0KEN"),
    "webhook": ("https", "hooks.example:8443/T0KEN"),
    "search engine": ("http", "search.example:8888"),
    "page": ("http", "www.example:8080/detail/1.html"),
    "node address": ("http", "10.0.0.5:3128"),
    "lab": ("http", "127.0.0.1:8400"),
}
"""Scheme, and host with what follows, of each kind of address."""


def _port(place, port):
    host, _, rest = place.partition(":")
    return f"{host}:{port}{rest.lstrip('0123456789')}"


def _host(place, host):
    return host + place[place.index(":") :]


MISTAKES = {
    "no scheme": lambda scheme, place: f"{USER}{place}",
    "one slash": lambda scheme, place: f"{scheme}:/{USER}{place}",
    "another scheme": lambda scheme, place: f"gopher://{USER}{place}",
    "the scheme is the password": lambda scheme, place: f"{PASSWORD}://{place}",
    "port 99999": lambda scheme, place: f"{scheme}://{USER}{_port(place, 99999)}",
    "port 0": lambda scheme, place: f"{scheme}://{USER}{_port(place, 0)}",
    "a word for the port": lambda scheme, place: f"{scheme}://{USER}{_port(place, 'redis')}",
    "no host": lambda scheme, place: f"{scheme}://{USER}:/",
    "two dots in the host": lambda scheme, place: f"{scheme}://{USER}{_host(place, 'example..com')}",
    "a label of 64 letters": lambda scheme, place: f"{scheme}://{USER}{_host(place, 'a' * 64 + '.com')}",
    "five numbers for the host": lambda scheme, place: f"{scheme}://{USER}{_host(place, '1.2.3.4.5')}",
    "half a bracket": lambda scheme, place: f"{scheme}://{USER}{_host(place, '[::1')}",
    "two @": lambda scheme, place: f"{scheme}://user:{'@'.join(SECRET)}@{place}",
    "a blank in the host": lambda scheme, place: f"{scheme}://{USER}{_host(place, 'exam ple.com')}",
    "a line break": lambda scheme, place: f"{scheme}://user:{chr(10).join(SECRET)}@{place}",
    "a tab": lambda scheme, place: f"{scheme}://user:{chr(9).join(SECRET)}@{place}",
    "9,000 characters": lambda scheme, place: f"{scheme}://{USER}{place}{PASSWORD * 900}",
}
MARKED = {
    "# in the password": lambda scheme, place: f"{scheme}://user:{'#'.join(SECRET)}@{place}",
    "/ in the password": lambda scheme, place: f"{scheme}://user:{'/'.join(SECRET)}@{place}",
    "? in the password": lambda scheme, place: f"{scheme}://user:{'?'.join(SECRET)}@{place}",
}
"""SQLAlchemy reads a database's password with these marks in it, so they are no mistakes there."""
SETTINGS = {
    "database": "DATABASE_URL",
    "redis": "REDIS_URL",
    "sentinel": "REDIS_URL",
    "proxy": "PROXY",
    "mail server": "SMTP_URL",
    "receiver": "ALERT_TO",
    "search engine": "SEARXNG_URL",
    "lab": "LAB",
}
"""Variable of the kinds that are settings."""
COMMANDS = {
    "webhook": ("schedule", "add", "report", "--every", "1d", "--to"),
    "page": ("sites", "try", "cca.org.cn"),
    "proxy": ("nodes", "add", "second", "--proxy"),
    "node address": ("nodes", "add", "second", "--address"),
    "database": ("status", "--db"),
    "redis": ("up", "--redis"),
    "lab": ("run", "--plan", "--lab"),
}
"""Command of the kinds that are arguments; the address comes last."""


def cases(kinds):
    """Every kind times every mistake of it."""
    return [
        pytest.param(kind, mistake(*BASES[kind]), id=f"{kind}-{name}")
        for kind in kinds
        for name, mistake in (MISTAKES if kind == "database" else MISTAKES | MARKED).items()
    ]


def assert_told_without_secret(result, caplog):
    # Nothing of the product handles apprise's own log; pytest does.
    logged = [record.getMessage() for record in caplog.records if record.name != "apprise"]
    said = "\n".join([result.output, result.stderr, *logged])
    assert result.exit_code == 2, said
    assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
    assert "Traceback" not in said
    assert [part for part in SECRET if part.lower() in said.lower()] == []
    assert "T0KEN" not in said


@pytest.fixture
def run(tmp_path, monkeypatch, caplog):
    """Run a command in an empty folder."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("REVIEWLOOP_")]:
        monkeypatch.delenv(name)
    caplog.set_level(logging.DEBUG)
    return lambda *words: CliRunner().invoke(cli, words)


@pytest.mark.parametrize(("kind", "address"), cases(SETTINGS))
def test_a_wrong_address_in_a_setting(kind, address, run, monkeypatch, caplog):
    monkeypatch.setenv(f"REVIEWLOOP_{SETTINGS[kind]}", address)
    result = run(*(("alerts", "test") if kind == "receiver" else ("doctor", "--json")))
    assert_told_without_secret(result, caplog)
    assert f"REVIEWLOOP_{SETTINGS[kind]}" in result.stderr


@pytest.mark.parametrize(("kind", "address"), cases(COMMANDS))
def test_a_wrong_address_in_a_command(kind, address, run, caplog):
    assert_told_without_secret(run(*COMMANDS[kind], address), caplog)


RIGHT = {
    AddressKind.DATABASE: [
        "sqlite://",
        "sqlite:///reviews.db",
        "sqlite:////var/lib/my reviews/反馈#1?.db",
        "postgresql://db",
        "postgresql+psycopg2://u:p@db.example:5433/name",
        "postgresql://u:Geh#3/im?@127.0.0.1/name",
        "postgresql+psycopg2://postgres@/postgres?host=/tmp/x/postgres",
        "postgresql://u@[::1]:5432/name?sslmode=require",
        "postgresql://u:p@first,second:5432/name",
    ],
    AddressKind.REDIS: ["redis://h", "redis://:p%23%2F@h:6379/0", "rediss://u:p@h:1/3?ssl_cert_reqs=none", "sentinel://h"],
    AddressKind.PROXY: ["http://h:1", "socks5h://u:p%40@[2001:db8::1]:1080/", "https://proxy_1.example.:65535"],
    AddressKind.MAIL_SERVER: ["smtps://u:p@mail.example:465", "smtp://relay:25?tls=off", "smtp://127.0.0.1"],
    AddressKind.RECEIVER: ["jsons://u:p@h/path?x=1", "mailtos://u:p@gmail.com?to=a@b.cn"],
    AddressKind.WEBHOOK: ["https://hooks.example.cn/x?key=1", "https://例子.cn/@x#y"],
    AddressKind.SEARCH_ENGINE: ["http://127.0.0.1:8888", "https://searxng.example/search/"],
    AddressKind.PAGE: ["http://www.cca.org.cn/tsdh/1.html?a=b#c", "https://medium.com/@user/1"],
    AddressKind.LAB: ["127.0.0.1:8400"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "address"), [(kind, one) for kind in RIGHT for one in RIGHT[kind]])
def test_right_addresses_are_read(kind, address):
    assert read_address(kind, f" {address}\n") == read_address(kind, address)


def test_every_kind_has_right_ones():
    assert set(RIGHT) == set(AddressKind)


def test_user_and_password_are_decoded_and_not_shown():
    (first, second) = read_redis(f"sentinel://user:{SECRET[0]}%40@a:26380;sentinel://b/2")
    assert (first.user, first.password, first.host, first.port) == ("user", f"{SECRET[0]}@", "a", 26380)
    assert (second.host, second.port, second.path) == ("b", None, "/2")
    assert SECRET[0] not in repr(first)


@pytest.mark.parametrize("address", MARKED)
def test_a_database_password_may_hold_marks(address):
    given = read_address(AddressKind.DATABASE, MARKED[address](*BASES["database"]))
    assert (given.host, given.port, given.path) == ("db.example", 5432, "/name")
    assert all(part in given.password for part in SECRET)


@pytest.mark.parametrize(
    "line", [f"REVIEWLOOP_REDIS_URL redis://:{PASSWORD}@h", f"  {PASSWORD}", f"redis://:{PASSWORD}@h"]
)
def test_a_line_of_env_that_is_no_setting_is_not_repeated(line, run, caplog):
    Path(".env").write_text(f"# settings\n{line}\n", "utf-8")
    result = run("status", "--json")
    assert_told_without_secret(result, caplog)
    assert ".env:2" in result.stderr


@pytest.mark.parametrize(
    "lines",
    [
        "REVIEWLOOP_LANG=zh\nbad\n",
        "bad\nREVIEWLOOP_LANG=zh\n",
        "REVIEWLOOP_LANG='zh'\nREVIEWLOOP_CONTACT me\n",
        "export REVIEWLOOP_LANG=zh\n\n# a comment\nbad\n",
        "REVIEWLOOP_LANG=en\nREVIEWLOOP_LANG=zh\nbad\n",
    ],
)
def test_a_wrong_line_of_env_is_reported_in_the_language_of_env(lines, run):
    Path(".env").write_text(lines, "utf-8")
    result = run("status")
    assert "这一行没有等号" in result.stderr
