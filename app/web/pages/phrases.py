"""The page of new phrases in a product's complaints, with a form that adds one to the themes file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import Response

from app.actions.theme_actions import NewTheme, adopt_term
from app.insight.periods import read_period
from app.reports.phrases import list_new_phrases
from app.views.moments import local_time
from app.views.theme_names import list_theme_names, name_theme
from app.views.words import translate
from app.web.base.context import Here, Notice, Page
from app.web.base.forms import shown_on
from app.web.base.query import ProductId, RecentPeriod, product_in_path
from app.web.pages.products import name_of
from splitter.errors import InputError
from tasks.reading.judge.reviews import choose_theme_set
from tasks.store.content import products

router = APIRouter()


@router.get("/products/{product}/phrases")
def show_phrases(page: Here, number: ProductId, period: RecentPeriod) -> Response:
    """Show phrases that are more frequent in a period's complaints than before, with a form to adopt one."""
    name = name_of(page, number)
    with page.context.store.read() as tx:
        today = local_time(tx.now).date()
        product = products.find_counted(tx, name)
    days = period.find(today)
    view = page.context.read(("phrases", number, days, today), lambda tx: list_new_phrases(tx, [name], days))
    return page.html(
        "phrases.html",
        number=product.id,
        name=product.name,
        view=view,
        period=period,
        themes=list_theme_names(product.category),
        file=page.context.settings.themes_file,
    )


def show_phrases_again(page: Page, product: str) -> Response:
    """Show the phrases of the default period with a refused form."""
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
    name = name_of(page, number)
    with page.context.store.read() as tx:
        category = choose_theme_set(products.find(tx, name).category)
    if category is None:
        raise InputError("this product's category has no themes")
    new = None
    if not theme:
        new = NewTheme.read(zh, en)
    term, to = phrase.strip(), theme or new_theme.strip()
    file = page.context.settings.themes_file
    adopt_term(page.context.store, file, category, to, term, page.who, new)
    said = translate(
        "{theme} has the term {term} now, in {file}; `reviewloop judge` reads the stored reviews again.",
        theme=name_theme(to),
        term=term,
        file=file,
    )
    return page.redirect_with(f"/products/{number}/phrases", Notice(said))
