"""Dates in the ways of many sites (`cases/dates.yaml`), each also with a digit and with a numeral before its number."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from splitter.spans import CHINA
from tasks.reading.dates import DATE, read_date

NOW = datetime(2026, 11, 20, 12, 30, 15, tzinfo=CHINA)
SITES = yaml.safe_load(Path(__file__).with_name("cases").joinpath("dates.yaml").read_text("utf-8"))
ROWS = [(row[0], row[1], *row[2:], *[None] * (4 - len(row))) for rows in SITES.values() for row in rows]
# Of a weekday the numeral is none.
NUMBER = re.compile(r"(?<![周週期拜])[\d〇一二三四五六七八九十半两兩]|$")


def moment_of(text: str) -> str | None:
    moment = read_date(text, NOW)
    return None if moment is None else f"{moment.astimezone(CHINA):%Y-%m-%d %H:%M}"


def test_the_table_has_150_dates_of_at_least_30_sites():
    assert len(SITES) >= 30
    assert len({row[0] for row in ROWS}) >= 145
    assert len(ROWS) == 150


@pytest.mark.parametrize(("text", "due", "digit", "numeral"), ROWS)
def test_a_date_is_read_whole_and_never_inside_a_longer_number(text, due, digit, numeral):
    assert moment_of(text) == due
    at = NUMBER.search(text).start()
    if at == len(text):
        return
    assert moment_of(f"{text[:at]}1{text[at:]}") in (digit, None)
    assert moment_of(f"{text[:at]}十{text[at:]}") in (numeral, None)


@pytest.mark.parametrize("text", [row[0] for row in ROWS])
def test_a_date_in_a_text_is_found_whole(text):
    found = DATE.search(text)
    if found is not None and found.start() == 0:
        assert moment_of(found.group()) == moment_of(text)
