"""How long `verify` takes and how much memory: over a store with so many events, on SQLite and on PostgreSQL.

A short story is played through the store's own operations, then copied by SQL with other numbers, until the log is long
enough. `verify` runs in a process of its own, so that its peak memory is its own; it must find nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from research.tools import scale_store, verify_store
from research.tools.cputime import family_s
from tasks.store.sql.database import Store

EVENTS = 1_000_000

_MEASURED = """
import json, re, sys, time
from pathlib import Path
from tasks.store.sql.database import Store, read_now
from tasks.store.verify.verify import verify
store = Store.open(sys.argv[1])
began_s, cpu_s = time.monotonic(), time.process_time()
store.patient = True
with store.read() as conn:
    found = verify(conn, read_now(conn))
took_s, used_s = time.monotonic() - began_s, time.process_time() - cpu_s
print(json.dumps({
    "seconds": round(took_s, 2),
    "cpu_s": round(used_s, 2),
    "peak_mb": round(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024, 1),
    "violations": len(found.violations),
    "first": [one.message for one in found.violations[:3]],
    **{name: found.counts[name] for name in ("events", "subtasks", "attempts", "pages", "reviews")},
}))
"""


def run(shared: Path) -> dict[str, Any]:  # noqa: ARG001 - every bench is called alike
    """Measure both databases.

    Returns:
        ``ratios``: by database `seconds` on the clock and `peak_mb` of the process. ``figures``: rows looked at,
        violations, CPU seconds of the process, and of a server (`server_cpu_s`), `us_per_event`.
    """
    ratios: dict[str, float] = {}
    figures: dict[str, Any] = {}
    for name, started in scale_store.SERVERS.items():
        with (
            tempfile.TemporaryDirectory(prefix="reviewloop-verify-") as folder,
            started(Path(folder)) as server,
        ):
            url = server.url("verify")
            store = Store.open(url)
            try:
                verify_store.fill(store, EVENTS)
            finally:
                store.close()
            command = [sys.executable, "-c", _MEASURED, url]
            before_s = family_s(server.pid) if server.pid is not None else 0.0
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"verify on {name} failed: {done.stderr.strip()[-500:]}")
            told = json.loads(done.stdout)
            if server.pid is not None:
                told["server_cpu_s"] = round(family_s(server.pid) - before_s, 2)
        ratios[f"{name}.seconds"] = told["seconds"]
        ratios[f"{name}.peak_mb"] = told["peak_mb"]
        figures |= {f"{name}.{key}": value for key, value in told.items()}
        figures[f"{name}.us_per_event"] = round(1e6 * told["seconds"] / told["events"], 2)
    return {"bench": "verify", "ratios": ratios, "figures": figures}
