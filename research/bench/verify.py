"""How long `verify` takes and how much memory: over a store with so many events, on SQLite and on PostgreSQL.

A short story is played through the store's own operations, then copied by SQL with other numbers, until the log is long
enough. `verify` runs in a process of its own, so that its peak memory is its own; it must find nothing.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from research.tools.meter import peak_mb
from tasks.store.sql.database import Store
from tasks.store.verify.verify import verify

_LONGEST_S = 600.0


def run(_shared: Path, smallest: bool) -> dict[str, Any]:
    """Measure both databases.

    Returns:
        ``ratios``: by database `seconds` on the clock and `peak_mb` of the process. ``figures``: rows read,
        violations, CPU seconds of the process, and of a server (`server_cpu_s`), `us_per_event`.
    """
    # Imported here: the measured process imports this module, and must not need their memory.
    from research.tools.processes import printed_by
    from research.tools.scale_store import SERVERS
    from research.tools.verify_store import fill

    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {}
    for name, started in SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-verify-") as folder,
            started(Path(folder)) as server,
        ):
            url = server.url("verify")
            with closing(Store.open(url)) as store:
                fill(store, 1_000 if smallest else 1_000_000)
            before_s = server.cpu_s()
            printed = printed_by(__name__, url, timeout_s=_LONGEST_S)
            printed["server_cpu_s"] = round(server.cpu_s() - before_s, 2)
        ratios[f"{name}.seconds"] = printed["seconds"]
        ratios[f"{name}.peak_mb"] = printed["peak_mb"]
        figures |= {f"{name}.{key}": value for key, value in printed.items()}
        figures[f"{name}.us_per_event"] = round(1e6 * printed["seconds"] / printed["events"], 2)
    return {"bench": "verify", "ratios": ratios, "figures": figures}


def _verified(url: str) -> dict[str, Any]:
    store = Store.open(url)
    store.patient = True
    began_s, cpu_s = time.monotonic(), time.process_time()
    with store.read() as tx:
        found = verify(tx)
    return {
        "seconds": round(time.monotonic() - began_s, 2),
        "cpu_s": round(time.process_time() - cpu_s, 2),
        "peak_mb": round(peak_mb(), 1),
        "violations": len(found.violations),
        "first": [one.message for one in found.violations[:3]],
        **{name: found.counts[name] for name in ("events", "subtasks", "attempts", "pages", "reviews")},
    }


if __name__ == "__main__":
    print(json.dumps(_verified(sys.argv[1])))
