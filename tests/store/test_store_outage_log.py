"""While the database is away the scheduler says so once, and once that it is back: no traceback a tick."""

import logging
from contextlib import contextmanager

import pytest

from tasks.domain.errors import StoreUnavailable
from tasks.jobs import celery_tasks, runtime
from tasks.jobs.runtime import Control, Opened


class Away:
    """A store whose database is away, or there."""

    def __init__(self, store):
        self._store = store
        self.away = True

    @contextmanager
    def begin(self):
        if self.away:
            raise StoreUnavailable("connection refused")
        with self._store.begin() as tx:
            yield tx


@pytest.fixture
def database(world, monkeypatch):
    database = Away(world.store)
    control = Control(
        store=database,
        context=world.context,
        write=_away,
        plan=_away,
        report=lambda: _raised(ValueError("of another kind")),
        deliver=None,
        alerts=None,
    )
    monkeypatch.setattr(runtime, "opened", Opened(control))
    monkeypatch.setattr(celery_tasks, "_outage", celery_tasks._Outage())
    return database


def _raised(error):
    raise error


def _away(*_):
    raise StoreUnavailable("connection refused")


def test_one_line_when_it_goes_and_one_when_it_is_back(database, caplog):
    caplog.set_level(logging.INFO, "reviewloop.sweeps")
    for _ in range(3):
        celery_tasks.sweep.run("recall")
        celery_tasks.sweep.run("plan")
        celery_tasks.sweep.run("retention")
    assert [record.getMessage() for record in caplog.records] == [
        "the database is away, no recall now; sweeps go on with its return: connection refused"
    ]
    database.away = False
    for _ in range(3):
        celery_tasks.sweep.run("recall")
    assert len(caplog.records) == 2
    assert caplog.records[-1].getMessage().startswith("the database is back after")
    assert all(record.exc_info is None for record in caplog.records)
    database.away = True
    celery_tasks.sweep.run("recall")
    assert len(caplog.records) == 3, "another outage is told, too"


@pytest.mark.usefixtures("database")
def test_other_errors_are_raised():
    with pytest.raises(ValueError, match="of another kind"):
        celery_tasks.sweep.run("report")
