"""One page, one address."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.domain.address import MAX_URL_CHARS, resolve_reference
from tasks.domain.failures import FetchError
from tasks.domain.page_key import canonical, page_key


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("HTTP://WWW.Example.CN:80", "http://www.example.cn/"),
        ("https://example.cn:443/a#top", "https://example.cn/a"),
        ("http://example.cn:443/", "http://example.cn:443/"),
        ("http://example.cn./a", "http://example.cn/a"),
        ("http://example.cn:08080/", "http://example.cn:8080/"),
        ("http://例子.中国/", "http://xn--fsqu00a.xn--fiqs8s/"),
        ("http://a.cn/x/./y/../z", "http://a.cn/x/z"),
        ("http://a.cn/../../x/..", "http://a.cn/"),
        ("http://a.cn/x/%2e%2e/y/.", "http://a.cn/y/"),
        ("http://a.cn//x//y", "http://a.cn//x//y"),
        ("http://a.cn/%7euser/%e5%85%89%2F", "http://a.cn/~user/%E5%85%89%2F"),
        ("http://a.cn/100%", "http://a.cn/100%25"),
        ("http://a.cn/%4%31", "http://a.cn/%2541"),
        ("http://a.cn/?", "http://a.cn/"),
        ("http://a.cn?b=2&a=1&&", "http://a.cn/?b=2&a=1"),
        ("http://a.cn/?utm_source=x&id=7&spm=a.b&share_token=q&isappinstalled=0", "http://a.cn/?id=7"),
        ("http://a.cn/?utm_source=x", "http://a.cn/"),
        ("http://a.cn/?from=timeline&fr=weibo&q=1", "http://a.cn/?q=1"),
        ("http://a.cn/?from=2013-05&fr=9&src=page", "http://a.cn/?from=2013-05&fr=9&src=page"),
        ("http://a.cn/?shared=1&spmx=2", "http://a.cn/?shared=1&spmx=2"),
        ("http://a.cn/?q=a%20b+c", "http://a.cn/?q=a%20b+c"),
        ("http://a.cn/?next=/x/../y", "http://a.cn/?next=/x/../y"),
        ("http://[2400:3200::1]:80/", "http://[2400:3200::1]/"),
    ],
)
def test_canonical(url, expected):
    assert canonical(url) == expected


def test_key_is_16_bytes_and_the_same_over_http_and_https():
    assert len(page_key("http://a.cn/x")) == 16
    assert page_key("http://a.cn/x?utm_medium=1") == page_key("https://A.cn:443/x#1")
    assert page_key("http://a.cn/x") != page_key("http://a.cn/X")


@pytest.mark.parametrize(
    "url",
    [
        "javascript:void(0)",
        "http://a..cn/",
        "http://.a.cn/",
        "http://a.cn..:80/",
        f"http://{'a' * 64}.cn/",
        "http://../",
    ],
)
def test_what_cannot_be_asked_has_no_key(url):
    with pytest.raises(FetchError):
        page_key(url)


@given(
    st.builds(
        "{}://{}{}{}".format,
        st.sampled_from(["http", "https", "HTTP"]),
        st.sampled_from(["a.cn", "A.CN.", "a.cn:80", "a.cn:443", "b-1.a.cn:8080", "例子.中国", "a.cn.:80"]),
        st.text("/.%2eE41aA\\奶 ;=@:", max_size=20).map(lambda path: "/" + path),
        st.text("?&=%2eEabutm_fromspm#奶 +/", max_size=20),
    )
)
def test_canonical_is_idempotent(url):
    once = canonical(url)
    assert canonical(once) == once
    assert page_key(once) == page_key(url)


PLAIN_HOSTS = ["a.cn", "a.cn.", "b-1.a.cn", "127.0.0.1:8080", "a.cn:80", "a.cn:443", "a.cn:08", "a-"]
PARAMETERS = st.one_of(
    st.sampled_from(
        ["", "id=7", "page", "utm_source=x", "UTM_x=1", "spm=1", "from=qq", "From=qq", "from=2013"]
    ),
    st.sampled_from(["frq=1", "fr", "hm=1", "SCM", "share_x", "q=a/./b"]),
    st.text("iIsdpmfr_=?/.;%2a'", max_size=5),
)


@given(
    st.builds(
        "{}://{}{}{}".format,
        st.sampled_from(["http", "https"]),
        st.sampled_from(PLAIN_HOSTS),
        st.text("/a.-~%;:@!\"$&'[]\\", max_size=8).map(lambda path: "/" + path) | st.just(""),
        st.lists(PARAMETERS, max_size=4).map(lambda parameters: "?" + "&".join(parameters)) | st.just(""),
    )
)
def test_plain_addresses_get_the_answer_of_the_full_way(url):
    # A fragment, or a blank before it, means nothing, but makes an address one that is not plain.
    assert canonical(url) == canonical(f"{url}#x")
    assert page_key(url) == page_key(f"{url}#x")
    assert resolve_reference("http://b.cn/", url) == resolve_reference("http://b.cn/", f" {url}")


def test_addresses_too_long_are_refused_however_plain():
    longest = "http://a.cn/" + "x" * (MAX_URL_CHARS - 12)
    assert canonical(longest) == resolve_reference("http://b.cn/", longest) == longest
    for read in (canonical, page_key, lambda url: resolve_reference("http://b.cn/", url)):
        with pytest.raises(FetchError):
            read(longest + "x")


@pytest.mark.parametrize(
    ("encoding", "reference", "expected"),
    [
        ("gb18030", "?kw=光明", "?kw=%B9%E2%C3%F7"),
        ("big5hkscs", "?kw=光明", "?kw=%A5%FA%A9%FA"),
        ("cp932", "?kw=ソ|", "?kw=%83\\|"),
        ("cp949", "?kw=우유", "?kw=%BF%EC%C0%AF"),
        ("euc_jp", "?kw=牛乳", "?kw=%B5%ED%C6%FD"),
        ("koi8-r", "?kw=молоко", "?kw=%CD%CF%CC%CF%CB%CF"),
        ("utf-16-le", "?kw=光", "?kw=%E5%85%89"),
        ("gb18030", "?kw=光 🥛&x=1", "?kw=%B9%E2%20%26%23129371%3B&x=1"),
        ("cp1252", "?kw=é光", "?kw=%E9%26%2320809%3B"),
        ("gb18030", "/光?kw=光#光", "/%E5%85%89?kw=%B9%E2"),
        ("gb18030", "http://光.cn/光", "http://xn--54q.cn/%E5%85%89"),
        ("gb18030", "?kw=%E5%85%89", "?kw=%E5%85%89"),
    ],
)
def test_a_query_is_written_in_the_encoding_of_its_page(encoding, reference, expected):
    whole = resolve_reference("http://a.cn/p", expected)
    assert resolve_reference("http://a.cn/p", reference, encoding) == whole
    assert canonical(whole) == whole
