"""The catalog of sites in force."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.run.version import ROOT
from splitter.catalog.names import BUILTIN

if TYPE_CHECKING:
    from splitter.catalog.model import Catalog


def chosen_catalog(spec: str | None) -> Catalog:
    """The catalog asked for: a file or a built-in catalog's name; None: ./sites.yaml, else the project's own.

    Raises:
        CatalogError: there is none of that name, or it is wrong.
    """
    from splitter.catalog.load import builtin, find_catalog  # the models take a while to import

    here = Path("sites.yaml")
    default = here if here.is_file() else ROOT / "sites.yaml"
    if spec is None and not default.is_file():
        return builtin(BUILTIN[0])
    return find_catalog(spec, default)
