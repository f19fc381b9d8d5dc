"""What is rendered is what the catalog's rules read, in the encoding that is said, or not said."""

from __future__ import annotations

import re
from urllib.parse import urldefrag, urlencode, urlsplit

import pytest
from selectolax.lexbor import LexborHTMLParser

from app.lab.answers import Answer
from app.lab.chrome import encoding_of
from app.lab.profile import Role
from app.lab.query import Query, read_query

MILK = ("光明", "高钙", "牛奶")
MOST = 100


def search_url(engine, site, keywords, page=1):
    words = engine.join.join((*keywords, *engine.extra_words))
    query = engine.site.format(words=words, site=site) if site else words
    offset = engine.first + (page - 1) * engine.step
    values = {k: v.format(query=query, page=page, offset=offset) for k, v in engine.params.items()}
    return f"{engine.url}?{urlencode(values, encoding=engine.encoding)}"


def ask(local_web, url):
    parts = urlsplit(url)
    return local_web.document(parts.hostname, f"{parts.path}?{parts.query}" if parts.query else parts.path)


def read(node, field):
    css, _, attribute = field.partition("@")
    found = node.css_first(css) if css else node
    if found is None:
        return None
    return found.attributes[attribute] if attribute else found.text(strip=True)


def page_through(local_web, engine, site, keywords):
    """Every link listed, by going from result page to result page as a crawler does."""
    links, found = [], None
    for number in range(1, MOST):
        document = ask(local_web, search_url(engine, site, keywords, number))
        tree = LexborHTMLParser(document.body.decode("utf-8"))
        hits = tree.css(engine.results.hit)
        assert len(hits) <= engine.hits_per_page
        for hit in hits:
            assert read(hit, engine.results.title)
            assert read(hit, engine.results.abstract)
            links.append(read(hit, engine.results.link))
        reported = re.search(engine.results.found, tree.body.text())
        if reported:
            found = int(reported[1].replace(",", ""))
        if tree.css_first(engine.results.next) is None:
            return links, found
    raise AssertionError("the list has no end")


def canonical(url):
    return urldefrag(url).url.partition("?utm_")[0]


def test_paging_through_the_result_pages_gives_the_truth(catalog, local_web):
    several_pages = 0
    for site in catalog.sites:
        engine = catalog.engine_of(site)
        links, found = page_through(local_web, engine, site, MILK)
        truth = local_web.truth(site, MILK)
        assert list(dict.fromkeys(map(canonical, links))) == list(truth)
        assert found == (len(links) or None)
        several_pages += len(links) > 2 * engine.hits_per_page
    assert several_pages >= 3


def test_an_engine_lists_no_more_than_its_cap_but_reports_all(catalog, local_web, monkeypatch):
    engine = catalog.engine_of("12315.com")
    all_hits = len(page_through(local_web, engine, None, MILK)[0])
    capped = engine.model_copy(update={"max_hits": 25})
    monkeypatch.setitem(catalog.engines, "baidu", capped)
    local_web.document.cache_clear()
    links, found = page_through(local_web, capped, None, MILK)
    local_web.document.cache_clear()
    assert len(links) == 25
    assert found == all_hits > 25


@pytest.mark.parametrize("site", ["12315.com", "weibo.com"])
def test_an_empty_answer_is_proven_by_the_engines_words(catalog, corpus, local_web, site):
    engine = catalog.engine_of(site)
    nothing = next((f"无{i}",) for i in range(1000) if corpus.hits(site, (f"无{i}",)) == 0)
    beyond = search_url(engine, site, MILK, 1 + len(corpus.listing(site, MILK)))
    nowhere = search_url(engine, "no.such.site", MILK)
    for url in (search_url(engine, site, nothing), beyond, nowhere):
        tree = LexborHTMLParser(ask(local_web, url).body.decode())
        assert not tree.css(engine.results.hit)
        assert any(re.search(pattern, tree.body.text()) for pattern in engine.results.empty)
        assert tree.css_first(engine.results.next) is None


def test_the_link_to_the_next_result_page_leads_there(catalog, local_web):
    for site in ("12315.com", "weibo.com"):
        engine = catalog.engine_of(site)
        keywords = next(
            (f"多{i}",)
            for i in range(1000)
            if len(local_web.truth(site, (f"多{i}",))) > engine.hits_per_page + 2
        )
        tree = LexborHTMLParser(ask(local_web, search_url(engine, site, keywords)).body.decode())
        following = tree.css_first(engine.results.next).attributes["href"]
        assert read_query(engine, urlsplit(following).query) == Query(keywords, site, 2)


