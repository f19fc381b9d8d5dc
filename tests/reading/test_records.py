"""Fields selected once for all records, against a search from every record; texts against a tree with blanks put in."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_pages import BLOCKS, PAGES, SELECTORS
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tasks.domain.failures import ErrorClass, FetchError
from tasks.reading.decode import decode
from tasks.reading.markup import page_text, parse, text_of
from tasks.reading.records import Records

PAGE_FILES = sorted((Path(__file__).parents[2].parent / "shared" / "data" / "pages").glob("*.html"))
RECORDS_A_PAGE = 60


def slow_text(node: LexborNode) -> str:
    for block in node.css(",".join(BLOCKS)):
        block.insert_before(" ")
        block.insert_after(" ")
    return " ".join(node.text().split())


def slow_values(tree: LexborHTMLParser, css: str, rule: str) -> list[str]:
    field, _, attribute = rule.partition("@")
    records = list({node.mem_id: node for node in tree.css(css)}.values())
    found = [record.css_first(field) if field else record for record in records]
    if attribute:
        values = [node.attributes.get(attribute) if node else "" for node in found]
        return [" ".join((value or "").split()) for value in values]
    return [text_of(node) if node else "" for node in found]


@given(PAGES, st.sampled_from(SELECTORS), st.sampled_from([*SELECTORS, "@data-id", ".t@data-id"]))
def test_fields_are_those_found_from_each_record(html, css, rule):
    tree = parse(html)
    assert Records(tree, css).values(rule) == slow_values(tree, css, rule)


@given(PAGES, st.sampled_from(["div", "body", "span", "em, section"]))
def test_texts_are_those_of_a_tree_with_blanks_around_its_blocks(html, css):
    tree = parse(html)
    texts = [text_of(node) for node in tree.css(css)]
    whole = page_text(tree)
    assert texts == [slow_text(node) for node in tree.css(css)]
    assert whole == slow_text(tree.root)


@given(PAGES)
def test_the_text_before_an_element_begins_the_text_of_the_page(html):
    tree = parse(html)
    whole = page_text(tree).replace(" ", "")
    assert page_text(tree, before=tree.body).replace(" ", "") == text_of(tree.head).replace(" ", "")
    for node in tree.css(".r"):
        before, inside = page_text(tree, before=node).replace(" ", ""), text_of(node).replace(" ", "")
        assert whole.startswith(before + inside)


@pytest.mark.skipif(not PAGE_FILES, reason="the shared data is not beside the repository")
@pytest.mark.parametrize("path", PAGE_FILES, ids=lambda path: path.stem)
def test_saved_pages_read_the_same_either_way(path):
    text = decode(path.read_bytes(), {}).text
    tree = parse(text)
    css = "div.result, li, tr, article, p"
    if len(tree.css(css)) > 4000:  # a search from each of very many nested records takes minutes
        css = "div.result, article"
    for rule in ("a@href", "a", "h3 a", "span, em", "p", "@class"):
        assert Records(tree, css).values(rule) == slow_values(tree, css, rule)
    nodes = tree.css(css)[:RECORDS_A_PAGE]
    texts = [text_of(node) for node in nodes]
    whole = page_text(tree)
    assert texts == [slow_text(node) for node in nodes]
    assert whole == slow_text(tree.root)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<i class=r><b>1</b></i><i class=r><b>2</b></i>", ["1", "2"]),
        ("<i class=r><b>1</b><b>2</b></i><i class=r></i>", ["1", ""]),
        ("<i class=r></i><b>0</b><i class=r><b>1</b><b>2</b></i>", ["", "1"]),
        ("<i class=r><u><b>1</b></u></i><i class=r><b>2</b></i>", ["1", "2"]),
        ("<b>0</b><i class=r><b>1</b></i>", ["1"]),
        ("<p><i class=r><b>1</b></i></p><p><i class=r><b>2</b></i></p>", ["1", "2"]),
        ("<p><i class=r><b>1</b></i></p><p><b>0</b><i class=r></i></p>", ["1", ""]),
        ("<b class=r>1</b><b class=r>2<b>3</b></b>", ["1", "23"]),
        ("<i class=r><i class=r><b>1</b></i><b>2</b></i>", ["1", "1"]),
        ("<b class=r>1<i class=r></i></b>", ["1", ""]),
    ],
)
def test_the_first_match_in_each_record(html, expected):
    tree = parse(html)
    assert Records(tree, ".r").values("b") == expected == slow_values(tree, ".r", "b")


def test_an_element_that_two_parts_of_a_selector_match_is_one_record():
    records = Records(parse("<div class='a b'>x</div><p class=b>y</p>"), ".a, .b")
    assert records.values(".b") == ["x", "y"]


def test_without_records_or_field_there_are_no_values():
    tree = parse("<p>x</p>")
    assert Records(tree, "li").values("p") == []
    assert Records(tree, "p").values("") == [""]


def test_deep_markup_is_read_without_recursion():
    (text,) = Records(parse("<span>" * 900 + "x<br>y" + "</span>" * 900), "body").values("span")
    assert text == "x y"


@pytest.mark.parametrize(("css", "rule"), [("p[", "b"), ("p", "b["), ("p", ":scope > b")])
def test_what_is_no_selector_is_a_bad_rule(css, rule):
    with pytest.raises(FetchError) as caught:
        Records(parse("<p><b>x</b></p>"), css).values(rule)
    assert caught.value.error is ErrorClass.BAD_RULE
