"""The benches: module and subject of each, and the ratios that are better if they are lower.

A bench is a module with a function `run(shared, smallest, **options)`. Its options are click's decorators on it, and it returns
``{"bench", "ratios", "figures"}``. What it lists in ``figures["below"]`` makes the command fail. With `smallest` it runs as small as it can, which shows that it works and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from splitter.errors import InputError

BENCHES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "balance": ("papers.balance", "balancing by predicted run times (2019 paper)"),
        "buffers": ("bench.buffers", "batches and memory between a node and far servers (2022 paper)"),
        "coroutines": ("bench.coroutines", "coroutines against threads (2014 paper)"),
        "crawl": ("bench.crawl", "the whole pipeline against Scrapy, Crawlee, requests and the limit"),
        "drawn": ("bench.strategies.drawn", "allocation in scenarios drawn by seed against a proven bound"),
        "field": ("bench.field.bench", "the whole loop over real HTTP against a bound, by strategy"),
        "hostile": ("bench.hostile", "how long hostile pages are read and hold the event loop"),
        "insight": ("bench.insight", "questions about themes over a million reviews"),
        "keywords": ("bench.quality.keywords", "keywords of any name against gold words"),
        "politeness": ("bench.politeness", "how several processes keep one host's limits, and use them"),
        "proximity": ("papers.proximity", "network coordinates (2010 paper)"),
        "reading": ("bench.quality.reading", "how right saved pages of every kind are read"),
        "relevance": ("bench.quality.relevance", "which pages are reviews of the product"),
        "report": ("bench.quality.report", "sentences of reports, counted again from the reviews alone"),
        "reposts": (
            "bench.quality.reposts",
            "reviews of different buyers, and true reposts, that are linked",
        ),
        "scale": ("bench.scale", "what a decision costs, up to a million waiting subtasks"),
        "seen": ("bench.seen", "what it costs to know which pages are stored"),
        "splitter": ("bench.splitter", "names a second, from name to search URL"),
        "states": ("bench.states", "false alarms, delays and changes of state of themes, in drawn worlds"),
        "story": (
            "bench.quality.story",
            "alerts, alarms and new phrases of drawn products, from import to page",
        ),
        "strategies": ("bench.strategies.bench", "every allocation strategy against a proven bound"),
        "themes": ("bench.quality.themes", "what complaints are about, on texts that nobody has read"),
        "verify": ("bench.verify", "seconds and peak memory of verify over a million events"),
        "voices": ("bench.quality.voices", "whose voice a post is, by sources that nothing was learned from"),
    }
)
"""Benches by name: the module below `research`, and the subject."""

LOWER_IS_BETTER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "balance": ("*_over_exact",),
        "crawl": ("writing_vs_raw_sqlite",),
        "coroutines": ("memory_*", "rss_*"),
        "field": ("*.requests_per_page", "*.done_of_bound"),
        "hostile": ("*",),
        "insight": ("*",),
        "politeness": ("*max_over_limit_10s",),
        "proximity": ("*_relative_error_median", "*_stretch_median"),
        "reposts": ("buyers_linked",),
        "scale": ("cost_*",),
        "states": ("*",),
        "story": ("story.*", "crawl.*", "phrases.false*"),
        "themes": ("*_ms",),
        "verify": ("*",),
        "voices": ("*calibration_error",),
    }
)
"""Patterns of ratios that get worse by growing."""


def function(name: str) -> Callable[..., dict[str, Any]]:
    """Return the function that measures."""
    found: Callable[..., dict[str, Any]] = import_module(f"research.{BENCHES[name][0]}").run
    return found


def own_lines(name: str, figures: Mapping[str, Any]) -> Iterator[str] | None:
    """Return the lines that a bench prints instead of a plain list of its figures; None if it has no form of its own."""
    form: Callable[..., Iterator[str]] | None = getattr(
        import_module(f"research.{BENCHES[name][0]}"), "figure_lines", None
    )
    return form(figures) if form is not None else None


def is_lower_better(name: str, ratio: str) -> bool:
    """Return True if a bench's ratio gets worse by growing."""
    return any(fnmatchcase(ratio, pattern) for pattern in LOWER_IS_BETTER.get(name, ()))


def shared_file(shared: Path, name: str) -> Path:
    """Return the path of a file that a bench cannot run without. Raises InputError if the shared data lack it."""
    path = shared / name
    if not path.exists():
        raise InputError(f"{path} is missing: name the folder of the shared data with --shared")
    return path
