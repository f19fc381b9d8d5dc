"""The floor of an attempt: it ends early if another node would make more pages of the same requests."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count


@dataclass(frozen=True, slots=True)
class PageFloor:
    """The minimum number of pages that an attempt must make of its requests.

    The belief about a (site, node) is a Beta(a, b) over the chance that a request gives a page. After a number of tries
    with some pages its mean is (a + pages) / (a + b + tries). The attempt ends once that is below `least_share`:

        pages < least_share * tries - slack        with slack = a - least_share * (a + b)

    So an unknown pair ends after a few failures, and a well-known one outlives a bad moment.

    Attributes:
        least_share: pages of a request, 0 to 1; 0: the attempt does not end early.
        slack: pages that it may stay behind.
    """

    least_share: float = 0.0
    slack: float = 0.0

    @classmethod
    def for_beta(cls, a: float, b: float, least_share: float) -> PageFloor:
        """Return the floor of a pair believed to be Beta(a, b). One failure alone ends nothing."""
        if least_share <= 0.0:
            return NO_FLOOR
        return cls(least_share, max(least_share, a - least_share * (a + b)))

    @property
    def tries_without_page(self) -> int | None:
        """Return after how many tries an attempt without a page ends; `None` if it does not end early."""
        if self.least_share <= 0.0:
            return None
        # The quotient is rounded, and so is the product in `is_missed`, which decides.
        first = math.floor(self.slack / self.least_share)
        return next(tries for tries in count(first) if self.is_missed(tries, 0))

    def is_missed(self, tries: int, pages: int) -> bool:
        """Return True if an attempt with these tries and pages should end."""
        return self.least_share > 0.0 and pages < self.least_share * tries - self.slack


NO_FLOOR = PageFloor()
"""The attempt does not end early."""
