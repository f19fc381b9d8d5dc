"""How much goes at once: leases, results, duplicate questions."""

from __future__ import annotations

MOST_AT_ONCE = 2000
"""Most items in one transaction or one round trip, unless the settings say so."""
