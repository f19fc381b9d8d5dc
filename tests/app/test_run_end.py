"""How a run ends: reviews by product, some of them, what to do next; and its exit status."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace

import click
import pytest

from app.cli.command import App
from app.cli.crawl import crawling
from app.cli.crawl.run_end import finish
from app.cli.options import DatabaseUnusable
from app.reports.summary import get_run_view, mark
from app.run.process import Until
from app.run.setting_fields import Settings
from app.views.status import get_status_view
from tasks.domain.errors import StoreUnavailable
from tasks.store.queries.queues import Stored
from tasks.store.sql.database import Store


@pytest.fixture
def look(crawled):
    """Return the end of a run that began at a place in the store."""
    settings = Settings(sites="paper-2014")
    store = Store.open(crawled.url)

    def look(begin):
        with store.read() as tx:
            status = get_status_view(tx, settings.catalog(), settings.buffer())
            return get_run_view(tx, begin, status, seconds=12.0, settings={})

    yield look
    store.close()


@pytest.fixture
def done(look):
    return look(Stored())


def ended(done, until, capsys):
    """Exit status, standard output, standard error."""
    context = click.Context(click.Command("run"), info_name="run")
    context.params = {"db": "x.db"}
    app = App(context, False)
    with context:
        app.show(finish(app, done, until, refused=False))
    told = capsys.readouterr()
    return app.exit_status, told.out, told.err


def test_a_run_ends_with_what_a_person_wants(done, crawled, capsys):
    status, out, _ = ended(done, Until(done=True), capsys)
    assert status == 0
    counts = {row["name"]: row["reviews"] for row in crawled.ask("product", "list")["products"]}
    for name, n in counts.items():
        assert any(name in line and str(n) in line for line in out.splitlines())
    assert any(row.body[:20] in out for row in done.samples)
    assert "reviewloop export reviews -o reviews.xlsx --db x.db" in out
    assert "reviewloop control pairs --db x.db" in out


@pytest.mark.parametrize(
    ("until", "status", "told"),
    [
        (Until(done=True), 1, True),
        (Until(done=True, seconds=600), 1, True),
        (Until(done=True, seconds=10), 0, False),
        (Until(), 0, True),
    ],
)
def test_work_that_is_left_is_told_once(done, capsys, until, status, told):
    """Ended by Ctrl-C; not by its own time, and where there is none, that is how it is ended."""
    left = replace(done, left=3, queues={**done.queues, "WAIT": 3}, waits_for_hosts=())
    got, _, err = ended(left, until, capsys)
    assert got == status
    assert ("3 subtasks to do" in err) == told
    assert len(err.splitlines()) <= 1


def test_a_run_shows_its_own_reviews_only(crawled, look):
    store = Store.open(crawled.url)
    assert look(mark(store)).samples == ()
    assert len(look(Stored()).samples) > 1
    store.close()


def test_a_run_whose_database_went_away_ends_with_one_line(monkeypatch):
    def unanswered(*_given):
        raise StoreUnavailable("timeout expired")

    monkeypatch.setattr(crawling, "mark", lambda _store: Stored())
    monkeypatch.setattr(crawling, "get_status_view", unanswered)
    app = App(click.Context(click.Command("run")), False)
    app.settings = Settings(sites="paper-2014")
    store = Store.open("sqlite://")
    monkeypatch.setattr(store, "read", nullcontext)
    with pytest.raises(DatabaseUnusable):
        crawling.watch(app, store, 1, lambda _watch: None)
