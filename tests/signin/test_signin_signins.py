"""Signing in from end to end: the lab's login wall and an OAuth 2 server, over real connections."""

import asyncio
import logging
import re
import traceback
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType

import pytest
import requests
from oauth_server import OAuthServer
from patience import PATIENCE_S

from app.lab.profile import Wall
from app.lab.running import running_lab
from app.run.wiring import own_sign_in_methods
from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog
from splitter.errors import InputError
from tasks.domain.failures import FetchError
from tasks.fetching.downloader import Downloader
from tasks.fetching.guard import SessionSettings
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.signin.credentials import Credentials
from tasks.signin.errors import MissingCredential, SignInBroken, SignInError, SignInRefused
from tasks.signin.granted import SignInFile
from tasks.signin.signins import SignIns

BBS, CLUB, WEIBO = "bbs.example.com", "club.example.com", "t.example.com"
REFUSING = {"form": "form#consent", "button": "consent", "value": "no"}
SECRET = "the secret of the file"
PASSWORDS = ("读者-pass-1", "读者-pass-2", "lab-client-secret")
ENVIRONMENT = {
    "REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_USER": "reader",
    "REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_PASSWORD": PASSWORDS[0],
    "REVIEWLOOP_LOGIN_CLUB_EXAMPLE_COM_USER": "reader",
    "REVIEWLOOP_LOGIN_CLUB_EXAMPLE_COM_PASSWORD": "读者-pass-3",
    "REVIEWLOOP_LOGIN_T_EXAMPLE_COM_USER": "reader",
    "REVIEWLOOP_LOGIN_T_EXAMPLE_COM_PASSWORD": PASSWORDS[1],
    "REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_ID": "lab-client",
    "REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_SECRET": PASSWORDS[2],
}


def catalog_with(site: str, **changed) -> Catalog:
    """The lab's catalog with keys of a site's `form` or `oauth2` changed."""
    data = builtin("lab-login").model_dump(mode="json")
    rules = data["sites"][site]["sign_in"]
    (rules["form"] or rules["oauth2"]).update(changed)
    return Catalog.model_validate(data, strict=False)


@dataclass
class World:
    lab: object
    path: Path
    catalog: Catalog = field(default_factory=lambda: builtin("lab-login"))
    environment: dict = field(default_factory=lambda: dict(ENVIRONMENT))
    ahead_s: float = 0.0
    begin: int = 0

    def signins(self, catalog=None, own=MappingProxyType({})) -> SignIns:
        return SignIns(
            catalog or self.catalog,
            lambda name: Credentials(name, self.environment),
            SignInFile(self.path, SECRET),
            SessionSettings(user_agent="tester", lab=(self.lab.host, self.lab.port)),
            lambda: datetime.now(UTC) + timedelta(seconds=self.ahead_s),
            own,
        )

    def outcomes(self, *wanted) -> list:
        return [entry.outcome for entry in self.lab.log.entries()[self.begin :] if entry.outcome in wanted]

    def page(self, signins, host):
        """Ask for the site's front page as a crawl would."""
        headers = {"Host": host, **signins.headers_for(f"http://{host}/")}
        return requests.get(f"http://{self.lab.host}:{self.lab.port}/", headers=headers, timeout=PATIENCE_S)


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with running_lab(builtin("lab-login"), "login", reviews=Path("there-is-none")) as running:
        running.sign_ins[WEIBO] = OAuthServer(
            client_id="lab-client",
            client_secret=PASSWORDS[2],
            redirect_uri="http://127.0.0.1/signed-in",
            wall=Wall(user="reader", password=PASSWORDS[1], answer="redirect"),
        )
        yield running


@pytest.fixture
def world(lab, tmp_path):
    return World(lab, tmp_path / "sign-ins", begin=len(lab.log.entries()))


def test_headers_open_the_pages_of_both_sites_and_go_nowhere_else(world):
    signins = world.signins()
    assert signins.headers_for(f"http://{BBS}/") == {}
    assert "请先登录" in world.page(signins, BBS).text
    assert world.page(signins, WEIBO).status_code == 401
    for name in (BBS, WEIBO, "open.example.com", "no.such.site"):
        asyncio.run(signins.ensure(f"http://{name}/"))
    assert "请先登录" not in world.page(signins, BBS).text
    assert world.page(signins, WEIBO).status_code == 200
    assert signins.headers_for(f"https://{BBS}/a?b=/c").keys() == {"Cookie"}
    assert signins.headers_for(f"https://{WEIBO}/a").keys() == {"Authorization"}
    for host in (
        "open.example.com",
        "example.com",
        f"x.{BBS}",
        f"x.{WEIBO}",
        f"www.{BBS}",
        f"{BBS}.evil.com",
    ):
        assert signins.headers_for(f"https://{host}/") == {}


