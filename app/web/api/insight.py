"""Paths of `/api` about complaints: themes of a product, rises, and new phrases that can be added to a theme."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from app.actions.theme_actions import AdoptedTerm, NewTheme
from app.insight.rows import NewPhrasesView, RisesView, ThemesView
from app.insight.themes import list_rises, list_themes
from app.views.moments import local_time
from app.web.api.reading import PROBLEMS
from app.web.base.context import Here
from app.web.base.query import AnyPeriod, ProductId, RecentPeriod
from app.web.pages.phrases import adopt, read_phrases
from app.web.pages.products import name_of
from splitter.errors import InputError
from tasks.store.content import products

router = APIRouter(prefix="/api", tags=["insight"])

_Name = Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[^\x00]*$")]


@router.get("/products/{product}/themes", responses=PROBLEMS)
def themes(page: Here, number: ProductId, period: AnyPeriod) -> ThemesView:
    """Return the themes that buyers of a product complain about in a period, with states and quotes."""
    name = name_of(page, number)
    with page.context.store.read() as tx:
        today = local_time(tx.now).date()
        product = products.find_counted(tx, name)
        return list_themes(tx, {product.id: product.name}, period.find(today), today, page.context.groups)


@router.get("/rises", responses=PROBLEMS)
def rises(page: Here) -> RisesView:
    """Return the rising themes of all products, and the products whose complaints in total rise."""
    groups = page.context.groups
    return page.context.read("rises", lambda tx: list_rises(tx, local_time(tx.now).date(), groups))


@router.get("/products/{product}/phrases", responses=PROBLEMS)
def phrases(page: Here, number: ProductId, period: RecentPeriod) -> NewPhrasesView:
    """Return phrases in the complaints of a period that belong to no theme and are more frequent than before."""
    return read_phrases(page, number, period)


class ThemeToAdd(BaseModel):
    """A theme to add: its id, such as pet_hair, and its names."""

    model_config = ConfigDict(extra="forbid")

    id: _Name
    zh: _Name
    en: _Name


class PhraseToAdopt(BaseModel):
    """A phrase to add as a term to an existing `theme` (id or name) or to a `new_theme`."""

    model_config = ConfigDict(extra="forbid")

    phrase: _Name
    theme: _Name | None = None
    new_theme: ThemeToAdd | None = None


@router.post("/products/{product}/phrases", responses=PROBLEMS)
def adopt_phrase(page: Here, number: ProductId, wanted: PhraseToAdopt) -> AdoptedTerm:
    """Add a phrase to the themes file, for the category of a product. Stored reviews are read with it by `judge`."""
    if (wanted.theme is None) == (wanted.new_theme is None):
        raise InputError("give theme, or new_theme with id, zh and en")
    if wanted.new_theme is None:
        return adopt(page, number, wanted.phrase, wanted.theme or "")
    new = wanted.new_theme
    return adopt(page, number, wanted.phrase, new.id, NewTheme.read(new.zh, new.en))
