"""Capacity of hosts: what they grant now, in all and to one address."""

from __future__ import annotations

from functools import partial

import pytest

from splitter.catalog.model import Limits
from tasks.domain.facts import HostFacts
from tasks.domain.grants import AddressGrants, HostGrants
from tasks.scheduling.capacity import Crawled, HostCapacity, host_views

SITE = "a.cn"
ADDRESS = "192.0.2.1"
LIMITS = Limits(per_address_per_s=2, total_per_s=8)
CRAWLED = partial(Crawled, running=[], asking={}, rests=[], addresses={"n1": ADDRESS})


@pytest.mark.parametrize(
    ("granted", "shown"),
    [
        (HostGrants(), {"room": 4, "pages_per_s": 8.0, "shares": {}, "waits_s": {}}),
        (HostGrants(share=0.25), {"room": 1, "pages_per_s": 2.0}),
        (HostGrants(next_s=6.0), {"room": 0}),
        (
            HostGrants(addresses={ADDRESS: AddressGrants(share=0.25)}),
            {"room": 4, "shares": {"n1": 0.25}, "waits_s": {}},
        ),
        (HostGrants(addresses={ADDRESS: AddressGrants(next_s=60.0)}), {"waits_s": {"n1": 60.0}}),
    ],
)
def test_capacity_is_what_hosts_grant_now(granted: HostGrants, shown: dict[str, object]) -> None:
    crawled = CRAWLED(sites=[SITE], grants={SITE: granted})
    view = host_views(crawled, lambda site: (site, site), lambda _: LIMITS, {SITE: 0.2}, 4, 10)[SITE]
    assert {name: getattr(view, name) for name in shown} == shown
    assert HostCapacity([view]).remaining_for([SITE], "n1") == (0 if view.waits_s else 1)
    assert HostCapacity([view]).remaining_for([SITE], "n2") == 1


def test_rests_are_open_until_they_end_and_half_open_after() -> None:
    rests = [(SITE, "n1", 9.0, True), (SITE, "n2", 5.0, False), (SITE, "n3", 0.0, True)]
    crawled = CRAWLED(rests=rests, sites=[], grants={})
    (view,) = host_views(crawled, lambda site: (site, site), lambda _: LIMITS, {}, 4, 10).values()
    assert (view.resting, view.unanswered, view.probing) == ({"n1", "n2"}, {"n1"}, {"n3"})
    assert view.rests_s == {"n1": 9.0, "n2": 5.0}


def test_one_site_that_answers_at_once_holds_back_no_other_of_its_engine() -> None:
    """What an attempt to come asks of the engine is the mean of its sites, not the fastest of them."""
    crawled = CRAWLED(sites=[SITE, *(f"slow{n}.cn" for n in range(9))], grants={})
    limits = Limits(per_address_per_s=1000, total_per_s=10_000)

    def of_engine(request_s: dict[str, float]) -> HostFacts:
        views = host_views(crawled, lambda site: ("engine.cn", site), lambda _: limits, request_s, 4, 10)
        return views["engine.cn"]

    alike, one_fast = of_engine({}).address_limit, of_engine({SITE: 0.01}).address_limit
    assert alike is not None
    assert one_fast is not None
    assert one_fast > alike / 4  # its own attempts ask twenty times as fast
