"""Find the sites that also publish praise. A share of complaints is computed only for these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from splitter.catalog.names import Group
from tasks.store.queries.product_counts import PraiseRule
from tasks.store.queries.themes import ReviewWeek

Groups = Mapping[str, Group | None]
"""Kinds of the catalog's sites, by domain."""
_WITH_PRAISE = (Group.SHOP, Group.MICROBLOG, Group.FORUM)
LEAST_BUYERS = 50
"""Minimum number of buyers' reviews of a product from which a site without a group is judged."""
LEAST_PRAISE = 0.2


def make_praise_rule(groups: Groups) -> PraiseRule:
    """Return the rule of `find_sites_with_praise` as parameters for counting in the database."""
    of_group = {site: group for site, group in groups.items() if group is not None}
    with_praise = {site for site, group in of_group.items() if group in _WITH_PRAISE}
    return PraiseRule(
        with_praise=sorted(with_praise),
        without=sorted(of_group.keys() - with_praise),
        least_buyers=LEAST_BUYERS,
        least_praise=LEAST_PRAISE,
    )


def find_sites_with_praise(reviews: Sequence[ReviewWeek], groups: Groups) -> frozenset[tuple[int, str]]:
    """Return each (product, site) if the site publishes praise of the product, as well as complaints.

    Of most sites this is known by their group. If a site has no group, the product's reviews there show it.
    """
    complaints: Counter[tuple[int, str]] = Counter()
    praise: Counter[tuple[int, str]] = Counter()
    found = {(one.product_id, one.site) for one in reviews}
    unknown = {site for _, site in found if groups.get(site) is None}
    if unknown:
        for one in reviews:
            if one.site in unknown:
                complaints[one.product_id, one.site] += one.complaints
                praise[one.product_id, one.site] += one.praise

    def publishes(key: tuple[int, str]) -> bool:
        group = groups.get(key[1])
        if group is not None:
            return group in _WITH_PRAISE
        buyers = complaints[key] + praise[key]
        return buyers >= LEAST_BUYERS and praise[key] >= LEAST_PRAISE * buyers

    return frozenset(filter(publishes, found))
