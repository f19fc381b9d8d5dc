"""Which host a URL's limits, rests and statistics belong to."""

import pytest

from splitter.catalog.load import builtin
from splitter.catalog.model import Limits
from tasks.crawl.hosts import HostBook, slower

BOOK = HostBook(builtin("paper-2014"))


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
    assert BOOK.of_engine("baidu") == "www.baidu.com"


def test_a_crawl_delay_slows_an_address_and_never_hurries_it():
    limits = Limits(per_address_per_s=2, total_per_s=8)
    assert slower(limits, None) == limits
    assert slower(limits, 5) == Limits(per_address_per_s=0.2, total_per_s=8)
    assert slower(limits, 0.1) == limits


def test_only_a_host_the_catalog_says_so_of_may_be_private():
    catalog = builtin("paper-2014")
    sites = {**catalog.sites, "cca.org.cn": catalog.sites["cca.org.cn"].model_copy(update={"private": True})}
    engines = {**catalog.engines, "baidu": catalog.engines["baidu"].model_copy(update={"private": True})}
    book = HostBook(catalog.model_copy(update={"sites": sites, "engines": engines}))
    private = ("http://cca.org.cn/a", "https://www.cca.org.cn/", "http://www.baidu.com/s?wd=a")
    assert all(book.may_be_private(url) for url in private)
    assert not any(
        book.may_be_private(url)
        for url in ("http://315.e0570.com/", "http://notcca.org.cn/", "http://10.0.0.8/")
    )
    assert not any(BOOK.may_be_private(url) for url in private)
