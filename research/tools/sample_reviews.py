"""Reviews drawn at random from a run over saved pages, to be read with the eye beside their page.

    python -m research.tools.sample_reviews --seed 1 --part tuning

Every saved page of the shared data (or of another folder with an ``index.csv`` of file, kind and url) is read as a
crawl without rules reads it, result pages and feeds apart; what is no review is left out, as it is before a page is
stored. At most four reviews of a page are drawn, so that long threads don't outweigh the rest. A page belongs to the
tuning or to the held-out part by a hash of its name (`research.bench.records.part_of`): what is read to mend faults comes from
the one, what is reported from the other.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from research.bench.records import part_of
from splitter.catalog.rules import PageRules
from tasks.domain.failures import FetchError
from tasks.domain.pages import Review
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.relevance import screen_reviews

_RULES = PageRules(main_text=True)
_NOW = datetime(2024, 6, 1, tzinfo=UTC)
_FOLDERS = ("pages", "pages-2024")
_LEFT_OUT = ("serp", "weibo-search", "feed")
_OF_A_PAGE = 4


def pages(folders: Iterable[Path], part: str) -> Iterator[tuple[Path, str]]:
    """The saved pages of a part ("all": of both) and their addresses, in the order of their names."""
    for folder in folders:
        with (folder / "index.csv").open(encoding="utf-8") as file:
            rows = sorted(csv.DictReader(file), key=lambda row: row["file"])
        for row in rows:
            if row["kind"] not in _LEFT_OUT and part in ("all", part_of(row["file"])):
                yield folder / row["file"], row.get("url") or f"http://{row.get('site') or 'example.com'}/a"


def stored(path: Path, url: str) -> tuple[Review, ...]:
    """What a crawl without rules would store of a page."""
    try:
        read = read_page(decode(path.read_bytes(), {}).text, url, _RULES, now=_NOW)
    except FetchError:
        return ()
    return screen_reviews(read, read.reviews, main_text=True)[0]


def drawn(
    folders: Iterable[Path], part: str, seed: int, count: int
) -> tuple[list[tuple[str, Review]], int, int]:
    """Reviews with the names of their pages; from how many they were drawn, and of how many pages."""
    random = Random(seed)
    found: list[tuple[str, Review]] = []
    with_reviews = 0
    for path, url in pages(folders, part):
        reviews = stored(path, url)
        with_reviews += bool(reviews)
        found += [(path.name, review) for review in random.sample(reviews, min(_OF_A_PAGE, len(reviews)))]
    return random.sample(found, min(count, len(found))), len(found), with_reviews


def main() -> None:
    """Prints a line of JSON for each review, and how many there were."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--shared", type=Path, default=Path("../shared/data"))
    parser.add_argument("--folder", type=Path, help="another folder of saved pages")
    parser.add_argument("--part", choices=("tuning", "held_out", "all"), default="all")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    folders = [options.folder] if options.folder else [options.shared / name for name in _FOLDERS]
    reviews, whole, of_pages = drawn(folders, options.part, options.seed, options.count)
    for file, review in sorted(reviews, key=lambda one: (one[0], one[1].key)):
        print(json.dumps({"page": file, **review._asdict()}, ensure_ascii=False, default=str))
    print(f"{len(reviews)} of {whole} reviews of {of_pages} pages", file=sys.stderr)


if __name__ == "__main__":
    main()
