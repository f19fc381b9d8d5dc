"""No regular expression of the tree is slow on a text made to hurt it (`hurting`); those of catalogs run on RE2."""

from __future__ import annotations

import re

import pytest
from hurting import Found, hurt_by, patterns

from splitter.catalog.load import load_catalog
from splitter.catalog.patterns import BadPattern, compile_pattern

FOUND, MADE_LATER = patterns()

pytestmark = pytest.mark.cpu(8.0)
"""What bounds the searches is time itself, on a busy machine more of it."""


OWN_REPORTS = "research/bench/quality/report_check.py"
"""Its patterns read reports that the bench has just written."""


@pytest.mark.parametrize(
    "found",
    [one for one in FOUND if not one.place.startswith(OWN_REPORTS)],
    ids=lambda found: found.place,
)
def test_patterns_of_the_tree_are_linear(found):
    assert hurt_by(found) is None, found.pattern.pattern


def test_patterns_made_while_it_runs_are_known():
    assert set(MADE_LATER) == {
        "app/importing/name_lists.py",  # what lines begin with, over at most 300 characters
        "app/lab/engines.py",  # an engine's address: escaped words and groups
        "app/lab/made.py",  # the same
        "app/lab/pages.py",  # words that the lab's texts must not match
        "app/lab/sites.py",  # escaped words
        "app/web/base/rendering.py",  # escaped words of a search
        "research/training/voices/voice_files.py",  # names of strings in a script; over files for training
        "research/training/voices/word_text.py",  # one class of characters, from a file
        "research/training/voices/voice_posts.py",  # a tag's name; over files for training
        "splitter/normalize.py",  # the brands of our dictionary that begin with a number
        "tasks/reading/judge/product_match.py",  # one escaped keyword
        "tasks/reading/dates.py",  # a list, found as such
        "tasks/reading/roles.py",  # a mapping, found as such
    }


@pytest.mark.slow  # an interrupted search may go on for seconds on a busy machine
@pytest.mark.parametrize(
    "pattern", [r"(a+)+b", r"a*\s*\s*b", r"\s*x$", r"(a|a)*b", r"<x[^>]*y", r"(?:\d+|x)+"], ids=str
)
def test_the_texts_hurt_what_is_not_linear(pattern):
    assert hurt_by(Found("here", re.compile(pattern), frozenset({"search", "fullmatch"})))


def test_a_pattern_of_the_catalog_is_linear_where_pythons_engine_is_not():
    # The number of hits of a result page, as a catalog writes it: blanks may be shared out in many ways.
    pattern = r"([\d,]+)\s*(?:个结果|results)"
    assert hurt_by(Found("", re.compile(pattern), frozenset({"search"})))
    assert compile_pattern(pattern).search("1," * 100_000) is None
    assert compile_pattern(pattern).search("找到 1,234 个结果") == ("1,234 个结果", "1,234")


@pytest.mark.parametrize(
    ("pattern", "instead"),
    [
        ("(?<=约)\\d+", "into a group"),
        ("(?!x)y", "into a group"),
        (r"(a)\1", "alternatives"),
        ("a*+b", "leave"),
        ("(?>a)b", "leave"),
        (r"a\Z", r"write \z"),
        (r"\u5149", "the character itself"),
        ("a{1,1000}b{1,1000}c{1,1000}", "count less"),
        ("(", "missing"),
    ],
)
def test_what_re2_does_not_know_is_refused_with_what_to_write(pattern, instead):
    with pytest.raises(BadPattern, match=re.escape(instead)):
        compile_pattern(pattern)


def test_a_catalog_with_such_a_pattern_names_file_site_and_key(tmp_path):
    catalog = tmp_path / "mine.yaml"
    catalog.write_text(
        "name: mine\nrules:\n  page: {review: div, body: p}\n"
        "engines:\n"
        "  mine:\n"
        "    kind: meta\n"
        "    url: https://so.example/s?q={query}\n"
        "    results: {hit: div, link: a@href, title: a, blocked: ['(?<=请)登录']}\n"
        "sites:\n"
        "  a.example: {engine: mine, rules: page}\n"
    )
    with pytest.raises(
        Exception, match=r"(?s)mine\.yaml.*engines.*mine.*results.*blocked.*look-around"
    ) as caught:
        load_catalog(catalog)
    assert "group" in str(caught.value)
