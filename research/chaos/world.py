"""The world of a chaos run: a small catalog, and products enough that there is always something to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain, count, islice
from itertools import product as pairs_of
from pathlib import Path

import yaml

from app.actions.products import new_product
from tasks.store.content import products
from tasks.store.queries import queues as queue_queries
from tasks.store.queue import transitions
from tasks.store.sql.database import Store

SITES = ("12315.com", "315ok.com", "315tousu.org", "cca.org.cn", "ccn.com.cn", "china315.com")

_SITES_AN_ENGINE = 5
"""A result page leads to more than one page: so many sites keep busy while their engine takes no more."""
FAST_PER_S = 200.0
"""Of the calm run: what is stored does not depend on how fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Supply:
    """How much work there is, and how fast sites let it be done.

    Attributes:
        first: products at the beginning.
        left: hits to do below which the next product is added; the default is half a minute of work and more.
        subtasks: the same, of subtasks that wait.
        site_per_s: requests a second that a site takes; half of it from one address.
    """

    first: int = 3
    left: int = 120
    subtasks: int = 6
    site_per_s: float = 1.2


PLENTY = Supply()

_BRANDS = (
    "光明", "蒙牛", "伊利", "三元", "雀巢", "君乐宝", "完达山", "飞鹤", "贝因美", "圣元", "新希望", "燕塘",
    "卫岗", "夏进", "辉山", "旺旺", "达能", "美赞臣", "惠氏", "雅培",
)  # fmt: skip
_GOODS = (
    "高钙牛奶", "早餐奶", "纯牛奶", "酸奶", "中老年奶粉", "儿童奶粉", "脱脂牛奶", "乳酸菌", "奶酪", "冰淇淋",
    "核桃奶", "豆奶", "炼乳", "黄油", "麦片",
)  # fmt: skip


def names() -> Iterator[str]:
    """Products in the order in which they are added: 300, then the same as a second series (X2), and so on."""
    # Diagonally, so that neither brands nor goods come in runs.
    pairs = sorted(
        pairs_of(range(len(_BRANDS)), range(len(_GOODS))), key=lambda at: ((at[0] + at[1]) % 15, at)
    )
    series = chain([""], (f"X{number}" for number in count(2)))
    return (f"{_BRANDS[brand]}{_GOODS[good]}{of}" for of in series for brand, good in pairs)


def write_catalog(path: Path, per_s: float) -> None:
    """Write the catalog to a file.

    Args:
        per_s: see `Supply.site_per_s`; `FAST_PER_S` holds nothing up.
    """
    catalog = yaml.safe_load(files("splitter").joinpath("data", "paper-2014.yaml").read_text("utf-8"))
    catalog["name"] = "chaos"
    catalog["limits"] = {"per_address_per_s": per_s / 2, "total_per_s": per_s}
    catalog["engines"]["baidu"]["limits"] = {
        "per_address_per_s": 2 * per_s,
        "total_per_s": _SITES_AN_ENGINE * per_s,
    }
    del catalog["engines"]["weibo-yunyun"], catalog["rules"]["microblog"]
    catalog["sites"] = {
        name: {**catalog["sites"][name], "pages": 3, "quota": {"min": 3, "max": 15}} for name in SITES
    }
    path.write_text(yaml.safe_dump(catalog, allow_unicode=True), encoding="utf-8")


class Products:
    """Adds the products of the world one by one, as work runs low."""

    def __init__(self, store: Store, supply: Supply) -> None:
        self._store = store
        self._supply = supply
        with store.read() as tx:  # a folder may hold an earlier run
            self.added = queue_queries.get_totals(tx).products

    def feed(self) -> None:
        """Add the next product where there is little left to do. Raises what the database raises."""
        with self._store.read() as tx:
            queues = transitions.count_queues(tx)
            waiting = queues["PRIORITY"] + queues["WAIT"]
            if queue_queries.count_open_hits(tx) >= self._supply.left and waiting >= self._supply.subtasks:
                return
        self.add()

    def add(self) -> None:
        """Add the next product."""
        name = next(islice(names(), self.added, None))
        product = new_product(name)  # which loads a dictionary: not within a transaction
        with self._store.begin() as tx:
            products.add(tx, product)
        # Once it is committed: an answer that is lost lets it be added again, which changes nothing.
        self.added += 1
