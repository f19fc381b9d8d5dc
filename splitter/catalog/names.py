"""Names that a catalog goes by: kinds of nodes, groups of sites, and the catalogs that come with the project.

Apart from the models, which take a while to import.
"""

from __future__ import annotations

from enum import StrEnum

BUILTIN = ("today", "paper-2014", "lab-login")
"""Names of the catalogs that come with the project."""


class Kind(StrEnum):
    """Kinds of nodes, and of the engines that sites are reached through (source terms: 0 and 1)."""

    META = "meta"
    MICROBLOG = "microblog"


class Group(StrEnum):
    """Groups of sites, for people: lists are sorted by them, and commands take them."""

    REGULATOR = "regulator"
    COMPLAINTS = "complaints"
    FORUM = "forum"
    MICROBLOG = "microblog"
    SHOP = "shop"
    NEWS = "news"


Category = StrEnum("Category", "FOOD CAR PHONE APPLIANCE APP RESTAURANT SERVICE OTHER")
"""Categories of products; a site may list those that are looked for there."""
WITHOUT_THEMES = (Category.APP, Category.SERVICE)
"""Categories whose reviews are not read for themes: no set of themes was measured on them."""
