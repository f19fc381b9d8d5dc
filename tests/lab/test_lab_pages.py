"""Pages follow from seed, site and keywords alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.lab import pages
from app.lab.pages import Corpus, PageName, make_texts

MILK = ("光明", "高钙", "牛奶")
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=20)


def test_another_corpus_of_the_same_seed_is_the_same_and_of_another_seed_is_not(catalog, corpus):
    again, other = Corpus(catalog, 1, make_texts()), Corpus(catalog, 2, make_texts())
    assert again.listing("weibo.com", MILK) == corpus.listing("weibo.com", MILK)
    assert [again.content(page) for page in again.pages("weibo.com", MILK)] == [
        corpus.content(page) for page in corpus.pages("weibo.com", MILK)
    ]
    assert {entry.url for entry in other.listing("weibo.com", MILK)}.isdisjoint(
        entry.url for entry in corpus.listing("weibo.com", MILK)
    )


@given(keywords=st.lists(words, min_size=1, max_size=4).map(tuple), number=st.integers(0, 1999))
def test_a_path_carries_any_page(keywords, number):
    for rules in ("complaint", "thread", "microblog", "of another name"):
        page = PageName("12315.com", keywords, number)
        path = pages.path_of(7, rules, page)
        assert pages.page_at(7, rules, "12315.com", path) == page
        assert pages.page_at(8, rules, "12315.com", path) is None
        assert pages.page_at(7, rules, "weibo.com", path) is None
