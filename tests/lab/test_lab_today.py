"""Today's catalog in the lab: result pages and sites' pages are read back by the catalog's own rules."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from urllib.parse import urldefrag, urlsplit

import pytest

from app.lab.answers import LabAnswer
from app.lab.pages import Corpus, make_texts
from app.lab.web import LocalWeb
from splitter.catalog.load import load_catalog
from splitter.catalog.model import Catalog
from splitter.spans import CHINA
from splitter.urls import search_url
from tasks.domain.failures import FetchError
from tasks.reading.decode import decode
from tasks.reading.extract import read_page
from tasks.reading.results import read_results

NOW = datetime(2026, 11, 21, 8, tzinfo=CHINA)
ROOT = Path(__file__).resolve().parents[2]
TODAY = load_catalog(ROOT / "sites.yaml")
SITES_OF_AN_ENGINE = 3
SEARCHED = [name for name, engine in TODAY.engines.items() if engine.discover == "search"]
"""The engines with result pages. For lists, see test_lab_lists.py."""


def with_engine(name: str) -> tuple[Catalog, list[str]]:
    """The catalog with some sites reached through this engine; an engine that knows no sites keeps its own."""
    own = [site for site, entry in TODAY.sites.items() if entry.engine == name]
    host = urlsplit(TODAY.engines[name].url).hostname or ""
    at_home = [site for site in TODAY.sites if host.removeprefix("www.") == site]
    if "{site}" not in TODAY.engines[name].site and (own or not at_home):
        return TODAY, own
    names = (
        at_home
        or [site for site in TODAY.sites if "{site}" in TODAY.engine_of(site).site][:SITES_OF_AN_ENGINE]
    )
    sites = {site: TODAY.sites[site].model_copy(update={"engine": name}) for site in names}
    return TODAY.model_copy(update={"sites": {**TODAY.sites, **sites}}), names


def web_of(catalog: Catalog) -> tuple[LocalWeb, Corpus]:
    corpus = Corpus(catalog, 1, make_texts())
    return LocalWeb(catalog, corpus), corpus


def asked(web: LocalWeb, url: str):
    parts = urlsplit(url)
    return web.document(parts.hostname, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))


def results_at(web: LocalWeb, url: str, rules):
    response = asked(web, url)
    text = decode(response.body, {"content-type": response.content_type}).text
    return read_results(text, url, rules, now=NOW)


def several(corpus: Corpus, site: str, least: int, most: int = 200) -> tuple[str, ...]:
    """A query with a number of hits between these."""
    queries = (("牛奶", f"多{i}") for i in range(3000))
    return next(query for query in queries if least <= len(corpus.listing(site, query)) <= most)


@pytest.mark.parametrize("name", SEARCHED)
def test_hits_found_are_the_hits_served(name):
    catalog, sites = with_engine(name)
    engine = catalog.engines[name]
    web, corpus = web_of(catalog)
    for site in sites:
        keywords = several(corpus, site, engine.hits_per_page + 3)
        listed = corpus.listing(site, keywords)[: engine.max_hits]
        found, pages, links = None, 0, []
        while pages * engine.hits_per_page < len(listed):
            pages += 1
            page = results_at(web, search_url(engine, keywords, site=site, page=pages), engine.results)
            found = page.found if page.found is not None else found
            links += [hit.url for hit in page.hits]
            assert all(hit.title or engine.inline for hit in page.hits)
            assert page.more or pages * engine.hits_per_page >= len(listed)
        served = list(dict.fromkeys(urldefrag(entry.url).url for entry in listed))
        assert found == (len(corpus.listing(site, keywords)) if engine.results.found else None)
        if engine.inline:
            contents = {corpus.content(entry.page).posts[0].key for entry in listed}
            assert len(set(links)) >= len(contents)
            continue
        assert [link.replace("https:", "http:") for link in dict.fromkeys(links)] == served


@pytest.mark.parametrize("name", SEARCHED)
def test_an_engine_that_has_nothing_says_so(name):
    catalog, sites = with_engine(name)
    engine = catalog.engines[name]
    web, corpus = web_of(catalog)
    for site in sites:
        nothing = next((f"无{i}",) for i in range(1000) if not corpus.listing(site, (f"无{i}",)))
        page = results_at(web, search_url(engine, nothing, site=site, page=1), engine.results)
        assert page.empty
        assert not page.hits


@pytest.mark.parametrize("name", [name for name in SEARCHED if TODAY.engines[name].inline])
def test_a_hit_that_is_a_whole_post_is_read_from_the_result_page(name):
    catalog, sites = with_engine(name)
    engine = catalog.engines[name]
    web, corpus = web_of(catalog)
    for site in sites:
        keywords = several(corpus, site, 5)
        page = results_at(web, search_url(engine, keywords, site=site, page=1), engine.results)
        posts = {corpus.content(entry.page).posts[0].key: entry for entry in corpus.listing(site, keywords)}
        assert page.hits
        for hit in page.hits:
            assert hit.post is not None
            post = corpus.content(posts[hit.post.key].page).posts[0]
            assert post.body in hit.post.body
            assert hit.post.author == post.author
            assert hit.post.date == post.at


@pytest.mark.parametrize("name", SEARCHED)
@pytest.mark.parametrize("answer", [LabAnswer.CAPTCHA, LabAnswer.TOO_FREQUENT])
def test_an_engines_own_refusal_is_read_as_one(name, answer):
    engine = TODAY.engines[name]
    web, _ = web_of(TODAY)
    url = search_url(engine, ("牛奶",), site=None, page=1)
    parts = urlsplit(url)
    response = web.refusal(parts.hostname, f"{parts.path}?{parts.query}", answer)
    with pytest.raises(FetchError) as refused:
        read_results(response.body.decode(), url, engine.results)
    assert refused.value.error.facts.blocks


@pytest.fixture(scope="module")
def today() -> tuple[LocalWeb, Corpus]:
    return web_of(TODAY)


@pytest.mark.parametrize("site", TODAY.sites)
def test_reviews_found_are_the_posts_served(today, site):
    web, corpus = today
    rules = TODAY.rules_of(site)
    seen = 0
    for page in corpus.pages(site, several(corpus, site, 7))[:5]:
        url = corpus.url(page)
        document = asked(web, url)
        text = decode(document.body, {"content-type": document.content_type}).text
        read = read_page(text, url, rules, now=NOW)
        content = corpus.content(page)
        assert len(read.reviews) == len(content.posts)
        for review, post in zip(read.reviews, content.posts, strict=True):
            assert squeezed(post.body) in squeezed(review.body)
            if rules.author:
                assert review.author == post.author
            if rules.date:
                assert review.date is not None
            seen += 1
    assert seen >= 4


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("site", TODAY.sites)
def test_a_sites_refusals_are_known_to_its_rules(today, site):
    web, _ = today
    for answer in (LabAnswer.CAPTCHA, LabAnswer.TOO_FREQUENT, LabAnswer.LOGIN_PAGE):
        document = web.refusal(site, "/thread/1.html", answer)
        with pytest.raises(FetchError) as refused:
            read_page(document.body.decode(), f"http://{site}/thread/1.html", TODAY.rules_of(site), now=NOW)
        assert refused.value.error.facts.blocks
