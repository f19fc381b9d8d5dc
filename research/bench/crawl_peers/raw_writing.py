"""Writes what a crawl stored once more by sqlite3 alone: the same rows into the same tables and indexes, in commits of 100 pages.

`python -m research.bench.crawl_peers.raw_writing DATABASE COPY` prints the CPU seconds.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

_PRAGMAS = """
PRAGMA journal_mode=WAL;
PRAGMA synchronous=NORMAL;
PRAGMA foreign_keys=ON;
PRAGMA temp_store=MEMORY;
PRAGMA wal_autocheckpoint=4000;
"""
_SCHEMA = (
    "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type DESC"
)
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
_PARENTS = "SELECT DISTINCT f.\"table\" FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE m.type = 'table'"

_PAGES_OF_A_COMMIT = 100

Batch = tuple[str, Sequence[tuple[Any, ...]]]
"""A table, and rows of it."""


def raw_writing_s(crawled: Path, copy: Path) -> float:
    """Return the CPU seconds of writing every row of a store into a new file.

    A transaction has the rows of 100 pages, as a peer's does; the first one also has what pages refer to, the last one the rest.
    Rows are written once, in their last state.
    """
    with closing(sqlite3.connect(crawled)) as source:
        schema = [sql for (sql,) in source.execute(_SCHEMA)]
        transactions = _transactions(source)
    with closing(sqlite3.connect(copy, isolation_level=None)) as target:
        target.executescript(_PRAGMAS)
        for statement in schema:
            target.execute(statement)
        began = time.thread_time()
        for batches in transactions:
            target.execute("BEGIN IMMEDIATE")
            target.execute("PRAGMA defer_foreign_keys=ON")
            for table, rows in batches:
                target.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
            target.execute("COMMIT")
        return time.thread_time() - began


def _transactions(source: sqlite3.Connection) -> list[list[Batch]]:
    """Return the rows of each transaction, by table."""
    ids = [number for (number,) in source.execute("SELECT id FROM pages ORDER BY 1")]
    commit_of = {number: place // _PAGES_OF_A_COMMIT for place, number in enumerate(ids)}
    commits = range(max(commit_of.values()) + 1)
    parents = {name for (name,) in source.execute(_PARENTS)}
    by_commit: dict[int, dict[str, list[tuple[Any, ...]]]] = {at: defaultdict(list) for at in commits}
    for (table,) in source.execute(_TABLES).fetchall():
        cursor = source.execute(f"SELECT * FROM {table}")
        columns = [column[0] for column in cursor.description]
        key = "id" if table == "pages" else "page_id"
        place = columns.index(key) if table == "pages" or "page_id" in columns else None
        elsewhere = commits[0] if table in parents else commits[-1]
        for row in cursor:
            by_commit[elsewhere if place is None else commit_of[row[place]]][table].append(row)
    return [_in_order(tables, parents) for tables in by_commit.values()]


def _in_order(tables: Mapping[str, Sequence[tuple[Any, ...]]], parents: set[str]) -> list[Batch]:
    return sorted(tables.items(), key=lambda batch: (batch[0] != "pages", batch[0] not in parents))


if __name__ == "__main__":
    print(json.dumps(raw_writing_s(Path(sys.argv[1]), Path(sys.argv[2]))))
