"""The Celery entry point of the cluster.

    celery -A app.celery worker -P threads -c 4 -Q crawl.NODE   a crawl node
    celery -A app.celery worker -P threads -c 2 -Q control      the scheduler's sweeps
    celery -A app.celery beat                                   their clock

Settings come from REVIEWLOOP_* (docs/cluster.md).
"""

from __future__ import annotations

from app.run.cluster.celery_app import make_app
from app.run.process import collect_seldom
from app.run.settings import load_settings

collect_seldom()
app = make_app(load_settings())
