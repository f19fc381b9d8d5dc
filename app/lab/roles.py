"""What a host is in the catalog."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a host is in the catalog; one that is both (a site's own search) counts as engine."""

    ENGINE = "engine"
    SITE = "site"
