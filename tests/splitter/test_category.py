import pytest

from splitter.catalog.load import builtin
from splitter.catalog.names import Category
from splitter.category import Says, guess_category
from splitter.lexicon import data, rows
from splitter.normalize import normalize


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("光明高钙牛奶", Category.FOOD),
        ("特仑苏", Category.FOOD),
        ("康师傅红烧牛肉面", Category.FOOD),
        ("特斯拉Model Y", Category.CAR),
        ("特斯拉 ModelY", Category.CAR),
        ("小米SU7", Category.CAR),
        ("小米YU7 Max", Category.CAR),
        ("iPhone 17 Air 天蓝色", Category.PHONE),
        ("华为Mate70", Category.PHONE),
        ("小米手机壳", Category.OTHER),
        ("小米空调", Category.APPLIANCE),
        ("豆包App", Category.APP),
        ("海底捞", Category.RESTAURANT),
        ("京东物流", Category.SERVICE),
        ("红蛮腰水乳", Category.OTHER),
        ("小米17", Category.PHONE),
        # The longest word counts.
        ("王者荣耀", Category.APP),
        ("荣耀Magic7", Category.PHONE),
        ("坦克世界", Category.APP),
        ("坦克300", Category.CAR),
        ("哪吒L", Category.CAR),
        ("长城葡萄酒", Category.FOOD),
        ("大众点评", Category.APP),
        ("奥迪双钻", Category.OTHER),
        # The last kind of goods counts, then the last line, then the first brand, then the shop.
        ("王者荣耀手办", Category.OTHER),
        ("汽车轮胎", Category.CAR),
        ("手机银行", Category.APP),
        ("荣耀MagicBook 14", Category.OTHER),
        ("乐高保时捷911", Category.OTHER),
        ("京东iPhone 17", Category.PHONE),
        ("京东", Category.APP),
        # A last character continues a kind of goods, or tells it alone.
        ("瑞幸咖啡杯", Category.OTHER),
        ("无名氏老窖酒", Category.FOOD),
        # Food of a restaurant is not packed food.
        ("瑞幸生椰拿铁", Category.RESTAURANT),
        ("海底捞火锅底料", Category.FOOD),
        # Neither letters of a longer word nor an amount tell anything.
        ("Steamy", None),
        ("无名氏", None),
        ("", None),
    ],
)
def test_a_name_suggests_a_category(name, category):
    assert guess_category(name) is category


def test_the_keywords_of_a_name_are_asked_if_it_suggests_nothing():
    assert guess_category("二号样品", ("雀巢", "奶粉")) is Category.FOOD
    assert guess_category("王者荣耀", ("手机",)) is Category.APP


def test_each_word_of_the_table_has_one_category():
    heads = [head.split(" ") for head, *_ in rows(data("categories.txt"))]
    words = ["".join(word.casefold().split()) for _, *words in rows(data("categories.txt")) for word in words]
    assert len(words) == len(set(words)) > 5000
    assert all(normalize(word).casefold() == word for word in words if "#" not in word)
    assert {name for name, _ in heads} == {*Category, "-"}
    assert {kind for _, kind in heads} == {*Says}


def test_a_product_of_unknown_category_is_looked_for_at_general_sites():
    catalog = builtin("today")
    general = catalog.sites_for(None, None)
    assert general == [name for name, site in catalog.sites.items() if not site.categories]
    for category in Category:
        assert set(general) < set(catalog.sites_for(None, category))


def test_milk_is_not_looked_for_where_cars_and_apps_are_reviewed():
    catalog = builtin("today")
    cars, apps = (
        {"12365auto.com", "qctsw.com", "tousu.315che.com", "club.autohome.com.cn"},
        {"apps.apple.com"},
    )
    assert not {*catalog.sites_for(None, "food")} & {*cars, *apps, "dianping.com"}
    assert {*catalog.sites_for(None, "car")} >= cars
    assert {*catalog.sites_for(None, "app")} >= apps
    assert catalog.sites_for(("qctsw.com",), "food") == ["qctsw.com"], "a person's choice comes first"
    paper = builtin("paper-2014")
    assert paper.sites_for(None, "food") == [*paper.sites]