def test_the_pages_behind_every_wall_are_collected_with_their_reviews(world):
    signins = world.signins(own=own_sign_in_methods())

    async def collected(site, signed_in):
        rules = world.catalog.rules_of(site)
        lab = (world.lab.host, world.lab.port)
        reviews = 0
        async with Downloader(user_agent="t", clock=lambda: datetime.now(UTC), lab=lab) as downloader:
            for url in world.lab.web.truth(site, ("光明", "牛奶"))[:5]:
                headers = signins.headers_for(url) if signed_in else {}
                response = await downloader.fetch(url, headers=headers)
                text = decode(response.body, response.headers).text
                reviews += len(read_page(text, response.url, rules, now=datetime.now(UTC)).reviews)
        return reviews

    async def all_sites():
        for site in (BBS, CLUB, WEIBO):
            await signins.ensure(f"http://{site}/")
            with pytest.raises(FetchError) as refused:
                await collected(site, False)
            assert refused.value.error.facts.blocks
            assert await collected(site, True) >= 1

    asyncio.run(all_sites())


def test_one_sign_in_serves_every_coroutine_and_every_process(world):
    async def many(signins):
        await asyncio.gather(*(signins.ensure(f"http://{BBS}/") for _ in range(20)))

    asyncio.run(many(world.signins()))
    other = world.signins()
    asyncio.run(other.ensure(f"http://{BBS}/"))
    assert world.outcomes("login_ok") == ["login_ok"]
    assert "请先登录" not in world.page(other, BBS).text


def test_it_is_renewed_ahead_of_its_end_by_the_refresh_token(world):
    signins = world.signins()
    asyncio.run(signins.ensure(f"http://{WEIBO}/"))
    first = signins.headers_for(f"https://{WEIBO}/")
    world.ahead_s = 530
    asyncio.run(signins.ensure(f"http://{WEIBO}/"))
    assert signins.headers_for(f"https://{WEIBO}/") == first
    world.ahead_s = 545  # a token lasts 600 s, and is renewed 60 s before
    asyncio.run(signins.ensure(f"http://{WEIBO}/"))
    assert signins.headers_for(f"https://{WEIBO}/") != first
    assert world.outcomes("token", "login_ok") == ["login_ok", "token", "token"]


def test_what_has_ended_is_not_sent(world):
    signins = world.signins()
    asyncio.run(signins.ensure(f"http://{BBS}/"))
    world.ahead_s = 601
    assert signins.headers_for(f"https://{BBS}/") == {}


def test_a_refused_sign_in_is_forgotten_and_made_anew_once(world):
    signins = world.signins()

    async def refused_together():
        await signins.ensure(f"http://{BBS}/")
        before = signins.headers_for(f"http://{BBS}/")
        again = await asyncio.gather(*(signins.renew_refused(f"http://{BBS}/{n}") for n in range(5)))
        assert again == [True] * 5
        assert signins.headers_for(f"http://{BBS}/") != before

    asyncio.run(refused_together())
    assert world.outcomes("login_ok") == ["login_ok"] * 2
    world.ahead_s = 61
    assert asyncio.run(signins.renew_refused(f"http://{BBS}/")) is True
    assert world.outcomes("login_ok") == ["login_ok"] * 3
    assert asyncio.run(signins.renew_refused("http://open.example.com/")) is False


def test_a_refused_sign_in_takes_what_another_process_has_got_meanwhile(world):
    ours, theirs = world.signins(), world.signins()
    asyncio.run(ours.ensure(f"http://{BBS}/"))
    theirs.sign_in(BBS)
    assert asyncio.run(ours.renew_refused(f"http://{BBS}/")) is True
    assert ours.headers_for(f"http://{BBS}/") == theirs.headers_for(f"http://{BBS}/")
    assert world.outcomes("login_ok") == ["login_ok"] * 2


def test_after_failures_it_waits_longer_each_time(world, caplog):
    world.environment["REVIEWLOOP_LOGIN_BBS_EXAMPLE_COM_PASSWORD"] = "wrong"
    signins = world.signins()
    for world.ahead_s in (0, 29, 31, 80, 95):
        asyncio.run(signins.ensure(f"http://{BBS}/"))
    assert world.outcomes("login_form") == ["login_form"] * 2 * 3  # the form, and again with "wrong password"
    pauses = [re.search(r"next try in (\d+) s", record.getMessage())[1] for record in caplog.records]
    assert pauses == ["30", "60", "120"]
    assert signins.headers_for(f"http://{BBS}/") == {}
    assert asyncio.run(signins.renew_refused(f"http://{BBS}/")) is False


