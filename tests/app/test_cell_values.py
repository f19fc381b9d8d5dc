"""Cells of the optional columns, as people write them."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest

from app.importing.cell_words import NotUnderstood
from app.importing.product_values import (
    read_category,
    read_pages,
    read_priority,
    read_recrawl,
    read_sites,
)
from app.importing.review_values import read_day, read_rating
from app.run.setting_fields import Settings
from splitter.catalog.names import Category, Group
from splitter.spans import CHINA

SITES = Settings().catalog().sites
NOW = datetime(2026, 11, 28, 12, tzinfo=CHINA)

# By value, the cells that have it; | stands between them.
PRIORITIES = {
    20: "紧急|特急|加急|最高|特级|p0|P0|急|立即|非常重要|urgent|very high|P0-特急",
    10: "高|较高|重要|P1|A|a类|甲类|1级|一级|Ⅰ级|第一优先|高优先级|优先级高|P1-高|1-高|1（高）|【高】|高！"
    "|高（领导关注）|高，先查|High|是|√",
    0: "中|一般|普通|P2|B|B级|乙|2级|二级|中级|Ⅱ级|medium|Normal|正常|否|例行|中（例行）",
    -10: "低|较低|次要|不急|不紧急|P3|C|c类|丙|3级|三级|低优先级|low|Low|不重要|暂缓",
    -20: "最低|P4|4级|lowest|D",
    3: "3|3.0|３|+3|★★★|★★★☆☆|⭐⭐⭐",
    -2: "-2",
    None: "|-|/|N/A|无|nan",
}
NO_PRIORITIES = "?|见备注|看情况|中-高|低→中|高/低|1.5|99999999|inf|2026-03-01|张三|a customer asked|级"
PAGES = {
    3: "3|３|3页|前3页|三页|3.0|1-3|第1-3页|1~3|约3页|最多3页|3个页面|3p|3 pages|top 3|3 页",
    12: "十二页|12",
    0: "0|0页",
    None: "|-|无|默认|default",
}
NO_PAGES = "很多|全部|-1|1.5|1001|三四页|soon"
PERIODS = {
    1: "1d|每天|每日|一天一次|每天一次|daily|按日|1天|每1天|every day|24小时",
    7: "7d|1w|每周|每周一次|一周|1周|7天|每7天|7天一次|每隔7天|每周一|weekly|按周|168h|7 days|every week",
    14: "2w|两周|每两周|双周|隔周|14天|every 2 weeks",
    30: "每月|月度|一个月|每月一次|每月1号|每月初|30天|monthly|按月|once a month",
    91: "每季度|季度|一季度一次",
    182: "半年|每半年",
    0.5: "12h|12小时|每12小时|半天|每天2次|一天两次",
    None: "|-|无|否|不重采|一次|once|never|按需",
}
"""Days."""
NO_PERIODS = "随时|soon|小时|m|7|0d|每|9999年|见备注"
CATEGORIES = {
    Category.FOOD: "food|FOOD|食品|食品类|乳品|乳制品|饮料|牛奶|食品/乳品|食品（预包装）",
    Category.CAR: "car|汽车|新能源汽车",
    Category.PHONE: "phone|手机|手机通讯|数码/手机",
    Category.APPLIANCE: "家电|家用电器|小家电|空调",
    Category.APP: "app|APP|应用|软件|游戏",
    Category.RESTAURANT: "餐饮|餐饮类|餐厅",
    Category.SERVICE: "服务|快递",
    Category.OTHER: "其他|其它|日化|服装",
    None: "|-|无",
}
NO_CATEGORIES = "说不清|一科|?"
STARS = {
    5.0: "5|5星|5分|五星|五分|满分|好评|非常满意|力荐|很好|★★★★★|5/5|10/10|100%|5.0|excellent|五星好评",
    4.0: "4|4星|4/5|8/10|80%|四星|4颗星|四颗星|★★★★☆|★★★★|⭐⭐⭐⭐|⭐️⭐️⭐️⭐️|满意|评分：4|4分/5分|80/100"
    "|4.0 out of 5 stars|rated 4|4 ★|4 of 5|4.0 颗星，最多 5 颗星",
    3.0: "3|中评|一般|还行|三星|★★★☆☆|60%|average",
    2.0: "2|较差|不满意|★★",
    1.0: "1|差评|很差|一星|1星|★☆☆☆☆|差评！|20%|terrible",
    4.5: "4.5|4.5分|4.5星|四星半|4，5|90%|9/10|★★★★½",
    9.5: "9.5|9.5分",
    None: "|-|无",
}
NO_STARS = "见备注|999|101|4/0|6/5|-3|五湖四海|120%|2026-05-01|?"
DAYS = (
    "2026-05-01|2026/5/1|2026.5.1|2026.05.01|2026年5月1日|2026年5月1号|20260501|5月1日|五月一日"
    "|二〇二六年五月一日|26.5.1|26-5-1|46143|2026—05—01|2026。5。1|2026-05-01（周五）"
    "|2026-05-01T00:00:00+08:00|评价于2026-05-01|2026 年 5 月 1 日|2026-05-01 00:00:00.0|May 1, 2026"
)
"""All of them are the first of May 2026."""
NO_DAYS = "见备注|长期|待定|2026-13-45|12345|2026年5月|2026-5|2026|5月"


def days(text):
    every = read_recrawl(text)
    return None if every is None else every / timedelta(days=1)


def cases(table):
    return {text: value for value, texts in table.items() for text in texts.split("|")}


@pytest.mark.parametrize(
    ("reader", "table"),
    [
        (read_priority, PRIORITIES),
        (read_pages, PAGES),
        (days, PERIODS),
        (read_category, CATEGORIES),
        (read_rating, STARS),
    ],
    ids=["priority", "pages", "recrawl", "category", "rating"],
)
def test_cells_as_people_write_them(reader, table):
    read = {}
    for text in cases(table):
        try:
            read[text] = reader(text)
        except NotUnderstood:
            read[text] = "not understood"
    assert read == cases(table)


@pytest.mark.parametrize(
    ("reader", "texts"),
    [
        (read_priority, NO_PRIORITIES),
        (read_pages, NO_PAGES),
        (read_recrawl, NO_PERIODS),
        (read_category, NO_CATEGORIES),
        (read_rating, NO_STARS),
        (lambda text: read_day(text, NOW), NO_DAYS),
    ],
    ids=["priority", "pages", "recrawl", "category", "rating", "date"],
)
def test_cells_that_nobody_understands(reader, texts):
    for text in texts.split("|"):
        with pytest.raises(NotUnderstood):
            reader(text)


def test_days_as_people_write_them():
    texts = DAYS.split("|")
    assert [read_day(text, NOW).date() for text in texts] == [date(2026, 5, 1)] * len(texts)


def test_a_number_without_unit_takes_the_unit_of_its_header():
    assert read_recrawl("7", "重采周期（天）") == timedelta(days=7)
    assert read_recrawl("2", "重采/周") == timedelta(days=14)


NAMED = {
    "京东": ["jd.com"],
    "京东商城": ["jd.com"],
    "jd": ["jd.com"],
    "JD.com": ["jd.com"],
    "https://item.jd.com/1.html": ["jd.com"],
    "京东（自营）": ["jd.com"],
    "淘宝网、天猫旗舰店": ["taobao.com", "tmall.com"],
    "京东和淘宝": ["jd.com", "taobao.com"],
    "jd.com/tmall.com": ["jd.com", "tmall.com"],
    "京东 天猫\n知乎": ["jd.com", "tmall.com", "zhihu.com"],
    "黑猫；贴吧": ["tousu.sina.com.cn", "tieba.baidu.com"],
    "新浪微博": ["m.weibo.cn", "weibo.com"],
    "投诉平台": [name for name, site in SITES.items() if site.group == Group.COMPLAINTS],
    "全部": None,
    "不限": None,
    "抖音，京东": ["jd.com"],
    "线下": [],
    "百度": [],
    "无": [],
}


def test_sites_as_people_write_them():
    read = {text: read_sites(text, SITES)[0] for text in NAMED}
    assert {text: sites if sites is None else [*sites] for text, sites in read.items()} == NAMED
    assert read_sites("抖音，京东，线下", SITES)[1] == ["抖音", "线下"]
