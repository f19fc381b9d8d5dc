"""Import the modules that the programs of a cluster need, in the process that these programs are forked from."""

import gc
import signal
from importlib import import_module

from app.run.cluster.processes import end_with_parent
from app.run.process import share_arena
from tasks.reading.judge.voice import network

# Without this, forks would keep the process alive. They end with it.
end_with_parent(signal.SIGTERM)
share_arena()  # forks do as well
for _name in (
    "app.run.cluster.celery_app",
    "app.run.cluster.control_process",
    "app.run.cluster.node_process",
    "celery.app.control",
    "celery.app.events",
    "celery.app.log",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.backends.base",
    "celery.concurrency.thread",
    "celery.worker.autoscale",
    "celery.worker.components",
    "celery.worker.consumer.delayed_delivery",
    "celery.worker.strategy",
    "psycopg2.extras",
    "splitter.catalog.load",
    "sqlalchemy.dialects.postgresql.psycopg2",
    "tasks.jobs.celery_tasks",
    "tasks.jobs.ticks",
    "tasks.signin.browser",
    "tasks.store.sql.postgres",
    "uvloop",
):
    import_module(_name)
network()

# Garbage collection in a fork would copy all memory that it visits.
gc.collect()
gc.freeze()
