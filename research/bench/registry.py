"""Every bench in one table: what it measures, what it needs, its smallest size, and which ratios should be low.

`reviewloop bench all` runs them all; docs/benchmarks.md has its table of needs from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any

from research.bench import crawl
from splitter.errors import InputError

_NOWHERE = Path("/nonexistent")
_FLAGS = {"seconds": "for"}
"""Options of the command that are called otherwise than their argument."""
DESCRIBED = "docs/benchmarks.md, what each bench needs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A bench: a module of this package with a function `run`.

    Attributes:
        measures: in a few words.
        shared: files or folders of the shared data that it reads, from the shared data's folder on.
        own_samples: without them it reads small samples of its own.
        peers: packages that it compares with; those that are not installed are left out.
        smallest: constants that make it as small as it can be, by "bench.module:NAME"; where its `run` has no such argument.
        options: arguments of `run` that do.
        lower: patterns of those ratios that are better when they are lower.
    """

    name: str
    measures: str
    shared: tuple[str, ...] = ()
    own_samples: bool = False
    peers: tuple[str, ...] = ()
    smallest: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    lower: tuple[str, ...] = ()

    def missing(self, shared: Path) -> str:
        """What it needs and is not there, in one sentence; empty where it can run."""
        lacks = self._lacks(shared)
        if not lacks or self.own_samples:
            return ""
        return (
            f"the bench {self.name!r} needs {', '.join(lacks)} in the shared data, which {shared} has not: "
            f"name the folder with --shared ({DESCRIBED})"
        )

    def _lacks(self, shared: Path) -> list[str]:
        return [path for path in self.shared if not (shared / path).exists()]

    @property
    def peers_not_installed(self) -> list[str]:
        """Of `peers`."""
        return [name for name in self.peers if find_spec(name) is None]

    def lower_is_better(self, ratio: str) -> bool:
        """Whether a ratio gets worse by growing."""
        return any(fnmatchcase(ratio, pattern) for pattern in self.lower)

    def run(self, shared: Path, *, smallest: bool = False, **options: Any) -> dict[str, Any]:
        """Measure.

        Args:
            shared: folder of the shared data.
            smallest: as small as it can be: shows that it runs, and no figure worth keeping.
            options: of the module's `run`.

        Raises:
            InputError: what it needs is missing, or it has no such option.
        """
        if smallest and self.own_samples:
            shared = _NOWHERE
        if missing := self.missing(shared):
            raise InputError(missing)
        run = import_module(f"research.bench.{self.name}").run
        for option in options:
            if option not in signature(run).parameters:
                flag = _FLAGS.get(option, option.replace("_", "-"))
                raise InputError(f"the bench {self.name!r} has no {flag}: leave --{flag} out")
        if not smallest:
            told: dict[str, Any] = run(shared, **options)
        else:
            own = {"smallest": True} if "smallest" in signature(run).parameters else {}
            with _set(self.smallest):
                told = run(shared, **{**self.options, **own, **options})
        if self._lacks(shared):
            told["figures"]["read"] = "small samples of its own: the shared data are not there"
        if self.peers_not_installed:
            told["figures"]["not_installed"] = ", ".join(self.peers_not_installed)
        return told


@contextmanager
def _set(constants: Mapping[str, Any]) -> Iterator[None]:
    """Give constants of modules other values for a while."""
    before = []
    try:
        for place, value in constants.items():
            name, constant = place.split(":")
            module = import_module(f"research.{name}")
            before.append((module, constant, getattr(module, constant)))
            setattr(module, constant, value)
        yield
    finally:
        for module, constant, value in reversed(before):
            setattr(module, constant, value)


_TITLES = ("products/taobao_titles_ner.conll", "products/jd_titles_ner.conll")
_DAIRY = "products/dairy_names_seen.csv"

