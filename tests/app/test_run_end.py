"""How a run ends: reviews by product, some of them, what to do next; and its exit status."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.cli.crawl import crawling
from app.cli.crawl.run_end import finish
from app.cli.options import DatabaseUnusable
from app.reports.summary import mark, summary
from app.run.process import Until
from app.run.setting_fields import Settings
from tasks.domain.errors import StoreUnavailable
from tasks.store.queries.queues import Stored
from tasks.store.sql.database import Store


@pytest.fixture
def done(crawled):
    store = Store.open(crawled.url)
    yield summary(store, Stored(), 12.0, {})
    store.close()


def ended(done, until, capsys):
    """Exit status, standard output, standard error."""
    settings = Settings(sites="paper-2014")
    status = 0
    try:
        finish(
            done,
            settings,
            until,
            as_json=False,
            refused=False,
            db_hint=" --db x.db",
        )
    except SystemExit as end:
        status = end.code
    told = capsys.readouterr()
    return status, told.out, told.err


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
    state = replace(done.state, queues={**done.state.queues, "WAIT": 3}, waits=())
    left = replace(done, state=state)
    got, _, err = ended(left, until, capsys)
    assert got == status
    assert ("3 subtasks to do" in err) == told
    assert len(err.splitlines()) <= 1


def test_a_run_shows_its_own_reviews_only(crawled):
    store = Store.open(crawled.url)
    assert summary(store, mark(store), 1.0, {}).samples == ()
    assert len(summary(store, Stored(), 1.0, {}).samples) > 1
    store.close()


def test_a_run_whose_database_went_away_ends_with_one_line(monkeypatch):
    def unanswered(*_given):
        raise StoreUnavailable("timeout expired")

    monkeypatch.setattr(crawling, "mark", lambda _store: Stored())
    monkeypatch.setattr(crawling, "summary", unanswered)
    with pytest.raises(DatabaseUnusable):
        crawling.watched(Settings(sites="paper-2014"), Store.open("sqlite://"), 1, lambda _watch: None)
