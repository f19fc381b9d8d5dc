"""The catalog that comes with the project: whole, in groups, and documented."""

import re
from pathlib import Path

import pytest
import yaml

from splitter.catalog.load import builtin, load_catalog, parse_catalog
from splitter.catalog.model import Engine, Site
from splitter.catalog.names import Group, Kind
from splitter.keywords import product_query
from splitter.split import SearchScope, urls_of

ROOT = Path(__file__).parents[2]
TODAY = load_catalog(ROOT / "sites.yaml")
DOCUMENTS = {
    name: (ROOT / "docs" / name).read_text("utf-8") for name in ("catalog.md", "sites.md", "sites-yaml.md")
}


def test_it_is_todays_and_the_papers_stays():
    assert TODAY.name == "today"
    assert builtin("paper-2014").name == "paper-2014"


def test_there_are_enough_sites_in_every_group():
    assert len(TODAY.sites) >= 40
    count = dict.fromkeys(Group, 0)
    for site in TODAY.sites.values():
        assert site.group is not None
        count[site.group] += 1
    assert min(count.values()) >= 2
    assert all(count[group] >= 8 for group in Group if group is not Group.MICROBLOG), count


@pytest.mark.parametrize("name", list(TODAY.sites))
def test_every_site_says_what_a_person_asks_first(name):
    site = TODAY.sites[name]
    assert site.robots is not None
    assert site.robots.obey
    assert len(site.robots.reason) >= 10
    assert site.pages >= 1
    limits = site.limits or TODAY.limits
    assert limits.per_address_per_s <= 1
    assert (site.group is Group.MICROBLOG) == (TODAY.kind_of(name) is Kind.MICROBLOG)


@pytest.mark.parametrize("name", list(TODAY.sites))
def test_every_site_is_asked_for_itself(name):
    """Its engine restricts the search to it, or is its own."""
    urls = list(urls_of(SearchScope(TODAY, (name,), pages=2), product_query("光明高钙牛奶")))
    engine = TODAY.engine_of(name)
    assert len(urls) == (2 if engine.paging_params or "{page}" in engine.url else 1)
    host = engine.url.split("/")[2]
    own = host == name or host.endswith(f".{name}")
    assert own or f"site%3A{name}" in urls[0].url or name == "mp.weixin.qq.com"


@pytest.mark.parametrize("key", list(Site.model_fields))
def test_every_key_of_a_site_is_documented(key):
    assert any(re.search(rf"`{key}\b|\b{key}:", text) for text in DOCUMENTS.values()), key


def test_every_group_engine_and_site_is_in_the_document():
    text = DOCUMENTS["sites.md"]
    lacking = [str(name) for name in (*Group, *TODAY.engines, *TODAY.sites) if f"`{name}`" not in text]
    assert lacking == []


def test_the_new_keys_are_read():
    text = yaml.safe_dump(
        {
            "version": 1,
            "name": "x",
            "rules": {"r": {"main_text": True}},
            "engines": {
                "e": {
                    "kind": "meta",
                    "url": "http://a.cn/s",
                    "params": {"q": "{query}"},
                    "results": {"hit": "li", "link": "a@href", "title": "a"},
                }
            },
            "sites": {
                "a.cn": {
                    "engine": "e",
                    "rules": "r",
                    "group": "shop",
                    "encoding": "gbk",
                    "robots": {"obey": False, "reason": "its operator allows it in writing"},
                },
                "b.cn": {"engine": "e", "rules": "r"},
            },
        }
    )
    catalog = parse_catalog(text, "x.yaml")
    site, plain = catalog.sites["a.cn"], catalog.sites["b.cn"]
    assert (site.group, site.encoding) == (Group.SHOP, "gbk")
    assert site.robots is not None
    assert not site.robots.obey
    assert (plain.group, plain.encoding, plain.robots) == (None, "", None)
    assert isinstance(catalog.engines["e"], Engine)
