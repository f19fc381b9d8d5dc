"""Which host a URL's limits, rests and statistics belong to."""

import pytest

from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog, Limits
from tasks.fetching.hosts import HostCatalog, slower
from tasks.fetching.robots import RobotsRules
from tasks.jobs.planning import addresses, permission

BOOK = HostCatalog(builtin("paper-2014"))


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://www.baidu.com/s?wd=a", "www.baidu.com"),
        ("http://cca.org.cn/a", "cca.org.cn"),
        ("https://WWW.CCA.org.cn:8080/a", "cca.org.cn"),
        ("http://a.b.315.e0570.com/", "315.e0570.com"),
        ("http://e0570.com/", "e0570.com"),
        ("http://notcca.org.cn/", "notcca.org.cn"),
        ("http://elsewhere.example.com./x", "elsewhere.example.com"),
    ],
)
def test_a_host_goes_by_the_catalogs_name_for_it(url, host):
    assert BOOK.name(url) == host


def test_limits_are_the_engines_the_sites_or_the_catalogs():
    catalog = builtin("paper-2014")
    assert BOOK.limits("www.baidu.com") == catalog.engines["baidu"].limits
    assert BOOK.limits("cca.org.cn") == catalog.limits
    assert BOOK.limits("elsewhere.example.com") == catalog.limits
    assert BOOK.engine_host("baidu") == "www.baidu.com"


def test_a_crawl_delay_slows_an_address_and_never_hurries_it():
    limits = Limits(per_address_per_s=2, total_per_s=8)
    assert slower(limits, None) == limits
    assert slower(limits, 5) == Limits(per_address_per_s=0.2, total_per_s=8)
    assert slower(limits, 0.1) == limits


def test_only_a_host_the_catalog_says_so_of_may_be_private():
    catalog = builtin("paper-2014")
    sites = {**catalog.sites, "cca.org.cn": catalog.sites["cca.org.cn"].model_copy(update={"private": True})}
    engines = {**catalog.engines, "baidu": catalog.engines["baidu"].model_copy(update={"private": True})}
    book = HostCatalog(catalog.model_copy(update={"sites": sites, "engines": engines}))
    private = ("http://cca.org.cn/a", "https://www.cca.org.cn/", "http://www.baidu.com/s?wd=a")
    assert all(book.may_be_private(url) for url in private)
    assert not any(
        book.may_be_private(url)
        for url in ("http://315.e0570.com/", "http://notcca.org.cn/", "http://10.0.0.8/")
    )
    assert not any(BOOK.may_be_private(url) for url in private)


def test_of_a_private_engine_its_search_alone_is_trusted():
    catalog = builtin("paper-2014")
    engine = catalog.engines["baidu"].model_copy(
        update={"private": True, "url": "http://127.0.0.1:8888/search"}
    )
    book = HostCatalog(catalog.model_copy(update={"engines": {**catalog.engines, "baidu": engine}}))
    assert book.is_private_search("http://127.0.0.1:8888/search?q=a")
    others = (
        "http://127.0.0.1:8888/",
        "http://127.0.0.1:8888/search/..",
        "http://127.0.0.1:8888/config",
        "http://127.0.0.1:6379/search?q=a",
        "http://127.0.0.1/search?q=a",
        "https://127.0.0.1:8888/search?q=a",
        "http://127.0.0.2:8888/search?q=a",
    )
    assert not any(map(book.is_private_search, others))
    assert not any(map(book.is_private, others))
    assert book.is_private_robots("http://127.0.0.1:8888/robots.txt")
    assert not book.is_private_robots("http://127.0.0.1:6379/robots.txt")
    assert not book.is_private_page("127.0.0.1", "http://127.0.0.1/")


def test_of_a_private_site_its_own_attempts_ask_the_port_of_the_scheme():
    catalog = builtin("paper-2014")
    sites = {**catalog.sites, "cca.org.cn": catalog.sites["cca.org.cn"].model_copy(update={"private": True})}
    book = HostCatalog(catalog.model_copy(update={"sites": sites}))
    assert book.is_private_page("cca.org.cn", "http://www.cca.org.cn/a")
    assert book.is_private_page("cca.org.cn", "https://cca.org.cn:443/a")
    assert not book.is_private_page("cca.org.cn", "http://cca.org.cn:6379/a")
    assert not book.is_private_page("315.e0570.com", "http://cca.org.cn/a")
    assert book.is_private_robots("http://cca.org.cn/robots.txt")


def decided(**where):
    """The paper's catalog, with decisions not to obey."""
    data = builtin("paper-2014").model_dump()
    for table, name in where.items():
        data[table][name]["robots"] = {"obey": False, "reason": "a host of our own"}
    return Catalog.model_validate(data)


def test_robots_txt_is_obeyed_but_where_the_catalog_says_otherwise():
    of_site, of_engine = HostCatalog(decided(sites="cca.org.cn")), HostCatalog(decided(engines="baidu"))
    page, search = "http://www.cca.org.cn/a", "http://www.baidu.com/s?wd=a"
    assert (BOOK.obeys_robots(page), BOOK.obeys_robots(search)) == (True, True)
    assert (of_site.obeys_robots(page), of_site.obeys_robots(search)) == (False, True)
    assert (of_engine.obeys_robots(page), of_engine.obeys_robots(search)) == (True, False)


REFUSING, ALLOWING = (RobotsRules.parse(f"User-agent: *\nDisallow: {path}", 200) for path in ("/", "/none"))


@pytest.mark.parametrize(
    ("catalog", "engine", "site", "state"),
    [
        (builtin("paper-2014"), ALLOWING, ALLOWING, "permitted"),
        (builtin("paper-2014"), REFUSING, ALLOWING, "not permitted"),
        (builtin("paper-2014"), ALLOWING, REFUSING, "not permitted"),
        (decided(sites="cca.org.cn"), ALLOWING, REFUSING, "permitted"),
        (decided(sites="cca.org.cn"), REFUSING, ALLOWING, "not permitted"),
        (decided(engines="baidu"), REFUSING, ALLOWING, "permitted"),
        (decided(engines="baidu", sites="cca.org.cn"), None, None, "permitted"),
        (decided(engines="baidu"), None, None, "unknown"),
    ],
)
def test_a_decision_holds_for_its_own_host_alone(catalog, engine, site, state):
    urls = addresses(catalog, "cca.org.cn")
    rules = {url: one for url, one in zip(urls, (engine, site), strict=True) if one is not None}
    found = permission(catalog, "cca.org.cn", rules, "reviewloop")
    assert found.state == state
    ours = catalog != builtin("paper-2014") and state == "permitted"
    assert ("a host of our own" in str(found.because)) == ours
