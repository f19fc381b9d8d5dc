"""What the page of a product says: findings, filters, weeks and what was expected in them."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pytest
from insight_world import CONTAMINATED_WEEKS, GROUPS, SPOILT, TODAY, fill

from app.insight.counts import Selection
from app.insight.findings import list_findings
from app.insight.product import read_product
from app.insight.weekly import WEEKS
from app.reports.report import report
from app.run.version import MIGRATIONS
from app.views.words import switch_language
from splitter.catalog.load import builtin
from tasks.store.queries.themes import Period
from tasks.store.sql import schema
from tasks.store.sql.database import Store

RECENT = Period(TODAY - timedelta(days=89), TODAY)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store.open(f"sqlite:///{tmp_path_factory.mktemp('insight') / 'r.db'}")
    with closing(store):
        schema.upgrade(store, MIGRATIONS)
        fill(store)
        yield store


@pytest.fixture
def read(store):
    def read_choice(period=RECENT, site="", theme=""):
        with store.read() as tx:
            return read_product(tx, (2, SPOILT), Selection(period, site, theme), TODAY, GROUPS)

    return read_choice


def test_the_findings_say_how_many_and_what_rises_since_when(read):
    view = read()
    (rising,) = [row for row in view.themes.themes if row.state == "rising"]
    assert view.themes.themes[0] is rising
    assert TODAY - timedelta(weeks=CONTAMINATED_WEEKS) <= rising.state_since
    assert rising.state_since + timedelta(weeks=rising.state_weeks) == TODAY - timedelta(days=TODAY.weekday())
    first, second = map(str, list_findings(view))
    assert first.startswith(f"Last 90 days: {view.complaints} complaints, {-view.change:.0%} fewer")
    assert "Foreign matter" in second
    assert str(rising.state_since) in second
    assert f"for {rising.state_weeks} weeks" in second
    with switch_language("zh"):
        first, second = map(str, list_findings(view))
        assert "异物" in second
        assert f"已 {rising.state_weeks} 周" in second


def test_filters_count_a_part_and_keep_every_theme_and_state(read):
    whole = read()
    sites = {site: read(site=site) for site in whole.all_sites}
    assert set(sites) == {"jd.com", "12315.com"}
    assert sum(view.matching for view in sites.values()) == whole.reviews
    assert sum(view.complaints for view in sites.values()) == whole.complaints
    themes = {theme: read(theme=theme) for theme in whole.all_themes}
    assert sum(view.matching for view in themes.values()) == sum(
        row.complaints for row in whole.themes.themes
    )
    for theme, view in themes.items():
        (row,) = view.themes.themes
        assert row == next(one for one in whole.themes.themes if one.theme == theme)
        assert view.complaints == view.matching == row.complaints
        assert sum(one.complaints for one in view.weeks) > 0
        assert sum(view.by_month.values()) == sum(view.by_site.values()) == row.complaints
    at_shop = {row.theme: row for row in sites["jd.com"].themes.themes}
    assert {theme: row.state for theme, row in at_shop.items()} == {
        row.theme: row.state for row in whole.themes.themes
    }
    assert {quote.site for row in at_shop.values() for quote in row.quotes} == {"jd.com"}
    both = read(site="12315.com", theme="foreign_matter")
    assert both.complaints == both.by_site["foreign_matter", "12315.com"]
    assert both.share is None, "no praise is published there"


def test_a_chosen_theme_alone_is_said_not_to_rise(read):
    assert str(list_findings(read(theme="service"))[-1]) == "“Service” does not rise."
    assert "Foreign matter" in str(list_findings(read(theme="foreign_matter"))[-1])


def test_themes_without_a_complaint_in_the_period_stay_listed(read):
    early = read(Period(TODAY - timedelta(days=600), TODAY - timedelta(days=500)))
    row = next(row for row in early.themes.themes if row.theme == "foreign_matter")
    assert (row.complaints, row.quotes, row.state) == (0, [], "rising")
    assert row.last_day == read().last_day
    assert early.all_themes == read().all_themes


def test_the_weeks_show_what_was_expected_once_the_product_was_watched(read):
    weeks = read(Period()).weeks
    assert weeks[-1].monday == TODAY - timedelta(days=TODAY.weekday() + 7)
    assert len(weeks) == 104
    assert [one.expected is None for one in weeks] == [True] * 25 + [False] * 79
    usual = weeks[40:90]
    assert sum(one.expected for one in usual) == pytest.approx(sum(one.complaints for one in usual), rel=0.2)
    spoilt = read(Period(), theme="foreign_matter").weeks[-CONTAMINATED_WEEKS + 1 :]
    assert sum(one.complaints for one in spoilt) > 3 * sum(one.expected for one in spoilt)
    assert len(read(Period(TODAY - timedelta(days=6), TODAY)).weeks) == 26


def test_months_are_those_of_the_reviews_own_days(read, store):
    months = read(Period()).by_month
    with store.read() as tx:
        rows = tx.rows(
            "SELECT substr(r.day, 1, 7), count(*) FROM reviews r JOIN page_products l ON l.page_id = r.page_id "
            "WHERE l.product_id = 2 AND r.voice = 'complaint' AND r.day IS NOT NULL GROUP BY 1"
        )
    found = Counter()
    for (_, month), n in months.items():
        found[month] += n
    assert found == dict(rows)


def test_postgresql_gives_the_same_report(store, postgres_store):
    fill(postgres_store)
    pages = []
    for one in (store, postgres_store):
        with one.begin(now=datetime(2026, 11, 28, 4, tzinfo=UTC)) as tx:
            pages.append([report(tx, builtin("today"), names, RECENT) for names in ((), (SPOILT,))])
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("since", "until", "weeks"),
    [
        (date.min, None, WEEKS),
        (date.min, date.max, WEEKS),
        (date(1970, 1, 1), TODAY, WEEKS),
        (TODAY - timedelta(weeks=150), None, 150),
        (None, date.min, 26),
        (None, date(1970, 1, 1), 26),
        (date.min, date.min, 26),
        (date.max, None, 26),
    ],
)
def test_days_of_any_year_are_a_period_and_few_weeks_are_drawn(read, since, until, weeks):
    view = read(Period(since, until))
    assert (view.since, view.until, len(view.weeks)) == (since, until, weeks)
    assert (view.complaints > 0) is (weeks > 26)
    assert str(list_findings(view)[0])
