import pytest

from splitter.catalog.load import builtin
from splitter.catalog.names import Category
from splitter.category import guess_category
from splitter.keywords import keywords_of
from splitter.lexicon import data, rows


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("光明高钙牛奶", Category.FOOD),
        ("特仑苏", Category.FOOD),
        ("康师傅红烧牛肉面", Category.FOOD),
        ("特斯拉Model Y", Category.CAR),
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
        ("小米17", None),
    ],
)
def test_the_words_of_a_name_suggest_a_category(name, category):
    assert guess_category(keywords_of(name)) is category


def test_each_word_of_the_table_has_one_category():
    words = [word.casefold() for _, *words in rows(data("categories.txt")) for word in words]
    assert len(words) == len(set(words))
    assert {name for name, *_ in rows(data("categories.txt"))} == {*Category}


def test_milk_is_not_looked_for_where_cars_and_apps_are_reviewed():
    catalog = builtin("today")
    cars, apps = (
        {"12365auto.com", "qctsw.com", "tousu.315che.com", "club.autohome.com.cn"},
        {"apps.apple.com"},
    )
    assert not {*catalog.sites_for(None, "food")} & {*cars, *apps, "dianping.com"}
    assert {*catalog.sites_for(None, "car")} >= cars
    assert {*catalog.sites_for(None, "app")} >= apps
    assert catalog.sites_for(None, None) == [*catalog.sites]
    assert catalog.sites_for(("qctsw.com",), "food") == ["qctsw.com"], "a person's choice comes first"
    paper = builtin("paper-2014")
    assert paper.sites_for(None, "food") == [*paper.sites]
