"""Worlds of `bench field`: a catalog with its limits, a lab profile and a job, drawn by seed.

Every (site, node) pair has a chance to answer well and a latency, the same in every regime of a seed: each site has
the four chances in an order of its own, so that it has good and bad nodes alike. A regime adds limits and what
changes with time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import yaml

from app.lab import chance
from app.lab.pages import Corpus, make_texts
from app.lab.profile import Profile
from research.tools.pagetruth import SAMPLES
from splitter.catalog.load import builtin
from splitter.catalog.model import Catalog, Limits
from splitter.keywords import product_query
from splitter.word_weight import first_to_drop
from tasks.scheduling.query_refinement import FEWEST_WORDS

NAMES = SAMPLES / "names.txt"
"""Product names, one a line; a job takes the first ones."""

JOBS: Mapping[str, int] = MappingProxyType({"small": 6, "long": 30})
"""Products of a job, by its name."""

RATES = (0.97, 0.85, 0.45, 0.20)
"""Chances that a pair answers well."""

LATENCY_S = (0.02, 1.2)
"""Shortest and longest latency of a (site, node) pair; drawn evenly on a logarithmic scale."""

ENGINE_LATENCY_S = 0.08
FAR_S = 0.3

SCARCE = Limits(per_address_per_s=2, total_per_s=2)
ROOMY = Limits(per_address_per_s=2, total_per_s=8)
RATIONED_ENGINE = Limits(per_address_per_s=1, total_per_s=4)

BLOCK_AFTER = (10, 30)
"""Least and most requests that a pair bears in `BLOCK_WINDOW_S`."""

BLOCK_WINDOW_S = 20.0
BLOCK_FOR_S = 60.0

SWAP_AT_S = 30.0
HANG_AT_S, HANG_FOR_S = 10.0, 60.0
GONE_AT_S = 20.0

NODES = 4
_SHIPPED_NODES = 8
_SHIPPED_ENGINE = "searxng"


class Regime(StrEnum):
    """What rations requests, and what changes with time."""

    SCARCE = "scarce"  # a host's total is one address's limit
    ROOMY = "roomy"  # a host's total is four addresses' limits
    BLOCKS = "blocks"  # roomy, and an address is refused for 60 s after k requests in 20 s
    DRIFT = "drift"  # scarce, and good and bad nodes swap after 30 s
    DEATH = "death"  # scarce; one address hangs for 60 s, another goes for good
    FAR = "far"  # scarce, and one node has 300 ms more
    ENGINE_BOUND = "engine-bound"  # roomy, and result pages are rationed below pages
    MIXED = "mixed"  # a third of the hosts each scarce, roomy, blocks
    SHIPPED = "shipped"  # the limits of sites.yaml, 8 nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a run is made of.

    Attributes:
        seed: of the draw; also of the lab's pages and faults.
        nodes: how many; node n has the address 127.0.0.(n + 1).
        catalog: engines, sites and their limits.
        profile: how the lab treats each node.
        names: of the products.
    """

    regime: Regime
    seed: int
    nodes: int
    catalog: Catalog
    profile: Profile
    names: tuple[str, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        """Of the nodes, in their order."""
        return _addresses(self.nodes)

    def sites_yaml(self) -> str:
        """Its catalog as a file."""
        document = self.catalog.model_dump(mode="json", exclude_unset=True)
        return yaml.safe_dump(document, allow_unicode=True, sort_keys=False)

    def profile_yaml(self) -> str:
        """Its lab profile as a file."""
        return yaml.safe_dump(self.profile.model_dump(mode="json", exclude_unset=True), sort_keys=False)


@dataclass(frozen=True, slots=True)
class TaskHits:
    """What a product's task on a site comes to.

    Attributes:
        result_pages: requested until one has a hit, or none can have: an empty query is relaxed.
        pages: addresses that the last of them lists, repeats left out.
    """

    site: str
    engine: str
    result_pages: int
    pages: frozenset[str]


def node_count(regime: Regime) -> int:
    """Return how many nodes a regime has unless another number is asked for."""
    return _SHIPPED_NODES if regime is Regime.SHIPPED else NODES


def draw(
    regime: Regime, seed: int, *, products: int, nodes: int | None = None, sites: int | None = None
) -> World:
    """Draw a world.

    Args:
        products: how many of `NAMES`.
        nodes: None: as many as the regime has.
        sites: only the first so many; None: all of the 2014 paper's.
    """
    count = nodes or node_count(regime)
    catalog = builtin("paper-2014")
    if sites is not None:
        catalog = catalog.model_copy(update={"sites": dict(list(catalog.sites.items())[:sites])})
    kinds = _kinds(regime, seed, tuple(catalog.sites))
    pairs = list(_pairs(regime, seed, kinds, _addresses(count)))
    profile = {"name": f"field-{regime}-{seed}", "time_from": "first_request", "pairs": pairs}
    return World(
        regime=regime,
        seed=seed,
        nodes=count,
        catalog=_limited(catalog, regime, kinds),
        profile=Profile.model_validate(profile),
        names=tuple(NAMES.read_text("utf-8").split("\n")[:products]),
    )


def hits(world: World) -> tuple[TaskHits, ...]:
    """What each task of a world's job comes to, by product, then by site."""
    corpus = Corpus(world.catalog, world.seed, make_texts())
    queries = [product_query(name).keywords for name in world.names]
    return tuple(
        _task_hits(world.catalog, corpus, site, words) for words in queries for site in world.catalog.sites
    )


def _task_hits(catalog: Catalog, corpus: Corpus, site: str, words: tuple[str, ...]) -> TaskHits:
    most = catalog.engine_of(site).hits_per_page * catalog.sites[site].pages
    asked = 1
    while not (listed := corpus.list_entries(site, words, None)[:most]) and len(words) > FEWEST_WORDS:
        place = first_to_drop(words)
        words = words[:place] + words[place + 1 :]
        asked += 1
    pages = frozenset(corpus.url(entry.page) for entry in listed)
    return TaskHits(site, catalog.sites[site].engine, asked, pages)


def _addresses(nodes: int) -> tuple[str, ...]:
    return tuple(f"127.0.0.{n + 1}" for n in range(1, nodes + 1))


def _kinds(regime: Regime, seed: int, sites: Sequence[str]) -> Mapping[str, Regime]:
    """Return the regime of each site: in a mixed world one of three."""
    if regime is not Regime.MIXED:
        return dict.fromkeys(sites, regime)
    shuffled = sorted(sites, key=lambda site: chance.number(seed, "field third", site))
    kinds = (Regime.SCARCE, Regime.ROOMY, Regime.BLOCKS)
    return {site: kinds[place % len(kinds)] for place, site in enumerate(shuffled)}


def _limited(catalog: Catalog, regime: Regime, kinds: Mapping[str, Regime]) -> Catalog:
    """The catalog with the limits of a regime."""
    engine_limits: Limits | None = None
    match regime:
        case Regime.SHIPPED:
            shipped = builtin("today")
            limits, engine_limits = shipped.limits, shipped.engines[_SHIPPED_ENGINE].limits
        case Regime.ENGINE_BOUND:
            limits, engine_limits = ROOMY, RATIONED_ENGINE
        case Regime.ROOMY | Regime.BLOCKS:
            limits = ROOMY
        case _:
            limits = SCARCE
    sites = {
        name: site.model_copy(update={"limits": ROOMY})
        if regime is Regime.MIXED and kinds[name] is not Regime.SCARCE
        else site
        for name, site in catalog.sites.items()
    }
    engines = {
        name: engine.model_copy(update={"limits": engine_limits}) if engine_limits is not None else engine
        for name, engine in catalog.engines.items()
    }
    return catalog.model_copy(
        update={"name": f"field-{regime}", "limits": limits, "sites": sites, "engines": engines}
    )


def _pairs(
    regime: Regime, seed: int, sites: Mapping[str, Regime], addresses: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """The entries of a world's profile: what holds from the start, then what changes."""
    rates = {
        (site, address): rate
        for site in sites
        for address, rate in zip(addresses, _rates(seed, site, len(addresses)), strict=True)
    }
    victims = chance.generator(seed, "field victims").sample(addresses, min(2, len(addresses)))
    far = victims[0] if regime is Regime.FAR else ""
    yield {"role": "engine", "latency_ms": _fixed(ENGINE_LATENCY_S)}
    if far:
        yield {"role": "engine", "client": far, "latency_ms": _fixed(ENGINE_LATENCY_S + FAR_S)}
    for (site, address), rate in rates.items():
        rng = chance.generator(seed, "field pair", site, address)
        shortest, longest = LATENCY_S
        latency_s = shortest * (longest / shortest) ** rng.random() + (FAR_S if address == far else 0)
        pair = {"client": address, "host": site, "latency_ms": _fixed(latency_s), "faults": _faults(rate)}
        if sites[site] is Regime.BLOCKS:
            after = rng.randint(*BLOCK_AFTER)
            pair["block"] = {"requests": after, "window_s": BLOCK_WINDOW_S, "for_s": BLOCK_FOR_S}
        yield pair
        if regime is Regime.DRIFT:
            yield _changed(site, address, SWAP_AT_S, _swapped(rate))
    if regime is Regime.DEATH:
        hanging, *gone = victims
        over_s = HANG_AT_S + HANG_FOR_S
        yield {"client": hanging, "from_s": HANG_AT_S, "faults": {"hang": 1.0}, "hang_s": HANG_FOR_S}
        yield {"client": hanging, "from_s": over_s, "faults": {}}
        yield from (_changed(site, hanging, over_s, rates[site, hanging]) for site in sites)
        yield from ({"client": address, "from_s": GONE_AT_S, "dead": True} for address in gone)


def _changed(site: str, address: str, from_s: float, rate: float) -> dict[str, Any]:
    """A pair's chance from a moment on."""
    return {"client": address, "host": site, "from_s": from_s, "faults": _faults(rate)}


def _rates(seed: int, site: str, nodes: int) -> tuple[float, ...]:
    """By node, the chance that a site answers it well: of four nodes each has another one, drawn by seed."""
    found: list[float] = []
    while len(found) < nodes:
        found += chance.generator(seed, "field rates", site, len(found)).sample(RATES, len(RATES))
    return tuple(found[:nodes])


def _swapped(rate: float) -> float:
    """What a chance becomes when good and bad nodes swap: the best with the worst, the second with the third."""
    return RATES[-1 - RATES.index(rate)]


def _faults(rate: float) -> dict[str, float]:
    """Half of what is not answered well is a 5xx, half a body that is cut off."""
    half = round((1 - rate) / 2, 4)
    return {"server_error": half, "cut_off": half}


def _fixed(seconds: float) -> list[float]:
    return [round(seconds * 1000, 1)] * 2
