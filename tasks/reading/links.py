"""Addresses of a document's links: resolved against its base, their queries in its encoding, as browsers do."""

from __future__ import annotations

from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser

from tasks.domain.address import authority_of, resolve_reference
from tasks.domain.failures import FetchError


@dataclass(frozen=True, slots=True)
class Links:
    """How the links of a document are read (HTML, 2.4.3 and 4.2.3).

    Attributes:
        url: the document's final address.
        encoding: Python's name of its encoding.
        base: address that its links are resolved against; empty for `url`.
    """

    url: str
    encoding: str = "utf-8"
    base: str = ""

    def against(self, base: str) -> Links:
        """Return the same for a document with a base, as that is written."""
        return Links(self.url, self.encoding, self.address(base.strip()))

    def address(self, reference: str) -> str:
        """Return the absolute address of a link; empty if it leads to no other page."""
        if not reference or reference.startswith("#"):
            return ""
        try:
            return resolve_reference(self.base or self.url, reference, self.encoding)
        except FetchError:  # javascript:, mailto:, an address that can't be requested
            return ""

    def next_address(self, reference: str) -> str:
        """Return the address of a list's next part; empty if it leads back here, to another host, or nowhere."""
        here, following = Links(self.url).address(self.url), self.address(reference)
        same_host = authority_of(following) == authority_of(here)
        return following if same_host and following != here else ""


def links_in(tree: LexborHTMLParser, url: str, encoding: str) -> Links:
    """Return how the links of an HTML document are read: against its first `base` with an address, if it has one."""
    base = tree.css_first("base[href]")
    links = Links(url, encoding)
    return links if base is None else links.against(base.attrs.get("href") or "")
