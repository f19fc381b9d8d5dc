"""The day's work is the same every time, and its catalog is the project's own without limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from research.bench.day import Timeline, titles, write_catalog
from splitter.catalog.load import load_catalog
from splitter.errors import InputError

ROOT = Path(__file__).parents[3]
CONLL = "光 B\n明 I\n牛 O\n奶 O\n\n特 B\n仑 I\n苏 I\n\n光 B\n明 I\n牛 O\n奶 O\n\n  O\n蒙 B\n牛 I\n"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "products").mkdir()
    for name in ("taobao_titles_ner.conll", "jd_titles_ner.conll"):
        (tmp_path / "products" / name).write_text(CONLL, encoding="utf-8")
    return tmp_path


def test_titles_are_read_once_each_and_always_in_the_same_order(shared):
    chosen = titles(shared, 3)
    assert set(chosen) == {"光明牛奶", "特仑苏", "蒙牛"}
    assert titles(shared, 3) == chosen
    assert titles(shared, 2) == chosen[:2]


def test_more_titles_than_there_are_is_an_error(shared, tmp_path):
    with pytest.raises(InputError, match="4 titles are asked for and there are 3"):
        titles(shared, 4)
    with pytest.raises(InputError, match="not at"):
        titles(tmp_path / "nowhere", 1)


def test_the_catalog_has_so_many_sites_of_every_group_and_no_limit_that_holds(tmp_path):
    path = tmp_path / "sites.yaml"
    chosen = write_catalog(path, 12)
    catalog, today = load_catalog(path), load_catalog(ROOT / "sites.yaml")
    assert list(catalog.sites) == chosen
    assert len(chosen) == 12
    assert {catalog.sites[name].group for name in chosen} == {site.group for site in today.sites.values()}
    assert catalog.limits.per_address_per_s >= 1000
    assert all(entry.limits is None for entry in (*catalog.sites.values(), *catalog.engines.values()))
    assert all(entry.sign_in is None for entry in (*catalog.sites.values(), *catalog.engines.values()))
    kept = {name: today.sites[name].model_copy(update={"limits": None, "sign_in": None}) for name in chosen}
    assert catalog.sites == kept


def test_there_are_forty_sites(tmp_path):
    assert len(write_catalog(tmp_path / "sites.yaml", 40)) == 40
    with pytest.raises(InputError, match="1000 sites are asked for"):
        write_catalog(tmp_path / "sites.yaml", 1000)


def test_when_shares_of_the_work_were_done():
    timeline = Timeline()
    assert timeline.reached() == {}
    timeline.points = [(1.0, 5, 0), (6.0, 10, 40), (11.0, 10, 95), (16.0, 10, 100)]
    assert timeline.reached() == {
        "all tasks made": 6.0,
        "50% of the pages": 11.0,
        "90% of the pages": 11.0,
        "99% of the pages": 16.0,
    }
