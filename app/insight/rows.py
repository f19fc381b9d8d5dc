"""Rows and views of themes. Their fields are the JSON output.

Every command loads this module, so it imports no numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

TREND_WEEKS = 26
"""Number of whole weeks in a trend."""


class ThemeState(StrEnum):
    """States of a product's theme.

    WATCHING: the product is watched for less than `WATCHED_WEEKS`, or too few of its last weeks hold a review.
    RISING: the week's complaints are significantly more than expected, and at least `LEAST_RISE` in 4 weeks. The
        state ends after 4 weeks in a row that each have at most 1.25 times the usual number of complaints, plus 1.
    NEW: first seen less than `NEWEST_WEEKS` ago, with at least 3 complaints from 2 pages.
    BACK: at least 2 complaints in 4 weeks after the theme was quiet. The state lasts `BACK_WEEKS`.
    QUIET: no complaint for at least `QUIET_WEEKS`, and the usual rate gives a gap of this length a probability of at
        most 1 %.
    ONGOING: none of the other states.
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
"""Descriptions of the states of themes, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rise:
    """A rise of the complaints about a product: about one theme, or about all together.

    Attributes:
        since: Monday of the week in which the rise began.
        weeks: number of weeks since `since`.
        count, baseline: complaints in the last 4 complete weeks, and the expected number.
        newest: complaints in the last complete week.
        p_value: the smallest p value of the weeks of the rise; p values grow again when a rise ends.
        surest: Monday of the week with the smallest p value.
        usual_weeks: number of consecutive newest weeks with usual complaints in the 4 weeks up to each. The rise ends
            after 4 such weeks.
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
    """A clause with a complaint, and the review it is from. `day` is `None` if the review's date could not be read."""

    text: str
    day: date | None
    site: str
    url: str
    review: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ThemeRow:
    """Complaints about a theme of a product. Themes without a complaint in the period have a row as well.

    Attributes:
        complaints: number in the period; equal texts count once.
        undated: number of complaints whose date could not be read.
        share: complaints / buyers' reviews in the period at sites that also publish praise; `None` without such a site.
        first_day, last_day: days of the first and the last complaint, in any period.
        state: state at the end of the last whole week, regardless of the period.
        state_since: Monday of the first week in this state; `None` if that is before the judged weeks.
        state_weeks: number of consecutive weeks in this state.
        rise: the rise; `None` if the theme does not rise.
        archived: True if a person archived the theme and it has not begun to rise since.
        trend: complaints in each of the last `TREND_WEEKS` whole weeks.
        quotes: newest quotes in the period.
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
    """Themes of products in a period. In each product, rising themes come first and archived ones last; the most
    frequent come first in between.

    Attributes:
        undated: number of reviews of these products whose date could not be read; they count in an open period.
        incomplete_days: for each product the number of newest days, including today, for which late reviews are
            still expected; `None` if it can't be estimated. States don't use these days.
        unread: number of reviews in the period that were not searched for themes (`tasks.reading.judge.reviews`).
        sites_without_share: sites of these complaints that publish no praise; shares and `rises_of_all` leave them out.
        rises_of_all: rises of all complaints about a product together.
        all_judged: False if these products were judged alone, because the sweep `rises` has not judged all yet.
        counted: share of the reviews from before an upgrade that are counted, 0 to 1.
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
    all_judged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseRow:
    """A new phrase in the complaints about a product.

    Attributes:
        complaints: number of people who wrote it in the period.
        before: number of people who wrote it in the three years before.
        expected: number of people who would write it in the period if it were as frequent at each site as before.
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
    """Phrases that are significantly more frequent in complaints than before; in each product the surest first.

    Attributes:
        complaints, complaints_before: number of complaints in the period, and in the three years before.
        read, read_before: number of these complaints that were read: all, or a sample if there are many.
        sites_left_out: sites that are not compared, because they have complaints only in the period or only before.
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
        theme: the theme; or `tasks.domain.themes.ALL_THEMES` for all complaints about the product together, which
            are counted only at sites that also publish praise.
        quotes: quotes of the last 4 weeks.
    """

    product: str
    theme: str
    quotes: Sequence[QuoteRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class RisesView:
    """The themes that rise at the end of the last whole week. The surest come first, those whose rise is ending last.

    Attributes:
        until: last day of that week.
        counted: share of the reviews from before an upgrade that are counted, 0 to 1.
    """

    until: date
    rises: Sequence[RiseRow]
    counted: float