_TABLE = (
    Bench(
        name="balance",
        measures="balancing by predicted run times (2019 paper)",
        shared=("../scenarios/paper2019-nodes.json",),
        smallest={"papers.learned_curves:EPOCHS": 5},
        lower=("*_over_exact",),
    ),
    Bench(
        name="buffers",
        measures="batches and memory between a node and far servers (2022 paper), against scrapy-redis",
        peers=("scrapy_redis",),
        smallest={
            "bench.buffers:_PREPARED": 100,
            "bench.buffers:_ENOUGH": 20,
            "bench.buffers:_ROUND_TRIPS": {"both": (10,)},
            "bench.buffers:_PEER_MS": (),
            "bench.buffers:_BATCHES": (),
        },
    ),
    Bench(
        name="coroutines",
        measures="coroutines against threads (2014 paper)",
        smallest={
            "bench.coroutines:_LEVELS": (10,),
            "bench.coroutines:_ROUNDS": 1,
            "bench.coroutines:_WINDOW_S": 0.3,
            "bench.coroutines:_SLOW": 100,
            "bench.coroutines:_MEMORY_LEVELS": (5, 10),
            "bench.coroutines:_MEMORY_DELAY_S": 0.3,
            "bench.coroutines:_SLEEP_S": 0.2,
            "bench.coroutines:_SLEEP_LEVELS": (2,),
            "bench.coroutines:_CYCLE_S": 1.0,
            "bench.coroutines:_CYCLE_SAMPLES": 2,
            "bench.coroutines:_LINK_CONNECTIONS": 4,
        },
        lower=("memory_*", "rss_*"),
    ),
    Bench(
        name="crawl",
        measures="the whole pipeline against Scrapy, Crawlee, requests with gevent, and the limit",
        peers=("scrapy", "crawlee", "parsel", "gevent"),
        smallest={
            "bench.crawl:ROUNDS": 1,
            "bench.crawl:_SERVED": crawl.SERVED_SMALLEST,
            "bench.crawl:_SLOWEST_SERVER_PER_S": 0,
            "bench.crawl:_NEEDS_TWO_CORES": False,
            "bench.crawl:OURS": crawl.OURS_SMALLEST,
            "bench.crawl:CONTESTANTS": crawl.SMALLEST,
        },
    ),
    Bench(
        name="drawn",
        measures="allocation in scenarios drawn by seed against a proven bound",
    ),
    Bench(
        name="field",
        measures="the whole loop over real HTTP against a bound, strategy by strategy",
        lower=("*.requests_per_page", "*.done_of_bound"),
    ),
    Bench(
        name="hostile",
        measures="pages made to do harm: how long each is read, and how long it holds the event loop",
        lower=("*",),
    ),
    Bench(
        name="keywords",
        measures="keywords of any name against gold words, and what they find",
        own_samples=True,
        shared=(*_TITLES, _DAIRY, "reviews"),
    ),
    Bench(
        name="pagequality",
        measures="how right saved pages are read",
        own_samples=True,
        shared=("pages",),
        smallest={
            "bench.pagequality:_DECODINGS": 1,
            "bench.pagequality:_DAMMITS": 1,
            "bench.pagequality:_READINGS": 1,
        },
    ),
    Bench(
        name="politeness",
        measures="how well several processes keep one host's limits, and use them",
        smallest={
            "bench.politeness:NODES": 2,
            "bench.politeness:SECONDS": (1.0, 0.7, 1.0),
            "bench.politeness:KILL_AT_S": 0.4,
        },
        lower=("*max_over_limit_10s",),
    ),
    Bench(
        name="proximity",
        measures="network coordinates (2010 paper)",
        shared=("rtt",),
        lower=("*_relative_error_median", "*_stretch_median"),
    ),
    Bench(
        name="records",
        measures="how right threads, comments and lists of reviews are read",
        own_samples=True,
        shared=("pages-2024", "threads"),
    ),
    Bench(
        name="relevance",
        measures="which pages are reviews of the product",
        own_samples=True,
        shared=(*_TITLES, "reviews", "pages"),
        smallest={
            "bench.relevance:_TITLES": 20,
            "bench.relevance:_COMPLAINTS": 10,
            "bench.relevance:_PHONE_PAGES": 2,
        },
    ),
    Bench(
        name="scale",
        measures="what a decision costs, up to a million waiting subtasks",
        smallest={
            "bench.scale:_SIZES": (100, 1_000),
            "bench.scale:_CLUSTERS": ((10, 50),),
            "bench.scale:_STORED": (10, 10),
            "tools.scale_store:_FULL": 20,
            "tools.scale_store:_FULL_TURNS": 1,
            "tools.scale_store:_SMALL_TURNS": 1,
        },
        lower=("cost_*",),
    ),
    Bench(
        name="seen",
        measures="what it costs to know which pages are stored",
        smallest={
            "bench.seen:_PAGES": 20_000,
            "bench.seen:_ABSENT": 2_000,
            "bench.seen:_IN_SET": 1_250,
            "bench.seen:_IN_INDEX": 1_000,
            "bench.seen:_CACHED": 1_000,
            "bench.seen:_ASKING_S": 0.1,
        },
    ),
    Bench(
        name="splitter",
        measures="names a second, from name to search URL",
        own_samples=True,
        shared=(*_TITLES, _DAIRY),
        smallest={"bench.splitter:_SECONDS": 0.02, "bench.splitter:_ROUNDS": 1},
    ),
    Bench(
        name="strategies",
        measures="every allocation strategy against a proven bound, and the papers' experiments",
        options={"whole": False},
        shared=("../scenarios/paper2014.yaml", "../scenarios/paper2019-nodes.json", "rtt"),
        lower=("balance.*_over_exact", "proximity.*_relative_error_median", "proximity.*_stretch_median"),
    ),
    Bench(
        name="verify",
        measures="how long verify takes over a million events, and its peak memory",
        smallest={"bench.verify:EVENTS": 1_000},
        lower=("*",),
    ),
    Bench(
        name="voices",
        measures="whose voice a post is, by sources that nothing was learned from",
        own_samples=True,
        shared=("voices", "reviews"),
        lower=("*calibration_error",),
    ),
)

BENCHES: Mapping[str, Bench] = MappingProxyType({bench.name: bench for bench in _TABLE})
"""All of them, by name."""
