"""The Celery entry point of the cluster.

    celery -A app.celery worker -P threads -c 4 -Q crawl.NODE   a crawl node
    celery -A app.celery worker -P threads -c 2 -Q control      the scheduler's sweeps
    celery -A app.celery beat                                   their clock

Settings come from REVIEWLOOP_* (docs/cluster.md).
"""

from __future__ import annotations

import atexit
import gc

from app.cluster.broker import make_app
from app.cluster.worker import Runtime
from app.config import cache_folder, from_environment
from splitter.words import keep_cache_in

# Looking for garbage in all that was loaded is most of a process's end: 0.4 s of CPU, which a busy machine gives late.
atexit.register(gc.freeze)
keep_cache_in(cache_folder())
settings = from_environment()
app = make_app(settings)
app.steps["worker"].add(Runtime)
