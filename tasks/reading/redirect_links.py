"""Redirect links of engines that hold the address they lead to: it is read, not asked for."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode
from urllib.parse import parse_qs, urlsplit

from tasks.domain.address import sendable
from tasks.domain.failures import FetchError


def address_in(link: str) -> str:
    """The sendable address that a link holds; empty where it holds none.

    Bing's `/ck/a?...&u=a1aHR0cHM6Ly9...` does: behind `a1` stands the address in base64url, without padding.
    """
    try:
        value = parse_qs(urlsplit(link).query).get("u", [""])[0]
        if not value.startswith("a1"):
            return ""
        encoded = value[2:]
        address = urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
        return sendable(address) if address.startswith(("http://", "https://")) else ""
    except (binascii.Error, ValueError, FetchError):
        return ""
