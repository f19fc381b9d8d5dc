"""One page, one address: the canonical URL and the key a page is known by (RFC 3986, 6.2, plus tracking)."""

from __future__ import annotations

import re
from functools import lru_cache
from hashlib import blake2b

from tasks.domain.address import MAX_URL_CHARS, sendable

_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_SPLIT = re.compile(r"(https?)://([^/?]*)([^?]*)\??(.*)", re.DOTALL)
_DEFAULT_PORT = {"http": ":80", "https": ":443"}

# Parameters that only say how a visitor came. Names that never mean content:
_TRACKING = frozenset(
    {"spm", "scm", "fbclid", "gclid", "dclid", "msclkid", "yclid", "bd_vid", "isappinstalled", "hmsr", "hmpl"}
    | {"hmcu", "hmkw", "hmci", "wfr", "nsukey", "weixin_share_id"}
)
_TRACKING_PREFIXES = ("utm_", "share_")
# Names that may mean content (`from=2013-05`): dropped only with the values that sharing puts there.
_SHARED_BY = frozenset(
    {
        "singlemessage",
        "groupmessage",
        "timeline",
        "qq",
        "qzone",
        "weibo",
        "wechat",
        "weixin",
        "share",
        "sinaweibo",
    }
)
_TRACKING_IF_SHARED = frozenset({"from", "fr", "src"})

# An address that is canonical as it stands, after the scheme: no default port, nothing escaped, no fragment, no
# parameter that is empty or begins like one of those above. Dot segments are looked for apart.
_MAYBE_TRACKING = f"(?i:{'|'.join(sorted(_TRACKING | _TRACKING_IF_SHARED | set(_TRACKING_PREFIXES)))})"
_PARAMETER = rf"(?!{_MAYBE_TRACKING})[!\"$'-\[\]-~]++"
_CANONICAL = re.compile(
    r"https?://((?:[a-z0-9][a-z0-9-]{0,62}\.){0,9}[a-z0-9][a-z0-9-]{0,62}(?::(?!80/|443/)[1-9][0-9]{0,3})?/[!\"$&->@-\[\]-~]*+"
    rf"(?:\?{_PARAMETER}(?:&{_PARAMETER})*+)?)"
)


def canonical(url: str) -> str:
    """The canonical form of an address; idempotent.

    Lower-case scheme and host, punycode, no trailing dot, no default port, no fragment, dot segments
    resolved, percent-encoding normalised, tracking parameters and empty queries dropped; the order of the
    rest is kept, as it may matter to the site.

    Raises:
        FetchError: it is no address that could be asked (see `tasks.domain.address.sendable`).
    """
    if _strip_scheme(url):
        return url
    scheme, rest = _parts(url)
    return f"{scheme}://{rest}"


def page_key(url: str) -> bytes:
    """Return the 16 bytes that identify a page: a hash of its canonical address without its scheme.

    Raises:
        FetchError: as `canonical`.
    """
    return blake2b((_strip_scheme(url) or _parts(url)[1]).encode(), digest_size=16).digest()


def _strip_scheme(url: str) -> str:
    """The part behind the scheme of an address that is canonical already, as most are; empty for any other."""
    match = _CANONICAL.fullmatch(url)
    return match[1] if match and "/." not in url and len(url) <= MAX_URL_CHARS else ""


def _parts(url: str) -> tuple[str, str]:
    match = _SPLIT.fullmatch(sendable(url))
    if match is None:  # sendable() excludes this
        raise AssertionError(url)
    scheme, authority, path, query = match.groups()
    path = _normal_percent(path)
    if "/." in path:
        path = _remove_dots(path)
    if query:
        query = "&".join(p for p in _normal_percent(query).split("&") if p and not _tracks(p))
    return scheme, f"{_normal_authority(scheme, authority)}{path or '/'}{'?' if query else ''}{query}"


@lru_cache(maxsize=4096)
def _normal_authority(scheme: str, authority: str) -> str:
    authority = authority.removesuffix(_DEFAULT_PORT[scheme])
    if authority.startswith("["):
        return authority
    host, colon, port = authority.partition(":")
    return f"{host.rstrip('.')}{colon}{port.lstrip('0')}"


def _normal_percent(text: str) -> str:
    return _PERCENT.sub(_normal_escape, text) if "%" in text else text


def _normal_escape(match: re.Match[str]) -> str:
    digits = match[1]
    if digits is None:
        return "%25"  # a stray percent sign, which would otherwise join what follows at the next pass
    code = int(digits, 16)
    return chr(code) if code in _UNRESERVED else f"%{digits.upper()}"


def _remove_dots(path: str) -> str:
    """Return the path with dot segments resolved (RFC 3986, 5.2.4)."""
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if segments[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)


def _tracks(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    name = name.lower()
    if name in _TRACKING_IF_SHARED:
        return value.lower() in _SHARED_BY
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)
