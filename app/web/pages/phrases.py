"""The page of new phrases in a product's complaints, with a form that adds a phrase to the themes file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions.theme_actions import AdoptedTerm, NewTheme, adopt_term
from app.insight.periods import PeriodChoice, read_period
from app.insight.rows import NewPhrasesView
from app.reports.phrases import list_new_phrases
from app.views.moments import local_time
from app.views.theme_names import find_theme, list_theme_names
from app.web.base.context import Here, Notice, PageRequest
from app.web.base.forms import shown_on
from app.web.base.query import ProductId, RecentPeriod, product_in_path
from app.web.pages.products import name_of
from splitter.errors import InputError
from tasks.reading.judge.reviews import choose_theme_set
from tasks.store.content import products

router = APIRouter()


def read_phrases(page: PageRequest, number: int, period: PeriodChoice) -> NewPhrasesView:
    """Return the new phrases of a product. Raises InputError if the period has no first day."""
    name = name_of(page, number)
    with page.context.store.read() as tx:
        days = period.find(local_time(tx.now).date())
    return page.context.read(("phrases", number, days), lambda tx: list_new_phrases(tx, [name], days))


def adopt(
    page: PageRequest, number: int, phrase: str, theme: str, new: NewTheme | None = None
) -> AdoptedTerm:
    """Add a phrase to the themes file, for the category of a product.

    Args:
        theme: id or name of an existing theme, or the id of `new`.

    Raises:
        InputError: the term or the theme is wrong, or the product's category has no themes.
    """
    name = name_of(page, number)
    with page.context.store.read() as tx:
        category = choose_theme_set(products.find_counted(tx, name).category)
    if category is None:
        raise InputError("this product's category has no themes")
    to = theme.strip() if new is not None else find_theme(theme)
    file = page.context.settings.themes_file
    return adopt_term(page.context.store, file, category, to, phrase.strip(), page.who, new)


@router.get("/products/{product}/phrases")
def show_phrases(page: Here, number: ProductId, period: RecentPeriod) -> Response:
    """Show phrases that are more frequent in a period's complaints than before, with a form to adopt one."""
    name = name_of(page, number)
    with page.context.store.read() as tx:
        product = products.find_counted(tx, name)
    return page.html(
        "phrases.html",
        number=product.id,
        name=product.name,
        view=read_phrases(page, number, period),
        period=period,
        themes=list_theme_names(product.category),
        file=page.context.settings.themes_file,
    )


def show_phrases_again(page: PageRequest, product: str) -> Response:
    """Show the page of phrases again for the default period, because the form on it was refused."""
    return show_phrases(page, product_in_path(page, product), read_period(None, None, None))


@router.post("/products/{product}/phrases")
@shown_on(show_phrases_again)
def adopt_phrase(
    page: Here,
    number: ProductId,
    phrase: Annotated[str, Form(max_length=60)],
    theme: Annotated[str, Form()] = "",
    new_theme: Annotated[str, Form(max_length=60)] = "",
    zh: Annotated[str, Form(max_length=60)] = "",
    en: Annotated[str, Form(max_length=60)] = "",
) -> Response:
    """Add a phrase to the themes file as a term of an existing or a new theme."""
    new = None if theme else NewTheme.read(zh, en)
    done = adopt(page, number, phrase, theme or new_theme, new)
    return page.redirect_with(f"/products/{number}/phrases", Notice(done.sentence))
