"""How much goes at once: items of a transaction, requests of an attempt."""

from __future__ import annotations

MOST_AT_ONCE = 2000
"""Most items in one transaction or one round trip, unless the settings say so."""

LANES = 4
"""Requests of one attempt in flight at once."""
