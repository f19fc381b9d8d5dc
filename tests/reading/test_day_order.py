"""Which of day and month comes first in dates of digits: what else the page says decides."""

from datetime import UTC, date, datetime

import pytest

from tasks.reading.dates import read_date
from tasks.reading.days import read_dates

NOW = datetime(2024, 6, 1, tzinfo=UTC)
SIXTH_OF_MARCH, THIRD_OF_JUNE = date(2023, 3, 6), date(2023, 6, 3)


@pytest.mark.parametrize(
    ("page", "day"),
    [
        ("", THIRD_OF_JUNE),
        ("<html lang='en-US'>", THIRD_OF_JUNE),
        ("<html lang='en-GB'>", SIXTH_OF_MARCH),
        ('<html dir="ltr" lang="pt-BR">', SIXTH_OF_MARCH),
        ("<html lang='en-US'><p>25/02/2023", SIXTH_OF_MARCH),
        ("<html lang='pt-BR'><p>02/25/2023", THIRD_OF_JUNE),
    ],
)
def test_another_date_or_else_the_language_tells(page: str, day: date):
    (found,) = read_dates(["06/03/2023 21:40"], page, NOW)
    assert found is not None
    assert found.date() == day


def test_a_reading_in_the_future_is_not_meant():
    found = read_dates(["08/05/2024 9:58 pm", "05/03/2024"], "", NOW)
    assert [one.date() for one in found if one] == [date(2024, 5, 8), date(2024, 3, 5)]


def test_posts_stand_in_the_order_of_their_days():
    found = read_dates(["05/03/2023", "06/03/2023", "02/04/2023", "03/04/2023"], "", NOW)
    assert [one.month for one in found if one] == [3, 3, 4, 4]


def test_dates_that_leave_no_doubt_are_as_ever():
    texts = ["2023-06-03", "3 June 2023", "", "06/06/2023", "16/05/2023"]
    assert read_dates(texts, "<html lang=de>", NOW) == [read_date(text, NOW) for text in texts]


def test_a_page_of_very_many_dates_is_looked_at_in_part():
    page = "<html lang='de'>" + "06/03/2023 " * 500 + "02/25/2023"
    (found,) = read_dates(["06/03/2023"], page, NOW)
    assert found is not None
    assert found.date() == SIXTH_OF_MARCH


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Mon May 13 2024 13:44:31 GMT+0800 (CST)", datetime(2024, 5, 13, 5, 44, 31, tzinfo=UTC)),
        ("May 13 2024 13:44 GMT", datetime(2024, 5, 13, 13, 44, tzinfo=UTC)),
        ("12d", datetime(2024, 5, 20, tzinfo=UTC)),
    ],
)
def test_zones_and_single_letters(text: str, moment: datetime):
    assert read_date(text, NOW) == moment


def test_a_single_letter_within_words_is_no_date():
    assert read_date("room 4y", NOW) is None
