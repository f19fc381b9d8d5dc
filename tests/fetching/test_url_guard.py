"""Addresses made sendable, and the gate they pass."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from yarl import URL

from tasks.domain.address import authority_of, resolve_reference, sendable
from tasks.domain.failures import ErrorClass, FetchError
from tasks.domain.public_ip import address_allowed
from tasks.fetching.guard import check_authority


@pytest.mark.parametrize(
    "url",
    [
        "http://a.cn",
        "https://a.cn:8080/x%2fy?z=%7E&&q=a+b#",
        'http://a.cn/{|}^`"<>',
        "http://8.8.8.8/",
        "http://a.cn./",
        "http://_a.b_c.cn/",
        "http://1.2.3.4.5.6.7.8.9.a.cn/",
        f"http://{'a' * 63}.cn/",
        "http://[2400:3200::1]/",
    ],
)
def test_what_is_sendable_stays_as_it_is(url):
    assert sendable(url) == url.removesuffix("#")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("  HTTP://Example.CN/a b\n", "http://example.cn/a%20b"),
        (
            "http://例子.中国/搜索?词=奶",
            "http://xn--fsqu00a.xn--fiqs8s/%E6%90%9C%E7%B4%A2?%E8%AF%8D=%E5%A5%B6",
        ),
        ("http:\\\\example.cn\\a\\b?c=\\", "http://example.cn/a/b?c=\\"),
        ("http://a.cn\\@127.0.0.1/", "http://a.cn/@127.0.0.1/"),
        ("ht\ntp://exa\tmple.cn/", "http://example.cn/"),
        ("http://example.cn/\udce5\udc85", "http://example.cn/%E5%85"),
    ],
)
def test_repairs(url, expected):
    assert sendable(url) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("/b", "http://example.cn/b"),
        ("c?d#e", "http://example.cn/x/c?d"),
        ("?q=1", "http://example.cn/x/a?q=1"),
        ("//other.cn/", "http://other.cn/"),
        ("../../../b", "http://example.cn/b"),
        ("https://other.cn/%e5", "https://other.cn/%e5"),
        ("\\b\\c", "http://example.cn/b/c"),
    ],
)
def test_references(reference, expected):
    assert resolve_reference("http://example.cn/x/a?p=1", reference) == expected


@pytest.mark.parametrize(
    "reference", ["javascript:alert(1)", "mailto:a@b.cn", "java\nscript:x", "data:text/html,x", "ftp://a.cn/"]
)
def test_references_of_other_schemes(reference):
    with pytest.raises(FetchError) as caught:
        resolve_reference("http://example.cn/", reference)
    assert caught.value.error is ErrorClass.SCHEME_REFUSED


@pytest.mark.parametrize(
    "url",
    [
        "http://",
        "http:///x",
        "http://./",
        "http://../",
        "http://.a.cn/",
        "http://example..com/x",
        "http://a.cn../",
        "http://a..cn:8080/",
        "http://例子..中国/",
        f"http://{'a' * 64}.cn/",
        f"http://{'a.' * 127}cn/",
        "http://a.cn:0/",
        "http://a.cn:99999/",
        "http://a.cn:８0/",
        "http://%31%32%37.0.0.1/",
        "http://user@a.cn/",
        "http://a.cn:80@127.0.0.1/",
        "http://a b.cn/",
        "http://[::1/",
        "http://a.cn/" + "x" * 9000,
        "http://" + "光." * 127 + "cn/",
    ],
)
def test_addresses_without_a_usable_host(url):
    with pytest.raises(FetchError) as caught:
        check_authority(authority_of(sendable(url)), allow_loopback=True)
    assert caught.value.error is ErrorClass.ADDRESS_REFUSED


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://a.cn/", "//a.cn/", "a.cn", "", "http"])
def test_other_schemes(url):
    with pytest.raises(FetchError) as caught:
        check_authority(authority_of(sendable(url)), allow_loopback=True)
    assert caught.value.error is ErrorClass.SCHEME_REFUSED


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "127.0.0.1.",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "017700000001",
        "１２７.0.0.1",
        "127。0。0。1",
        "0.0.0.0",
        "0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a00:1]",
        "[::127.0.0.1]",
        "[fe80::1]",
        "[fc00::1]",
        "[fec0::1]",
        "[ff02::1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::808:808]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "168.63.129.16",
        "[::ffff:168.63.129.16]",
        "[64:ff9b::a83f:8110]",
        "100.100.100.200",
        "192.0.0.9",
        "192.0.0.192",
        "192.0.2.1",
        "192.31.196.1",
        "192.52.193.1",
        "192.88.99.1",
        "192.175.48.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.1",
        "203.0.113.1",
        "239.255.255.255",
        "[64:ff9b:1::1]",
        "[100::1]",
        "[100:0:0:1::1]",
        "[2001::1]",
        "[2001:2::1]",
        "[2001:20::1]",
        "[2001:1ff::1]",
        "[2001:db8::1]",
        "[2002:808:808::1]",
        "[2620:4f:8000::1]",
        "[3fff::1]",
        "[3fff:fff::1]",
        "[5f00::1]",
        "[4000::1]",
        "[::808:808]",
        "[::ffff:0:808:808]",
    ],
)
def test_special_addresses_are_refused_however_written(host):
    with pytest.raises(FetchError) as caught:
        check_authority(authority_of(sendable(f"http://{host}/")), allow_loopback=False)
    assert caught.value.error is ErrorClass.ADDRESS_REFUSED


@pytest.mark.parametrize(
    "host",
    [
        *(
            "8.8.8.8",
            "168.63.129.15",
            "168.63.129.17",
            "100.63.255.255",
            "192.0.1.1",
            "192.88.98.1",
            "223.255.255.255",
        ),
        *("[2400:3200::1]", "[2001:200::1]", "[3ffe::1]", "[::ffff:8.8.8.8]", "[64:ff9b::808:808]"),
        *("example.cn", "1.2.3.4.cn", "0x7f.cn"),
    ],
)
def test_public_ones_pass(host):
    check_authority(authority_of(sendable(f"http://{host}/")), allow_loopback=False)


def test_lab_allows_loopback_and_nothing_else():
    check_authority(authority_of(sendable("http://127.0.0.1:8000/")), allow_loopback=True)
    check_authority(authority_of(sendable("http://[::1]:8000/")), allow_loopback=True)
    with pytest.raises(FetchError):
        check_authority(authority_of(sendable("http://192.168.0.1/")), allow_loopback=True)
    assert address_allowed("::ffff:127.0.0.2", allow_loopback=True)
    assert not address_allowed("no address", allow_loopback=True)
    assert not address_allowed("fe80::1%eth0", allow_loopback=True)


@given(
    st.one_of(st.text(), st.text("htps:/\\@[]#?.%127ab ｡１\t\n", max_size=40).map(lambda t: "http://" + t))
)
@example("http://a.cn:80:80/")
def test_what_passes_is_read_alike_by_guard_and_http_library(url):
    try:
        sent = sendable(url)
    except FetchError:
        return
    assert sendable(sent) == sent
    assert sent.isascii()
    assert not set(sent) & set(" \t\r\n#")
    authority = sent.split("/")[2].split("?")[0]
    parsed = URL(sent, encoded=True)
    port = f":{parsed.explicit_port}" if parsed.explicit_port is not None else ""
    host = f"[{parsed.raw_host}]" if ":" in (parsed.raw_host or "") else parsed.raw_host
    assert f"{host}{port}" == authority or int(authority.rpartition(":")[2]) == parsed.explicit_port
    assert parsed.user is None