def test_a_client_may_sign_in_for_itself(world):
    catalog = catalog_with(
        WEIBO, grant="client_credentials", authorize_url="", redirect_uri="", login=None, consent=None
    )
    signins = world.signins(catalog)
    signins.sign_in(WEIBO)
    assert world.page(signins, WEIBO).status_code == 200
    assert world.outcomes("login_ok", "token") == ["token"]


@pytest.mark.parametrize(
    ("site", "changed", "error", "says"),
    [
        (BBS, {"cookie": "session"}, SignInRefused, "gave no cookie 'session' [(]it gave .*sid"),
        (BBS, {"form": "form#in"}, SignInBroken, "shows no form"),
        (BBS, {"user_field": "name"}, SignInBroken, "has no field 'name'; it has csrf, salt, username"),
        (BBS, {"signed_in": "欢迎回来"}, SignInRefused, "nothing matches signed_in"),
        (BBS, {"page": "https://no.example.org/"}, SignInBroken, "shows no form"),
        (WEIBO, {"consent": None}, SignInBroken, "did not lead back"),
        (
            WEIBO,
            {"consent": {"form": "form#consent", "button": "consent", "value": "no"}},
            SignInRefused,
            "access_denied",
        ),
        (WEIBO, {"redirect_uri": "http://evil.com/cb"}, SignInBroken, "shows no form"),
        (WEIBO, {"token_url": "https://t.example.com/login"}, SignInRefused, "refuses"),
    ],
)
def test_rules_that_do_not_fit_are_told(world, site, changed, error, says):
    with pytest.raises(error, match=says):
        world.signins(catalog_with(site, **changed)).sign_in(site)


def test_what_is_missing_is_named(world):
    del world.environment["REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_SECRET"]
    with pytest.raises(MissingCredential, match="REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_SECRET is not set"):
        world.signins().sign_in(WEIBO)
    with pytest.raises(InputError, match=f"it does for: {BBS}, {CLUB}, {WEIBO}"):
        world.signins().sign_in("open.example.com")


def test_a_site_with_an_odd_login_has_a_user_login_of_its_own(world):
    with pytest.raises(SignInRefused):
        world.signins().sign_in(CLUB)
    signins = world.signins(own=own_sign_in_methods())
    signins.sign_in(CLUB)
    assert world.page(signins, CLUB).history == []
    assert world.outcomes("login_ok") == ["login_ok"]


def test_a_bearer_token_never_goes_over_plain_http_on_the_real_web(world):
    world.signins().sign_in(WEIBO)
    on_the_web = SignIns(
        world.catalog,
        lambda name: Credentials(name, {}),
        SignInFile(world.path, SECRET),
        SessionSettings(user_agent="t"),
        lambda: datetime.now(UTC),
    )
    asyncio.run(on_the_web.ensure(f"http://{WEIBO}/"))
    assert on_the_web.headers_for(f"http://{WEIBO}/") == {}
    assert on_the_web.headers_for(f"https://{WEIBO}/").keys() == {"Authorization"}


def test_no_secret_is_ever_told(world, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    signins = world.signins()
    for name in (BBS, WEIBO):
        asyncio.run(signins.ensure(f"http://{name}/"))
    granted = [signins._accounts[name].granted for name in (BBS, WEIBO)]
    world.ahead_s = 545
    asyncio.run(signins.ensure(f"http://{WEIBO}/"))
    secrets = {
        *PASSWORDS,
        SECRET,
        granted[1].bearer,
        granted[1].refresh,
        *(c.value for c in granted[0].cookies),
    }
    assert len(secrets) >= 7
    told = [repr(signins), repr(signins._accounts), repr(granted), repr(signins._credentials(BBS))]
    for broken in ({"signed_in": "欢迎回来"}, {"cookie": "other"}):
        try:
            world.signins(catalog_with(BBS, **broken)).sign_in(BBS)
        except SignInError:
            told.append(traceback.format_exc())
    world.environment["REVIEWLOOP_LOGIN_T_EXAMPLE_COM_CLIENT_SECRET"] = "wr0ng-secret"
    try:
        world.signins().sign_in(WEIBO)
    except SignInError:
        told.append(traceback.format_exc())
    secrets.add("wr0ng-secret")
    told += [caplog.text, *capfd.readouterr(), *(str(vars(record)) for record in caplog.records)]
    assert len(told) > 8
    assert "signed in to" in caplog.text
    text = "\n".join(told)
    assert [secret for secret in secrets if secret in text] == []