def test_every_page_rule_reads_what_stands_in_the_page(catalog, corpus, local_web):
    rated = 0
    for site in catalog.sites:
        rules = catalog.rules_of(site)
        for page in corpus.pages(site, ("蒙牛", "特仑苏"))[:5]:
            document = ask(local_web, corpus.url(page))
            tree = LexborHTMLParser(document.body.decode(encoding_of(site).codec))
            content = corpus.content(page)
            records = tree.css(rules.review)
            assert len(records) == len(content.posts)
            assert content.title in read(tree, rules.page_title)
            for record, post in zip(records, content.posts, strict=True):
                assert read(record, rules.id).endswith(post.key)
                assert post.body in read(record, rules.body)
                assert read(record, rules.author) == post.author
                assert read(record, rules.date) == post.date
                assert not rules.title or read(record, rules.title) == post.title
                if rules.rating and post.rating:
                    assert read(record, rules.rating) == str(post.rating)
                    rated += 1
            assert not any(re.search(pattern, tree.html) for pattern in rules.blocked)
            assert 5_000 <= len(document.body) <= 17_000
    assert rated > 10


def test_about_a_third_of_the_sites_write_gbk_and_say_so_in_three_ways(catalog, corpus, local_web):
    ways = set()
    for site in catalog.sites:
        pages = corpus.pages(site, MILK)
        if encoding_of(site).codec != "gbk" or not pages:
            continue
        document = ask(local_web, corpus.url(pages[0]))
        in_header, in_meta = "charset" in document.content_type, b"charset=" in document.body
        ways.add((in_header, in_meta))
        assert corpus.content(pages[0]).title in document.body.decode("gbk")
        with pytest.raises(UnicodeDecodeError):
            document.body.decode("utf-8")
    assert ways == {(True, False), (False, True), (False, False)}
    gbk = sum(encoding_of(site).codec == "gbk" for site in catalog.sites)
    assert 0.2 <= gbk / len(catalog.sites) <= 0.45


def test_what_gbk_cannot_spell_is_a_character_reference(catalog, local_web, corpus):
    site = next(site for site in catalog.sites if encoding_of(site).codec == "gbk")
    page = next(page for i in range(50) for page in corpus.pages(site, (f"牛奶😀{i}",)))
    document = ask(local_web, corpus.url(page))
    assert "😀" in LexborHTMLParser(document.body.decode("gbk")).css_first("title").text()


def test_a_query_with_markup_stays_text(catalog, local_web):
    engine = catalog.engine_of("12315.com")
    for i in range(20):
        keywords = (f"<script>x{i}</script>&amp;",)
        tree = LexborHTMLParser(ask(local_web, search_url(engine, "12315.com", keywords)).body.decode())
        assert len(tree.css("#head script, #content_left script")) == 0


@pytest.mark.parametrize(
    ("engine", "query", "expected"),
    [
        ("baidu", "wd=%E5%85%89%E6%98%8E+%E7%89%9B%E5%A5%B6&ie=utf-8", Query(("光明", "牛奶"), None, 1)),
        ("baidu", "wd=a+b+site%3A315zj.com%2F&pn=20", Query(("a", "b"), "315zj.com", 3)),
        ("baidu", "wd=a+a+site%3A12315.com&pn=x", Query(("a",), "12315.com", 1)),
        ("baidu", "", Query((), None, 1)),
        (
            "weibo-yunyun",
            "p=2&q=site%3Aweibo.com+a%26b%26%E6%8A%95%E8%AF%89",
            Query(("a", "b"), "weibo.com", 2),
        ),
        ("weibo-yunyun", "q=%E6%8A%95%E8%AF%89%26b%26%E6%8A%95%E8%AF%89", Query(("投诉", "b"), None, 1)),
    ],
)
def test_a_search_url_is_read_back(catalog, engine, query, expected):
    assert read_query(catalog.engines[engine], query) == expected


def test_refusals_are_what_the_rules_call_blocked(catalog, local_web):
    hosts = {urlsplit(engine.url).hostname: engine.results.blocked for engine in catalog.engines.values()}
    hosts |= {site: catalog.rules_of(site).blocked for site in catalog.sites}
    for host, blocked in hosts.items():
        for answer in (Answer.CAPTCHA, Answer.LOGIN_PAGE, Answer.TOO_FREQUENT):
            document = local_web.refusal(host, "/s", answer)
            assert document.status == 200
            assert any(re.search(pattern, document.body.decode()) for pattern in blocked)


def test_hosts_are_known_with_and_without_www(local_web):
    assert local_web.role("www.baidu.com") is local_web.role("baidu.com") is Role.ENGINE
    assert local_web.role("www.12315.com") is local_web.role("12315.com") is Role.SITE
    assert local_web.role("example.com") is None
