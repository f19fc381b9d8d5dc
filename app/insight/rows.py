"""What is shown of themes: the rows and views whose fields are the JSON. Without numpy, as every command loads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

TREND_WEEKS = 26
"""Whole weeks of a trend."""


class ThemeState(StrEnum):
    """What a theme of a product does.

    WATCHING: the product is watched for less than `WATCHED_WEEKS`, or too few of its last weeks hold a review.
    RISING: the week's complaints are significantly more than expected, and at least `LEAST_RISE` in 4 weeks; until
        4 weeks in a row have no more than 1.25 times the usual complaints and one.
    NEW: first seen less than `NEWEST_WEEKS` ago, with at least 3 complaints from 2 pages.
    BACK: it was quiet, and at least 2 complaints came in 4 weeks; for `BACK_WEEKS`.
    QUIET: none for so many weeks that, at its usual rate, this has a chance of 1 %; at least `QUIET_WEEKS`.
    ONGOING: any other.
    """

    WATCHING = "watching"
    RISING = "rising"
    NEW = "new"
    BACK = "back"
    QUIET = "quiet"
    ONGOING = "ongoing"


MEANINGS: Mapping[ThemeState, str] = {
    ThemeState.RISING: "rising: significantly more complaints than the last 3 years and the week's other reviews let "
    "expect, and at least 3 in 4 weeks; until 4 weeks in a row are usual again",
    ThemeState.NEW: "new: first seen less than 8 weeks ago, with at least 3 complaints from 2 pages",
    ThemeState.BACK: "back: it was quiet, and at least 2 complaints came in 4 weeks",
    ThemeState.QUIET: "quiet: no complaint for 8 weeks or more, which has a chance of 1 % at the usual rate",
    ThemeState.ONGOING: "ongoing: none of the others",
    ThemeState.WATCHING: "watching: reviews of less than 26 weeks, too few to judge",
}
"""What the states of themes mean, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """How the complaints of a product about a theme rise, or all of them together.

    Attributes:
        since: the first day of the week when they began to rise.
        weeks: number of weeks at whose ends they have been rising.
        count, baseline: complaints of the last 4 complete weeks, and those that were expected in them.
        newest: complaints of the last complete week.
        p_value: the smallest one of these weeks: later ones grow again when the rise ends.
        surest: the first day of the week that has it.
        usual_weeks: number of the last weeks, without a break, whose 4 weeks had a usual number of complaints. The rise
            ends after 4 of them.
    """

    since: date
    weeks: int
    count: int
    baseline: float
    newest: int
    p_value: float
    surest: date
    usual_weeks: int


@dataclass(frozen=True, slots=True)
class QuoteRow:
    """A clause that shows a complaint, and where it is from; `day` is `None` if its date could not be read."""

    text: str
    day: date | None
    site: str
    url: str
    review: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeRow:
    """Complaints of a product about a theme. Themes without a complaint in the period are listed as well.

    Attributes:
        complaints: number in the period; of equal texts one.
        undated: number of those whose date could not be read.
        share: of buyers' reviews in the period, at sites that publish praise as well; `None` if there is no such site.
        first_day, last_day: of all complaints with a day, whatever the period.
        state: at the end of the last whole week, whatever the period.
        state_since: the first day of the week at whose end it was first in this state; `None` if that is longer ago
            than its weeks are judged.
        state_weeks: number of weeks at whose ends it has been in this state, without a break.
        rise: `None` if it does not rise.
        archived: a person archived the theme, and it did not begin to rise since.
        trend: complaints in each of the last `TREND_WEEKS` whole weeks.
        quotes: the newest ones of the period.
    """

    product: str
    theme: str
    complaints: int
    undated: int
    share: float | None
    first_day: date | None
    last_day: date | None
    state: ThemeState
    state_since: date | None
    state_weeks: int
    rise: Rise | None
    archived: bool
    trend: Sequence[int]
    quotes: Sequence[QuoteRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemesView:
    """Themes of products in a period. Of each product those that rise come first, then the most frequent, then
    those that are archived.

    Attributes:
        undated: number of reviews of these products whose date could not be read; with an open period they count.
        incomplete_days: for each product the number of its newest days, today included, whose reviews are not all seen
            yet; `None` if that can't be estimated. They take no part in states.
        unread: number of reviews in the period that were not read for themes (`tasks.reading.judge.reviews`).
        sites_without_share: sites of these complaints that publish no praise, and take no part in shares and
            `rises_of_all`.
        rises_of_all: of the products whose complaints in all rise.
        counted: share of the reviews of before an upgrade that are counted, 0 to 1.
    """

    since: date | None
    until: date | None
    themes: Sequence[ThemeRow]
    undated: int
    incomplete_days: Mapping[str, int | None]
    unread: int
    sites_without_share: Sequence[str]
    rises_of_all: Sequence[RiseRow]
    counted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseRow:
    """A new phrase of a product's complaints.

    Attributes:
        complaints: people of the period who wrote it.
        before: people who wrote it in the three years before.
        expected: people of the period who would write it if it were as frequent at each site as before.
    """

    product: str
    phrase: str
    complaints: int
    before: int
    expected: float
    p_value: float
    quotes: Sequence[QuoteRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPhrasesView:
    """Phrases that are significantly more frequent in complaints than before, the surest of each product first.

    Attributes:
        complaints, complaints_before: number of them in the period, and in the three years before.
        read, read_before: number of these that were read: of many of a product, a sample.
        sites_left_out: sites with complaints in the period or before it only, which are not compared.
    """

    since: date | None
    until: date | None
    phrases: Sequence[PhraseRow]
    complaints: int
    complaints_before: int
    read: int
    read_before: int
    sites_left_out: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RiseRow(Rise):
    """A theme of a product that rises.

    Attributes:
        theme: `tasks.domain.themes.ALL_THEMES` for all complaints of the product together, at the sites that publish
            praise as well.
        quotes: of the last 4 weeks.
    """

    product: str
    theme: str
    quotes: Sequence[QuoteRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class RisesView:
    """The themes that rise at the end of the last whole week, the surest first, then those that are usual again.

    Attributes:
        until: the last day of that week.
        counted: share of the reviews of before an upgrade that are counted, 0 to 1.
    """

    until: date
    rises: Sequence[RiseRow]
    counted: float
