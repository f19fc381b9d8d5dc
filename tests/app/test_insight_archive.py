"""Themes that a person archives until they rise."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, time, timedelta

import pytest
from insight_world import CLEAN, CONTAMINATED_WEEKS, GROUPS, SPOILT, TODAY, fill

from app.insight.counts import Selection
from app.insight.findings import list_findings
from app.insight.product import read_product
from app.insight.themes import judge_rises
from app.reports.product_list import list_rising
from tasks.store.content import archived_themes
from tasks.store.queries.themes import RISES, Period, list_archived
from tasks.store.queue.upkeep import store_value
from tasks.store.sql.database import Store

PERIOD = Period(TODAY - timedelta(days=89), TODAY)


def read_archived(store, theme, weeks_ago):
    """Archive a theme at a time, and return the view of the product."""
    day = TODAY - timedelta(weeks=weeks_ago)
    with store.begin(now=datetime.combine(day, time(), UTC)) as tx:
        archived_themes.archive(tx, 2, theme)
    with store.read() as tx:
        return read_product(tx, (2, SPOILT), Selection(PERIOD), TODAY, GROUPS)


def test_an_archived_theme_is_folded_away(store):
    fill(store)
    view = read_archived(store, "service", 3)
    assert [row.theme for row in view.archived_themes] == ["service"]
    assert view.themes.themes[-1].theme == "service"
    assert "service" not in {row.theme for row in view.shown_themes}


@pytest.mark.parametrize(("weeks_ago", "is_archived"), [(1, True), (CONTAMINATED_WEEKS + 2, False)])
def test_a_theme_comes_back_with_the_first_rise_after_it_was_archived(store, weeks_ago, is_archived):
    fill(store)
    view = read_archived(store, "foreign_matter", weeks_ago)
    (row,) = [row for row in view.themes.themes if row.theme == "foreign_matter"]
    assert (row.state, row.archived) == ("rising", is_archived)
    assert any("Foreign matter" in str(one) for one in list_findings(view)) is not is_archived
    assert "none_rises" not in {one.kind for one in list_findings(view)}
    assert (view.serious == []) is is_archived
    with store.begin() as tx:
        assert list_rising(tx) == []
        store_value(tx, RISES, tx.now, judge_rises(tx, TODAY, GROUPS))
        listed = [(one.product_id, one.product, one.theme) for one in list_rising(tx)]
        assert listed == ([] if is_archived else [(2, SPOILT, "foreign_matter")])


def test_the_archive_is_per_product_and_is_undone(store):
    fill(store)
    read_archived(store, "service", 3)
    with store.begin() as tx:
        assert list_archived(tx, [1]) == []
        assert [one.theme for one in list_archived(tx, [1, 2])] == ["service"]
        assert archived_themes.restore(tx, 1, "service") is False
        assert archived_themes.restore(tx, 2, "service") is True
        assert list_archived(tx, [1, 2]) == []


def test_the_command_archives_by_id_or_name(sqlite_url, reviewloop):
    with closing(Store.open(sqlite_url)) as store:
        fill(store)

    def run(*options):
        return reviewloop("insight", "archive", *options, "--db", sqlite_url)

    done = json.loads(run(CLEAN, "客服售后", "--json").stdout)
    assert done == {"product": CLEAN, "theme": "service", "archived": True}
    listed = reviewloop("insight", "themes", CLEAN, "--db", sqlite_url).stdout
    assert "Archived until they rise: Service" in listed
    assert "no longer archived" in run(CLEAN, "service", "--undo").stdout
    for options, told in (
        ([CLEAN, "service", "--undo"], "is not archived"),
        ([CLEAN, "servise"], "did you mean 'service'"),
        ([CLEAN[:-1], "service"], CLEAN),
    ):
        refused = run(*options)
        assert refused.exit_code == 2
        assert told in refused.stderr
