"""Products that a person looks through before they are added; forms that keep what was typed."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
import requests
from dashboard import Served
from sample_store import PRODUCT

from app.actions.products import new_product
from app.views.doubts import Doubt, list_doubts

NAMES = "光明高钙牛奶\n老干妈\n12.5\n雀巢怡养中老年奶粉\n蒙牛早餐奶\n"


@dataclass
class Looked:
    """A draft as its page shows it."""

    status: int
    key: str
    text: str
    name: list[str] = field(default_factory=list)
    keywords: list[str] = field(default_factory=list)
    category: list[str] = field(default_factory=list)

    def place(self, name: str) -> int:
        """Return the row of a name."""
        return self.name.index(name)


def look(answer: requests.Response) -> Looked:
    """Read the page of a draft."""
    key = re.search(r'name="draft" value="([^"]+)"', answer.text)
    assert key is not None, answer.text
    found = Looked(answer.status_code, key[1], html.unescape(answer.text))
    for row in re.findall(r"<tr[^>]*>\s*<td><input type=\"checkbox\".*?</tr>", answer.text, re.DOTALL):
        for cell in ("name", "keywords"):
            value = re.search(rf'name="{cell}"[^>]* value="([^"]*)"', row)
            assert value is not None
            getattr(found, cell).append(html.unescape(value[1]))
        chosen = re.search(r'<option value="(\w*)" selected', row)
        found.category.append(chosen[1] if chosen else "")
    return found


def preview(served: Served, **sent: Any) -> Looked:
    """Send names or a file."""
    sent.setdefault("data", {})
    sent["data"] |= {}
    return look(served.post("/products/preview", **sent))


def send(served: Served, looked: Looked, **more: Any) -> requests.Response:
    """Send a draft back as it is on the page, with something else beside it."""
    form = {
        "draft": looked.key,
        "name": looked.name,
        "keywords": looked.keywords,
        "category": looked.category,
    }
    return served.post("/products", data=form | more)


def names_of(served: Served) -> dict[str, Any]:
    """The stored products by name."""
    return {row["name"]: row for row in served.get("/api/products?limit=500").json()["products"]}


def test_doubts_about_a_product() -> None:
    assert list_doubts(new_product("蒙牛早餐奶")) == []
    assert list_doubts(new_product("老干妈")) == [Doubt.ONE_KEYWORD]
    assert list_doubts(new_product("老干妈", keywords=["老干妈"])) == []
    assert Doubt.MANY_KEYWORDS in list_doubts(new_product("雀巢怡养中老年奶粉"))
    assert list_doubts(new_product("奇多妙脆角", sites=())) == [Doubt.NO_SITE, Doubt.NO_CATEGORY]


def test_refused_and_doubtful_lines_come_first(sample: Served) -> None:
    file = {"file": ("a.txt", NAMES.encode())}
    shown = preview(sample, files=file)
    assert shown.name == ["12.5", "老干妈", "雀巢怡养中老年奶粉", "光明高钙牛奶", "蒙牛早餐奶"]
    assert "3 will be added, 1 are there already, 1 are refused. 2 are doubtful" in shown.text
    assert (shown.keywords[-1], shown.category[-1]) == ("蒙牛, 早餐奶", "food")


def test_a_row_is_corrected_and_another_left_out_before_anything_is_stored(served: Served) -> None:
    draft = preview(served, files={"file": ("a.csv", f"name\n{NAMES}".encode())})
    place = draft.place("12.5")
    draft.name[place] = "三元牛奶"
    draft.keywords[draft.place("老干妈")] = "老干妈, 辣酱"
    draft.category[draft.place("老干妈")] = "other"
    before = names_of(served)
    out = [draft.place("蒙牛早餐奶")]
    checked = look(send(served, draft, out=out, action="check"))
    assert (checked.status, names_of(served)) == (200, before)
    assert (checked.name[place], checked.keywords[place], checked.category[place]) == (
        "三元牛奶",
        "三元, 牛奶",
        "food",
    )
    added = send(served, checked, out=out)
    assert added.url.rstrip("/").rpartition("/")[0].endswith("/imports")
    new = {name: row for name, row in names_of(served).items() if name not in before}
    assert sorted(new) == sorted(["三元牛奶", "老干妈", "雀巢怡养中老年奶粉"])
    assert (new["老干妈"]["keywords"], new["老干妈"]["category"]) == (["老干妈", "辣酱"], "other")
    undone = served.post("/imports/1/undo", data={"sure": "yes"})
    assert (undone.status_code, names_of(served)) == (200, before)


def test_a_correction_keeps_the_other_columns_of_the_line(served: Served) -> None:
    table = "名称,优先级,别名\n12.5,7,三元鲜奶\n".encode()
    draft = preview(served, files={"file": ("a.csv", table)})
    assert (draft.name, draft.keywords) == (["12.5"], [""])
    draft.name[0] = "三元牛奶"
    send(served, draft)
    assert (names_of(served)["三元牛奶"]["priority"], names_of(served)["三元牛奶"]["aliases"]) == (
        7,
        ["三元鲜奶"],
    )


def test_a_name_that_a_person_corrects_may_look_like_a_number(served: Served) -> None:
    draft = preview(served, files={"file": ("a.txt", b"12306a\n12.5\n")})
    draft.name[draft.place("12.5")] = "7.5"
    assert look(send(served, draft)).status == 422  # it gives no keyword
    draft.name[draft.place("7.5")] = "12306"
    send(served, draft)
    assert "12306" in names_of(served)


def test_a_wrong_correction_is_shown_with_what_was_typed(served: Served) -> None:
    draft = preview(served, data={"names": NAMES})
    place = draft.place("蒙牛早餐奶")
    draft.name[place] = "250ml"
    refused = look(send(served, draft))
    assert (refused.status, refused.name[place]) == (422, "250ml")
    assert "leaves no keyword" in refused.text
    assert PRODUCT in names_of(served)
    assert "老干妈" not in names_of(served)


def test_a_long_draft_has_pages_that_keep_corrections(served: Served) -> None:
    names = "".join(f"蒙牛酸奶{n}号\n" for n in range(1, 231))
    draft = preview(served, data={"names": names})
    assert len(draft.name) == 200
    draft.name[3] = "三元牛奶"
    following = look(send(served, draft, show=200, out=[0]))
    assert (following.name[0], len(following.name)) == ("蒙牛酸奶201号", 30)
    following.name[0] = "三元酸奶"
    send(served, following, begin=200)
    stored = names_of(served)
    assert {"三元牛奶", "三元酸奶", "蒙牛酸奶230号"} <= stored.keys()
    assert not {"蒙牛酸奶1号", "蒙牛酸奶4号", "蒙牛酸奶201号"} & stored.keys()


@pytest.mark.parametrize(
    "wrong",
    [
        {"draft": "gone"},
        {"begin": "4"},
        {"begin": "-1"},
        {"keywords": []},
        {"category": ["fish"] * 5},
        {"name": ["x" * 5000] * 5},
    ],
)
def test_a_draft_that_does_not_fit_changes_nothing(sample: Served, wrong: dict[str, Any]) -> None:
    draft = preview(sample, data={"names": NAMES})
    assert send(sample, draft, **wrong).status_code in (400, 422)
    assert "老干妈" not in names_of(sample)


TYPED = {"names": "特仑苏\n老干妈", "priority": "7", "ignore": "备注", "category": "food", "pages": "3"}


@pytest.mark.parametrize(
    ("wrong", "english", "chinese"),
    [
        ({"priority": "high"}, "Priority: must be a whole number", "优先级：须为整数"),
        ({"priority": "9999999"}, "Priority: must be 1000000 or less", "1000000"),
        ({"recrawl": "soon"}, "'soon' is no period", "soon"),
        ({"pages": "5000"}, "is not between 1 and", "5000"),
        ({"keywords": "a,b"}, "belong to one product", "一个产品"),
        ({"category": "fish"}, "Category: must be one of", "类别：.*fish"),
        ({"names": ""}, "There is no name in it", "名称"),
        ({"names": "{\n}\n"}, "is no list", "[{]"),
    ],
)
def test_a_wrong_value_of_the_form_keeps_the_others(
    sample: Served, wrong: dict[str, str], english: str, chinese: str
) -> None:
    form = {
        **TYPED,
        **wrong,
    }
    for language, said in (("en", english), ("zh", chinese)):
        sent = form | {"names": form["names"].replace("\n", "\r\n")}  # as browsers send it
        refused = sample.post("/products/preview", data=sent, headers={"Accept-Language": language})
        text = html.unescape(refused.text)
        assert refused.status_code in (400, 422)
        assert re.search(said, text), text
        assert f'value="{form["priority"]}"' in text
        assert f'value="{form["ignore"]}"' in text
        assert f">{form['names']}</textarea>" in text
    assert "老干妈" not in names_of(sample)


def test_a_file_has_to_be_chosen_again(sample: Served) -> None:
    form = {"ignore": "no such"}
    refused = sample.post(
        "/products/preview", data=form, files={"file": ("a.csv", "名称\n特仑苏\n".encode())}
    )
    assert (refused.status_code, "Choose the file again." in refused.text) == (400, True)


def test_a_wrong_change_of_a_product_is_shown_on_its_page(served: Served) -> None:
    form = {
        "name": "三元牛奶",
        "name_shown": PRODUCT,
        "recrawl": "soon",
        "recrawl_shown": "never",
    }
    refused = served.post("/products/1/edit", data=form, headers={"Accept-Language": "zh"})
    text = html.unescape(refused.text)
    assert (refused.status_code, 'value="三元牛奶"' in text, 'value="soon"' in text) == (400, True, True)
    assert f"<h1>{PRODUCT}</h1>" in text
    unsure = served.post("/products/1/remove", data={}, headers={"Accept-Language": "zh"})
    assert (unsure.status_code, "请填写“我确定”。" in unsure.text) == (422, True)


BULK = "老干妈\n奇多妙脆角\n蒙牛早餐奶\n"


def change(served: Served, /, **form: Any) -> requests.Response:
    """Change many products."""
    return served.post("/products/edit", data={**form})


def test_many_products_are_changed_at_once(served: Served) -> None:
    send(served, preview(served, data={"names": BULK}))
    stored = names_of(served)
    numbers = [stored[name]["id"] for name in ("老干妈", "蒙牛早餐奶")]
    said = change(served, product=numbers, to_category="other", to_priority="4", add="正品").text
    assert "Products changed: 2; so already: 0" in said
    stored = names_of(served)
    assert [(stored[name]["category"], stored[name]["priority"]) for name in ("老干妈", "蒙牛早餐奶")] == [
        ("other", 4)
    ] * 2
    assert stored["蒙牛早餐奶"]["keywords"] == ["蒙牛", "早餐奶", "正品"]
    assert stored["奇多妙脆角"]["category"] is None
    assert "Products changed: 0; so already: 2" in change(served, product=numbers, to_priority="4").text
    audit = [one for one in served.get("/api/audit").json() if one["action"] == "edit product"]
    assert sorted(one["subject"] for one in audit) == ["老干妈", "蒙牛早餐奶"]


def test_all_products_of_a_filter_are_changed(served: Served) -> None:
    send(served, preview(served, data={"names": BULK}))
    shown = served.get("/products?category=unknown&q=妙").text
    assert ("奇多妙脆角" in shown, "老干妈" in shown, "1 products." in shown) == (True, False, True)
    change(served, everything="yes", category="unknown", q="妙", to_category="app", product=[1])
    changed = [one for one in served.get("/api/audit").json() if one["action"] == "edit product"]
    assert [one["subject"] for one in changed] == ["奇多妙脆角"]
    assert "奇多妙脆角" in served.get("/products?category=app").text


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"to_priority": "7"}, "Nothing was chosen."),
        ({"product": [1], "add": " "}, "Say what to change"),
        ({"product": [1], "to_category": "fish", "to_priority": "7"}, "Category: must be one of"),
        ({"product": [1], "to_priority": "high"}, "Priority: must be a whole number"),
        ({"product": [1], "to_sites": "moon"}, "Sites: must be one of"),
        ({"product": [1], "to_sites": "shop"}, "paper-2014 has no site in shop"),
        ({"product": ["x"], "to_priority": "7"}, "must be a whole number"),
    ],
)
def test_a_wrong_change_of_many_is_refused_and_kept(sample: Served, form: dict[str, Any], said: str) -> None:
    sent = {"q": "牛奶", "add": "正品", **form}
    refused = change(sample, **sent)
    text = html.unescape(refused.text)
    kept = f'name="add" maxlength="1000" value="{sent["add"]}"'
    assert refused.status_code in (400, 422)
    assert (said in text, kept in text) == (True, True), text
    assert ('value="1" aria-label="光明高钙牛奶" checked' in text) == (form.get("product") == [1])
    assert (PRODUCT in text, ">特仑苏</a>" in text) == (True, False)
