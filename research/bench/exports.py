"""How long an export of so many reviews takes in each format, and its peak memory.

Generated reviews, 25 a page, are stored under a short story of the loop. Each export is a process of its own
(`reviewloop export reviews`), so that its memory is its own; beside it that of a store with few reviews.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from sqlalchemy import func, select

from app.files.exporting import FORMATS
from app.run.settings import as_environment, from_environment
from research.tools import scale_store, verify_store
from tasks.store.bulk import insert_rows, time_writer
from tasks.store.database import Store, read_now
from tasks.store.tables import page_products, pages, reviews

REVIEWS = 1_000_000
FEW = 10_000
_A_PAGE = 25
_LOOK_S = 0.05
_HIGHEST_MEMORY = re.compile(r"VmHWM:\s+(\d+) kB")
_AT_ONCE = 10_000
_FORMATS = {"sqlite": FORMATS, "postgres": ("csv",)}
_WORDS = [
    "蒙牛纯甄",
    "光明",
    "酸奶",
    "有异物",
    "客服",
    "一直推脱",
    "要求赔偿",
    "包装破损",
    "孩子喝了",
    "拉肚子",
    "日期新鲜",
    "物流快",
]


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure.

    Returns:
        ``ratios``: by database and format `seconds` on the clock, `peak_mb`, and `peak_growth`: that peak over the one
        with few reviews. ``figures``: CPU seconds, size of the file, reviews.
    """
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {"reviews": REVIEWS}
    for name, started in scale_store.SERVERS.items():
        if not _FORMATS[name]:
            continue
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-exports-") as folder,
            started(Path(folder)) as server,
        ):
            few, many = server.url("few"), server.url("many")
            for url, n in ((few, FEW), (many, REVIEWS)):
                store = Store.open(url)
                fill(store, n)
                store.close()
            for form in _FORMATS[name]:
                file = Path(folder) / f"reviews.{form}"
                least = _export(few, file)["peak_mb"]
                told = _export(many, file)
                ratios[f"{name}.{form}.seconds"] = told["seconds"]
                ratios[f"{name}.{form}.peak_mb"] = told["peak_mb"]
                ratios[f"{name}.{form}.peak_growth"] = round(told["peak_mb"] / least, 2)
                figures[f"{name}.{form}.cpu_s"] = told["cpu_s"]
                figures[f"{name}.{form}.mb"] = round(file.stat().st_size / 1e6, 1)
                file.unlink()
    return {"bench": "exports", "ratios": ratios, "figures": figures}


def _export(url: str, file: Path) -> dict[str, float]:
    """Seconds, CPU seconds and peak memory of an export's process."""
    command = [sys.executable, "-m", "app", "export", "reviews", "--db", url, "-o", str(file)]
    began_s = time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, env=as_environment(from_environment()), stdout=said, stderr=said)
        peak_kb = 0  # not `ru_maxrss`: a child's begins at the memory of the process that made it
        while (ended := os.wait4(process.pid, os.WNOHANG))[0] == 0:
            peak_kb = max(peak_kb, _peak_kb(process.pid))
            time.sleep(_LOOK_S)
        _, status, used = ended
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"the export ended with status {process.returncode}: {said.read()}")
    return {
        "seconds": round(time.monotonic() - began_s, 1),
        "cpu_s": round(used.ru_utime + used.ru_stime, 1),
        "peak_mb": round(peak_kb / 1024, 1),
    }


def _peak_kb(pid: int) -> int:
    """Highest memory of a process so far; 0 where it has ended, or is still to become the program."""
    highest = _HIGHEST_MEMORY.search(Path(f"/proc/{pid}/status").read_text("ascii"))
    program = Path(f"/proc/{pid}/cmdline").read_bytes()
    return int(highest[1]) if highest and b"export" in program else 0


def fill(store: Store, n: int) -> None:
    """Migrate an empty store and fill it with so many reviews, the same ones each time."""
    verify_store.fill(store, 1)
    with store.begin() as conn:
        now = time_writer(conn)(read_now(conn))
        there, first = (
            conn.execute(select(func.count()).select_from(reviews)).scalar_one(),
            conn.execute(select(func.max(pages.c.id))).scalar_one() + 1,
        )
        n -= there
        of = range(first, first + -(-n // _A_PAGE))
        page_columns = (
            "id",
            "url",
            "url_key",
            "site",
            "title",
            "content_hash",
            "encoding",
            "fetched_at",
            "node",
        )
        insert_rows(
            conn,
            pages,
            (*page_columns, "attempt_id"),
            [
                (p, f"http://s.cn/{p}", _digest(str(p)), "s.cn", f"标题{p}", "0" * 32, "utf-8", now, "n1", 1)
                for p in of
            ],
        )
        links = ("page_id", "product_id", "linked_at", "verdict")
        insert_rows(conn, page_products, links, [(p, 1, now, "review") for p in of])
        columns = (
            "page_id",
            "key",
            "title",
            "body",
            "author",
            "date_text",
            "published_at",
            "rating",
            "url",
            "site",
        )
    rows = _reviews(of, n, now)
    while some := list(islice(rows, _AT_ONCE)):
        # A transaction each: what PostgreSQL gets with COMMIT has to be done within the time of an answer.
        with store.begin() as conn:
            insert_rows(conn, reviews, (*columns, "text_hash", "collected_at", "node", "attempt_id"), some)


def _reviews(of: range, n: int, now: Any) -> Iterator[tuple[Any, ...]]:
    chance = Random(0)
    for k in range(n):
        page = of[k // _A_PAGE]
        body = "，".join(chance.choices(_WORDS, k=chance.randrange(3, 30))) + f"（{k}）"
        dated = (f"作者{k % 5000}", "2026-05-01", now, float(k % 5 + 1))
        yield (page, str(k), "标题", body, *dated, f"http://s.cn/{page}", "s.cn", _digest(body), now, "n1", 1)


def _digest(text: str) -> bytes:
    return blake2b(text.encode(), digest_size=16).digest()
