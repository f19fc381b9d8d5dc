"""Which sites publish praise as well: only there, complaints have a share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from splitter.catalog.names import Group
from tasks.domain.voices import Voice

_WITH_PRAISE = (Group.SHOP, Group.MICROBLOG, Group.FORUM)
LEAST_BUYERS = 50
"""Buyers' reviews of a site without a group from which its praise is judged."""
LEAST_PRAISE = 0.2


def find_sites_with_praise(
    counts: Iterable[tuple[str, str, int]], groups: Mapping[str, Group | None]
) -> frozenset[str]:
    """Return the sites that publish praise: by their group, or by what is stored of a site without a group.

    Args:
        counts: reviews by site and voice.
    """
    voices: dict[str, Counter[str]] = defaultdict(Counter)
    for site, voice, n in counts:
        voices[site][voice] += n

    def publishes(site: str) -> bool:
        group = groups.get(site)
        if group is not None:
            return group in _WITH_PRAISE
        praise = voices[site][Voice.PRAISE]
        buyers = voices[site][Voice.COMPLAINT] + praise
        return buyers >= LEAST_BUYERS and praise >= LEAST_PRAISE * buyers

    return frozenset(filter(publishes, voices))
