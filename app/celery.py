"""The Celery entry point of the cluster.

    celery -A app.celery worker -P threads -c 4 -Q crawl.NODE   a crawl node
    celery -A app.celery worker -P threads -c 2 -Q control      the scheduler's sweeps
    celery -A app.celery beat                                   their clock

Settings come from REVIEWLOOP_* (docs/cluster.md).
"""

from __future__ import annotations

from app.run import garbage
from app.run.cluster.broker import make_app
from app.run.cluster.worker import Runtime
from app.run.settings import cache_folder, load_settings
from splitter.words import keep_cache_in

garbage.collect_seldom()
keep_cache_in(cache_folder())
settings = load_settings()
app = make_app(settings)
app.steps["worker"].add(Runtime)
