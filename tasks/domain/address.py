"""Addresses as they come out of pages and catalogs, made sendable: ASCII, http or https, no fragment.

Everything that requests, compares or stores an address starts from the form made here, so that the part that
checks an address and the part that connects to it can't read it differently.
"""

from __future__ import annotations

import re
from typing import NoReturn
from urllib.parse import quote, urljoin

from splitter.errors import Message
from yarl import URL

from tasks.domain.failures import ErrorClass, FetchError

MAX_URL_CHARS = 8000
_MAX_NAME_CHARS = 253
"""Maximum length of a host name (RFC 1035, 2.3.4) in any script: mapping thousands of letters takes half a second."""

# Scheme, host of at most eight short labels with at most a port, then printable ASCII: nothing to repair.
_PLAIN = re.compile(
    r"https?://[a-z0-9][a-z0-9-]{0,29}(?:\.[a-z0-9-]{1,30}){0,7}(?::[1-9][0-9]{0,3})?(?:[/?][!-\[\]-~]*)?"
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AUTHORITY = re.compile(r"[/\\]{2}([^/\\?#]*)")
_SENDABLE_AUTHORITY = re.compile(r"https?://([^/?]*)")
_HOST = re.compile(r"(?=.{1,253}$)(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?|\[[0-9a-f:.]+\]")
_UNSENDABLE = re.compile(r"[^!-~]+")
_EDGES = "".join(map(chr, range(33)))
_LINE_BREAKS = str.maketrans("", "", "\t\r\n")
# The encoding of a query where browsers write another than they read (URL, 4.4; Encoding, 4.3): none of UTF-16, no
# four bytes of gb18030 in a page called GBK, and no characters of Hong Kong's Big5.
_WRITTEN_AS = {"gb18030": "gbk", "big5hkscs": "cp950", "hz": "utf-8"}
_TRAIL_BYTES = "@[\\]^_`{|}~"


def sendable(url: str, encoding: str = "utf-8") -> str:
    """Return the address in the form it is sent in. A sendable address keeps its bytes, less its fragment.

    Repairs what browsers repair: blanks around it, line breaks within, backslashes for slashes, letters
    outside ASCII (punycode in the host, percent-encoded UTF-8 in the path, in the query the page's encoding).

    Args:
        encoding: Python's name of the encoding of the page that the address stands in.

    Raises:
        FetchError: SCHEME_REFUSED unless it is http or https; ADDRESS_REFUSED if it has no usable
            host, carries a user name or password, or is longer than ``MAX_URL_CHARS``.
    """
    url = url.strip(_EDGES).partition("#")[0]
    if len(url) > MAX_URL_CHARS:
        _refuse(
            ErrorClass.ADDRESS_REFUSED,
            url,
            Message("has {n} characters, {most} are allowed", n=len(url), most=MAX_URL_CHARS),
        )
    return url if _PLAIN.fullmatch(url) else _repair(url, encoding)


def resolve_reference(base: str, reference: str, encoding: str = "utf-8") -> str:
    """Return the sendable address that a reference means in a page with this base and this encoding.

    Raises:
        FetchError: as `sendable`.
    """
    if _PLAIN.fullmatch(reference) and "#" not in reference and len(reference) <= MAX_URL_CHARS:
        return reference
    reference = reference.strip(_EDGES).translate(_LINE_BREAKS)
    if reference.startswith(("http://", "https://")):
        return sendable(reference, encoding)
    path, mark, query = reference.partition("?")
    try:
        return sendable(urljoin(base, path.replace("\\", "/") + mark + query), encoding)
    except ValueError:
        _refuse(ErrorClass.ADDRESS_REFUSED, reference, Message("is no address"))


def authority_of(url: str) -> str:
    """Host and port of a sendable address, as the Host header carries them."""
    match = _SENDABLE_AUTHORITY.match(url)
    return match[1] if match else ""


def _repair(url: str, encoding: str) -> str:
    url = url.translate(_LINE_BREAKS)
    scheme = _SCHEME.match(url)
    if scheme is None or scheme[1].lower() not in ("http", "https"):
        _refuse(ErrorClass.SCHEME_REFUSED, url, Message("is neither http nor https"))
    authority = _AUTHORITY.match(url, scheme.end())
    if authority is None:
        _refuse(ErrorClass.ADDRESS_REFUSED, url, Message("has no host"))
    path, mark, query = url[authority.end() :].partition("?")
    path = _UNSENDABLE.sub(_quote_match, path.replace("\\", "/"))
    query = _UNSENDABLE.sub(lambda run: _quote_run(run, encoding), query)
    return f"{scheme[1].lower()}://{_authority(url, authority[1])}{path}{mark}{query}"


def _authority(url: str, authority: str) -> str:
    if "@" in authority:
        _refuse(ErrorClass.ADDRESS_REFUSED, url, Message("carries a user name or password"))
    host, port = authority, ""
    if (cut := authority.rfind(":")) > authority.rfind("]"):
        host, port = authority[:cut], authority[cut + 1 :]
    host = host.lower()
    if not host.isascii():
        host = _punycode(url, host)
    if not _HOST.fullmatch(host):
        _refuse(
            ErrorClass.ADDRESS_REFUSED,
            url,
            Message("has no usable host name: {error}", error=repr(host[:80])),
        )
    if port and not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536):
        _refuse(ErrorClass.ADDRESS_REFUSED, url, Message("has no usable port: {port!r}", port=port[:10]))
    return f"{host}:{port}" if port else host


def _punycode(url: str, host: str) -> str:
    if len(host) > _MAX_NAME_CHARS:
        _refuse(ErrorClass.ADDRESS_REFUSED, url, Message("has a host name of {n} characters", n=len(host)))
    try:
        encoded = URL.build(scheme="http", host=host).raw_host
    except ValueError:
        _refuse(
            ErrorClass.ADDRESS_REFUSED,
            url,
            Message("has no usable host name: {error}", error=repr(host[:80])),
        )
    return encoded or ""


def _quote_match(match: re.Match[str]) -> str:
    try:
        # Bytes outside UTF-8 (a Location header in GBK) arrive as surrogates and go out as they came.
        return quote(match.group().encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return quote(match.group().encode("utf-8", "replace"))


def _quote_run(run: re.Match[str], encoding: str) -> str:
    """Return a run of a query in an encoding. Characters it lacks become a quoted ``&#NNNN;`` (URL, 1.3)."""
    encoding = _WRITTEN_AS.get(encoding, encoding)
    if encoding.startswith("utf"):
        return _quote_match(run)
    return quote(run.group().encode(encoding, "xmlcharrefreplace"), safe=_TRAIL_BYTES)


def _refuse(error: ErrorClass, url: str, why: Message) -> NoReturn:
    raise FetchError(error, Message("{url!r} {why}", url=url[:200], why=why))
