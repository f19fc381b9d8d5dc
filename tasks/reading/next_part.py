"""The next part of a list of reviews."""

from __future__ import annotations

from tasks.domain.address import authority_of, joined, sendable
from tasks.domain.failures import FetchError


def next_address(reference: str, url: str) -> str:
    """The address of the next part of a list; empty where nothing says so, or what does leads back here or elsewhere.

    Args:
        reference: as the page writes it.
        url: of the page.
    """
    if not reference or reference.startswith("#"):
        return ""
    try:
        here, following = sendable(url), joined(url, reference)
    except FetchError:  # javascript:, an address that can't be requested
        return ""
    same_host = authority_of(following) == authority_of(here)
    return following if same_host and following != here else ""
