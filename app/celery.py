"""The Celery entry point of the cluster.

    celery -A app.celery worker -P threads -c 4 -Q crawl.NODE   a crawl node
    celery -A app.celery worker -P threads -c 2 -Q control      the scheduler's sweeps
    celery -A app.celery beat                                   their clock

`up` starts them as a module, because the command `celery` imports a terminal (prompt_toolkit), 9 MB in each process:

    python -m app.celery worker NAME QUEUE SLOTS
    python -m app.celery beat

Settings come from REVIEWLOOP_* (docs/cluster.md).
"""

from __future__ import annotations

import platform
import sys

from app.run.cluster.celery_app import make_app
from app.run.process import collect_seldom, share_arena
from app.run.settings import load_settings

collect_seldom()
share_arena()
app = make_app(load_settings())


def main(program: str, *given: str) -> int:
    """Run beat, or a worker with the given name, queue and slots. Return the exit status."""
    options = {"loglevel": "WARNING", "quiet": True}
    if program == "beat":
        app.Beat(**options).run()
        return 0
    name, queue, slots = given
    host = f"{name}@{platform.node()}"
    worker = app.Worker(hostname=host, queues=queue, concurrency=int(slots), pool_cls="threads", **options)
    worker.start()
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
