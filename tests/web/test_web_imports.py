"""Imports in the browser and by the API: listed with their numbers, and undone after a look at what would go."""

from __future__ import annotations

import re

import pytest
from dashboard import Served

from app.actions import product_actions
from app.actions.products import new_products
from tasks.store.content.products import ProductEdit

SETTINGS = "rules:\n  main_text: true\nsites:\n  12315.com:\n"


def _bring(served: Served, names: str) -> str:
    preview = served.post("/products/preview", data={"names": names, "as_list": "yes"}).text
    draft = re.search(r'name="draft" value="([^"]+)"', preview)
    assert draft is not None
    return served.post("/products", data={"draft": draft[1]}).text


def test_products_that_were_added_by_mistake_are_undone(served: Served) -> None:
    before = served.get("/api/products").json()["products"]
    assert "Undo import 1" in _bring(served, SETTINGS)
    assert len(served.get("/api/products").json()["products"]) == len(before) + 4
    assert "4 products would be removed." in served.get("/imports/1").text
    form = {}
    assert served.post("/imports/1/undo", data=form).status_code == 422
    said = served.post("/imports/1/undo", data={**form, "sure": "yes"}).text
    assert "Removed: 4 products and 0 reviews" in said
    assert "Undo import 1" not in said
    assert served.get("/api/products").json()["products"] == before
    assert served.post("/imports/1/undo", data={**form, "sure": "yes"}).status_code == 400
    [row] = served.get("/api/imports").json()
    assert (row["id"], row["kind"], row["added"], row["undone_at"] is None) == (1, "products", 4, False)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_product_that_stays_is_named(served: Served, language: str) -> None:
    added = product_actions.add(served.store, new_products(["三元牛奶", "君乐宝酸奶"]), "w", "x.csv")
    product_actions.edit(served.store, "三元牛奶", ProductEdit(priority=2), "w")
    page = served.get(f"/imports/{added.number}", headers={"Accept-Language": language}).text
    assert ("三元牛奶" in page, "君乐宝酸奶" in page, "x.csv" in page) == (True, False, True)
    undone = served.post(f"/api/imports/{added.number}/undo").json()
    assert served.post(f"/api/imports/{added.number}/undo").status_code == 409
    assert served.post("/api/imports/99/undo").status_code == 404
    assert (undone["products_removed"], [(one["name"], one["need"]) for one in undone["stays"]]) == (
        1,
        [("三元牛奶", "correction")],
    )
    assert served.get("/imports").status_code == served.get("/imports/1").status_code == 200
    assert served.get("/imports/9").status_code == 404


@pytest.mark.parametrize("language", ["en", "zh"])
def test_settings_in_the_form_are_refused_with_lines_of_them(served: Served, language: str) -> None:
    form = {"names": SETTINGS}
    for sent in (
        {"data": form},
        {"data": {}, "files": {"file": ("a.txt", SETTINGS.encode())}},
    ):
        refused = served.post("/products/preview", headers={"Accept-Language": language}, **sent)
        assert (refused.status_code, "main_text" in refused.text) == (400, True)
