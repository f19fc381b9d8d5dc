"""The guard of CI: the product must not cost much more CPU time a page than the results page says, against requests and bs4.

`python -m research.bench.crawl_guard` lets ours and requests + gevent + beautifulsoup4 crawl `crawl.FEW` pages in turn, up to three
times, and exits with 1 if no pair reaches 80 % of `vs_requests_bs4_few` in docs/benchmarks.json. Both are measured on the same
machine within a minute, so that the ratio changes with the product and hardly with the machine.
"""

from __future__ import annotations

import sys

from research.bench import results
from research.bench.crawl import FEW, OURS, REQUESTS_BS4, course
from research.tools.meter import cores

RATIO = "vs_requests_bs4_few"
PAIRS = 3
SHARE = 0.8
"""Least share of the ratio in the results page."""


def is_reached(expected: float) -> bool:
    """Return True as soon as a pair of crawls reaches the share of the expected ratio; prints every pair."""
    least = SHARE * expected
    with course(*cores(), FEW) as take_turn:
        for pair in range(1, PAIRS + 1):
            theirs = take_turn(REQUESTS_BS4, FEW).process_cpu_s / FEW
            ours = take_turn(OURS, FEW).process_cpu_s / FEW
            print(
                f"pair {pair}: {RATIO} {theirs / ours:.2f}, at least {least:.2f} (80 % of {expected:.2f}); "
                f"CPU ms a page: ours {1000 * ours:.2f}, requests + bs4 {1000 * theirs:.2f}",
                flush=True,
            )
            if theirs / ours >= least:
                return True
    return False


if __name__ == "__main__":
    recorded = results.read(results.FILE)["crawl"]["ratios"][RATIO]
    if not is_reached(recorded):
        sys.exit(f"bench crawl: ours fell below {SHARE:.0%} of the results page in all {PAIRS} pairs")
