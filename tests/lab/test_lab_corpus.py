"""The hidden web: what there is follows from seed, site and keywords alone."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lab import pages
from app.lab.corpus import (
    BRAND_SHARE,
    DEFAULT_REVIEWS,
    EMPTY_SHARE,
    MEAN_HITS,
    Corpus,
    fitting,
    load_texts,
    made_texts,
)
from app.lab.pages import PageName

MILK = ("光明", "高钙", "牛奶")
words = st.text(st.characters(exclude_categories=("Cs", "Cc", "Z")), min_size=1, max_size=20)


def test_hits_are_heavy_tailed_with_the_stated_mean_and_share_of_empty_answers(corpus):
    counts = [corpus.hits("12315.com", (f"product{i}",)) for i in range(4000)]
    assert mean(counts) == pytest.approx(MEAN_HITS, rel=0.1)
    assert counts.count(0) / len(counts) == pytest.approx(EMPTY_SHARE, abs=0.02)
    assert max(counts) > 8 * MEAN_HITS


def test_no_keywords_have_no_hits(corpus):
    assert corpus.pages("12315.com", ()) == ()


def test_another_corpus_of_the_same_seed_is_the_same_and_of_another_seed_is_not(catalog, corpus):
    again, other = Corpus(catalog, 1, made_texts()), Corpus(catalog, 2, made_texts())
    assert again.listing("weibo.com", MILK) == corpus.listing("weibo.com", MILK)
    assert [again.content(page) for page in again.pages("weibo.com", MILK)] == [
        corpus.content(page) for page in corpus.pages("weibo.com", MILK)
    ]
    assert {entry.url for entry in other.listing("weibo.com", MILK)}.isdisjoint(
        entry.url for entry in corpus.listing("weibo.com", MILK)
    )


def test_pages_of_a_query_differ_and_every_one_is_found_by_its_path(catalog, corpus):
    for site in catalog.sites:
        pages = corpus.pages(site, MILK)
        assert len(set(pages)) == len(pages) == corpus.hits(site, MILK)
        for page in pages:
            prefix, path = f"http://{site}", corpus.url(page).removeprefix(f"http://{site}")
            assert corpus.url(page).startswith(prefix + "/")
            assert corpus.find(site, path) == page


def test_products_of_one_brand_share_pages(catalog, corpus):
    own, shared, met = 0, 0, 0
    for site in catalog.sites:
        first, second = corpus.pages(site, ("蒙牛", "特仑苏")), corpus.pages(site, ("蒙牛", "早餐奶"))
        own += len(first)
        shared += sum(page.keywords == ("蒙牛",) for page in first)
        met += len(set(first) & set(second))
    assert shared / own == pytest.approx(BRAND_SHARE, abs=0.07)
    assert met > 0


def test_some_hits_are_listed_a_second_time_under_another_spelling_of_their_url(catalog, corpus):
    spelled: list[str] = []
    for site in catalog.sites:
        listed = corpus.listing(site, MILK)
        assert list(dict.fromkeys(entry.page for entry in listed)) == list(corpus.pages(site, MILK))
        spelled += [
            entry.url.removeprefix(corpus.url(entry.page))
            for entry in listed
            if entry.url != corpus.url(entry.page)
        ]
    assert any(rest.startswith("?utm_source=") for rest in spelled)
    assert any(rest.startswith("#") for rest in spelled)


def test_a_page_tells_of_its_product_in_its_titles(catalog, corpus):
    pages = corpus.pages("12315.com", MILK)
    posts = [len(corpus.content(page).posts) for page in pages]
    assert min(posts) >= 1
    assert 1 < max(posts) <= 6
    for page in pages:
        content = corpus.content(page)
        assert "".join(page.keywords) in content.title
        assert len({post.key for post in content.posts}) == len(content.posts)


@given(keywords=st.lists(words, min_size=1, max_size=4).map(tuple), number=st.integers(0, 1999))
def test_a_path_carries_any_page(keywords, number):
    for rules in ("complaint", "thread", "microblog", "of another name"):
        page = PageName("12315.com", keywords, number)
        path = pages.path_of(7, rules, page)
        assert pages.page_at(7, rules, "12315.com", path) == page
        assert pages.page_at(8, rules, "12315.com", path) is None
        assert pages.page_at(7, rules, "weibo.com", path) is None


@given(path=st.text(max_size=60).map("/{}".format) | st.from_regex(r"/complaint/[0-9a-f]{12,40}\.html"))
def test_other_paths_are_no_page(path):
    assert pages.page_at(7, "complaint", "12315.com", path) is None


def test_a_page_beyond_the_last_hit_is_not_there(corpus):
    beyond = PageName("12315.com", MILK, corpus.hits("12315.com", MILK))
    assert corpus.find("12315.com", pages.path_of(1, "thread", beyond)) is None


def test_without_real_reviews_texts_are_made(no_reviews):
    assert load_texts(no_reviews) == made_texts()
    assert len(set(made_texts())) == len(made_texts()) > 1000


def test_real_reviews_are_read_whole_and_without_those_that_look_like_a_refusal(tmp_path):
    (tmp_path / "waimai_10k_sample.csv").write_text(
        'label,review\n0,打开页面写着请先登录才行\n1,味道不错，\n0,短\n0,"两行的\n评论也读"\n0,"两行的\n评论也读"\n',
        "utf-8",
    )
    assert load_texts(tmp_path, ["请先登录"]) == ("两行的 评论也读",)


@pytest.mark.skipif(not DEFAULT_REVIEWS.is_dir(), reason="the folder of shared reviews is not there")
def test_shared_reviews_are_found_beside_the_repository():
    texts = load_texts(DEFAULT_REVIEWS)
    assert len(texts) > 5000
    assert all(6 <= len(text) <= 900 and "\n" not in text for text in texts)


def test_texts_fit_the_product_where_enough_of_them_do():
    texts = tuple(f"牛奶{n}" for n in range(20)) + tuple(f"手机{n}" for n in range(19))
    assert fitting(texts, ("光明", "牛奶")) == texts[:20]
    assert fitting(texts, ("手机",)) == texts
