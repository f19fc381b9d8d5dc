"""CPU time of reading a page alone, by rules, without rules and by plain selectolax: 50 pages of a site, one after the other."""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from research.bench.crawl_peers.forum_crawl import learned_figures
from research.bench.crawl_peers.readers import with_selectolax
from research.tools.pages import RULES, review_page
from splitter.catalog.rules import PageRules
from tasks.reading.decode import decode
from tasks.reading.extract import ThreadReader, read_page
from tasks.reading.learned_rules import LearnedRules
from tasks.reading.thread_pages import read_thread_page

_NOW = datetime(2013, 12, 31, tzinfo=UTC)
_PAGES = 50


def page_times(rounds: int) -> dict[str, float]:
    """Return CPU milliseconds of a page from bytes to reviews, without voices.

    Returns:
        ``first_page_ms`` and ``mean_of_50_ms`` without rules; ``learned_mean_of_50_ms`` with rules learned from the first
        pages; ``by_rules_ms`` and ``selectolax_ms``, medians of all rounds, and their ratio in the same round.
    """
    pages = [review_page(number) for number in range(_PAGES)]
    without_rules = _times(pages, _reader(PageRules(main_text=True)))
    learned = _times(pages, _reader(PageRules(main_text=True), LearnedRules().read_thread_page))
    by_rules = _reader(RULES)
    taken = [(_mean(pages, by_rules), _mean(pages, with_selectolax)) for _ in range(rounds)]
    return {
        "first_page_ms": round(without_rules[0], 2),
        "mean_of_50_ms": round(statistics.mean(without_rules), 2),
        "learned_mean_of_50_ms": round(statistics.mean(learned), 2),
        "by_rules_ms": round(statistics.median(ours for ours, _ in taken), 3),
        "selectolax_ms": round(statistics.median(theirs for _, theirs in taken), 3),
        "by_rules_of_selectolax": round(statistics.median(ours / theirs for ours, theirs in taken), 3),
    }


def _reader(rules: PageRules, read_thread: ThreadReader = read_thread_page) -> Callable[[bytes], object]:
    def read(body: bytes) -> object:
        text = decode(body, {}).text
        return read_page(text, "http://shop0.example/p/1.html", rules, now=_NOW, read_thread=read_thread)

    return read


def _mean(pages: Sequence[bytes], read: Callable[[bytes], object]) -> float:
    return statistics.mean(_times(pages, read))


def _times(pages: Sequence[bytes], read: Callable[[bytes], object]) -> list[float]:
    times = []
    for page in pages:
        began = time.thread_time()
        read(page)
        times.append(1000 * (time.thread_time() - began))
    return times


if __name__ == "__main__":
    print(json.dumps({**page_times(int(sys.argv[1])), "learned_rules": learned_figures(_PAGES)}))
