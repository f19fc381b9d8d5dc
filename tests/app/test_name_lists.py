"""What is no list of names is refused, and lists as people write them are read whole."""

from __future__ import annotations

import re
from io import BytesIO

import pytest
from plain_texts import LATER_LISTS, LATER_NO_LISTS, LISTS, NO_LISTS
from workbooks import workbook

from app.importing.product_files import open_product_file, read_typed_names
from app.importing.review_files import open_review_file
from splitter.errors import InputError


def read(content: str | bytes, **how: bool) -> list[str]:
    data = content if isinstance(content, bytes) else content.encode()
    _, lines = open_product_file(BytesIO(data), "x", **how)
    return [cells["name"] for _, cells, why in lines if not why]


@pytest.mark.parametrize("name", [*NO_LISTS, *LATER_NO_LISTS])
def test_a_text_that_is_no_list_is_refused_with_lines_of_it(name):
    text = NO_LISTS.get(name) or LATER_NO_LISTS[name]
    with pytest.raises(InputError) as refused:
        read(text)
    seen = str(refused.value)
    assert len(re.findall(r"line \d+: ", seen)) in (1, 2, 3)
    assert "--as-list" in seen


@pytest.mark.parametrize("name", [*LISTS, *LATER_LISTS])
def test_a_list_as_people_write_it_is_read_whole(name):
    content, names = LISTS.get(name) or LATER_LISTS[name]
    assert read(content) == names


@pytest.mark.parametrize("name", ["sites.yaml", "dump.sql", "news.txt"])
def test_a_person_can_say_that_each_line_is_a_name(name):
    text = NO_LISTS[name]
    assert len(read(text, as_list=True)) > 2
    assert len(read_typed_names(text, "The text", as_list=True)) > 2
    with pytest.raises(InputError, match="no list"):
        read_typed_names(text, "The text", as_list=False)


def test_typed_names_are_read_as_those_of_a_file():
    assert read_typed_names("1. 特仑苏\r\n2. 安慕希\r\n", "The text", as_list=False) == [
        (1, "特仑苏"),
        (2, "安慕希"),
    ]


def test_a_workbook_is_no_text_whose_lines_are_names():
    with pytest.raises(InputError, match="--sheet"):
        read(workbook(["特仑苏"]), as_list=True)


def test_a_sheet_of_settings_is_no_list():
    with pytest.raises(InputError, match="settings"):
        read(workbook(["host: a.cn"], ["port: 80"], ["main_text: true"], ["rules:"]))


@pytest.mark.parametrize("key", ["content", "text", "review", "comment"])
def test_settings_are_no_reviews(key):
    text = f"version: 3\n{key}:\nhost: a.cn\nport: 80\n"
    with pytest.raises(InputError, match="settings"):
        open_review_file(BytesIO(text.encode()), "x")
    prose = f"{key}\n牛奶很好喝，孩子也喜欢。\n送货很慢，客服不理人，要求退款。\n"
    assert len(list(open_review_file(BytesIO(prose.encode()), "x").records)) == 2
