"""Whether a page is a review of the product it was found for: what is none, what names a product, and how surely."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.keywords import keywords_of, product_query
from tasks.domain.pages import PageRead, Review
from tasks.reading.judge.near_products import outdone
from tasks.reading.judge.product_match import (
    LEAST_SHARE,
    TEXT_CHARS,
    contains,
    matchable_text,
    matched_share,
    product_match,
)
from tasks.reading.relevance import RejectReason, reject_reason, screen_reviews

SHARED = Path(__file__).parents[3] / "shared" / "data"


def record(body: str, key: str = "#0") -> Review:
    return Review(key, "", body, "", "", None, None)


def named(product: str, title: str, *bodies: str) -> bool:
    return product_match(
        [keywords_of(product)], matchable_text(title, [("", body) for body in bodies])
    ).matches


@pytest.mark.parametrize(
    ("title", "bodies", "expected"),
    [
        ("光明高钙牛奶怎么样", ("还行",), True),
        ("光明的奶", ("他家的高钙牛奶有股怪味",), True),
        ("光明牛奶胀包", ("退货了",), True),  # nobody writes every attribute
        ("bright dairy", ("光明高鈣牛奶，喝起來不錯",), True),  # traditional
        ("论坛", ("光明　高钙　牛奶", "同感", "楼上说得对"), True),  # a thread, full-width blanks
        ("伊利高钙牛奶怎么样", ("很好",), False),
        ("光明酸奶怎么样", ("酸",), False),
        ("光明日报：我国经济持续向好", ("记者从国家统计局获悉",), False),
        ("高钙牛奶排行榜", ("牛奶怎么选",), False),
        ("", ("很好",), False),
    ],
)
def test_what_names_a_product(title, bodies, expected):
    assert named("光明高钙牛奶", title, *bodies) is expected


def test_of_several_brands_without_a_line_one_is_named():
    assert not named("福田南山服务", "政务服务", "办事大厅的服务很好")
    assert named("福田南山服务", "南山的服务", "搬家很快")


def test_words_of_a_latin_name_stand_together():
    words = ("Galaxy", "Watch")
    apart = "We watch every match here. " + "The season is long. " * 10 + "LA Galaxy lost again."
    assert not product_match([words], matchable_text("Football season", [("", apart)])).matches
    said = "Which one? " + "I am not sure. " * 10 + "The Galaxy Watch has a poor battery."
    assert product_match([words], matchable_text("Wearables", [("", said)])).matches


def test_a_line_of_a_brand_stands_for_the_brand_and_not_the_other_way_round():
    assert named("特仑苏纯牛奶", "特仑苏涨价了", "牛奶还是那个味")
    assert named("特仑苏纯牛奶", "mengniu 特仑苏", "纯牛奶")
    assert not named("特仑苏纯牛奶", "蒙牛早餐奶", "早上喝")


def test_other_models_are_other_products():
    assert named("荣耀9X手机", "荣耀9x手机怎么样", "流畅")
    assert not named("荣耀9X手机", "荣耀8X手机怎么样", "流畅")


@pytest.mark.parametrize(
    ("product", "text", "expected"),
    [
        # The page names the last of the varieties between brand and kind of goods.
        ("伊利红枣酸奶", "伊利酸奶里喝出塑料，原味的也敢卖", False),
        ("伊利红枣酸奶", "买的伊利酸奶，红枣的，喝着发苦", True),
        ("伊利红枣酸奶", "早上吃红枣，喝伊利纯牛奶", False),
        ("光明草莓牛奶", "光明牛奶买一送一", False),
        ("光明草莓牛奶", "光明的草莓奶过期了还在卖", True),
        ("康师傅红烧牛肉面", "老坛酸菜牛肉面吃出虫子", False),
        ("康师傅老坛酸菜牛肉面", "老坛酸菜牛肉面吃出虫子", True),
        ("康师傅老坛酸菜牛肉面", "康师傅牛肉面涨价", False),
        ("蒙牛早餐奶麦香味", "蒙牛早餐奶麦香的不好喝", True),
        ("蒙牛早餐奶麦香味", "蒙牛早餐奶胀包", False),
        ("蒙牛真果粒芦荟", "真果粒草莓的果粒是什么", False),
        # Earlier ones may be missing.
        ("飞鹤星飞帆卓睿", "飞鹤卓睿喝了便秘", True),
        ("飞鹤星飞帆卓睿", "飞鹤星飞帆不溶", False),
        ("三星Galaxy S25 Ultra", "S25 Ultra的S Pen没蓝牙了", True),
        ("三星Galaxy S25 Ultra", "三星S25怎么样", False),
        # An affix stands with the name before it.
        ("比亚迪秦PLUS DM-i", "秦 plus dm-i油耗高", True),
        ("比亚迪秦PLUS DM-i", "比亚迪唐DM-i异响", False),
        ("华为Mate 70 Pro+", "华为mate70 pro+ 发热", True),
        ("华为Mate 70 Pro", "华为mate70 pro+ 发热", False),
        # A platform that opens a name is its brand.
        ("京东物流", "京东物流三天没动", True),
        ("京东物流", "顺丰物流三天没动", False),
    ],
)
def test_a_page_names_the_variety(product, text, expected):
    assert (
        product_match(product_query(product).keyword_sets, matchable_text("", [("", text)])).matches
        is expected
    )


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("iphone 11 用了一年", "11", True),
        ("iphone11", "11", True),
        ("iphone11", "iPhone", True),
        ("2011年", "11", False),
        ("11.5元", "11", False),
        ("estimate", "Mate", False),
        ("mate30", "Mate", True),
        ("喝了两箱酸牛奶", "酸奶", True),
        ("喝了两箱牛奶", "纯牛奶", True),
    ],
)
def test_how_a_word_may_be_written(text, word, expected):
    assert contains(matchable_text(text, ()), word) is expected


def test_a_further_set_tells_only_where_its_own_word_and_the_brand_are_there():
    sets = [("兰蔻", "眼影"), ("兰蔻", "腮红")]
    assert product_match(sets, matchable_text("兰蔻腮红怎么样", ())).matches
    assert not product_match(sets, matchable_text("卡姿兰腮红怎么样", ())).matches
    sets = [("荣耀", "8X", "联通", "手机"), ("荣耀", "移动", "联通", "手机")]
    assert not product_match(sets, matchable_text("iPhone 11 移动联通手机", ())).matches


def test_any_of_the_keyword_sets_will_do_and_the_nearest_tells_what_is_missing():
    sets = [("光明", "牛奶"), ("bright", "milk")]
    assert product_match(sets, matchable_text("Bright Milk 1L", ())).matches
    found = product_match(sets, matchable_text("蒙牛 milk bright", ()))
    assert found.matches
    found = product_match([("光明", "高钙", "牛奶"), ("优倍",)], matchable_text("光明冰砖", ()))
    assert (found.matches, found.missing) == (False, ("高钙", "牛奶"))
    assert product_match([], "x").matches


@pytest.mark.parametrize(
    ("body", "main_text", "reason"),
    [
        ("赞", False, None),
        ("ok", False, None),
        ("👍👍👍", False, RejectReason.EMPTY),
        ("。。。！", False, RejectReason.EMPTY),
        ("^_^", False, RejectReason.EMPTY),
        ("此用户没有填写评价", False, RejectReason.BOILERPLATE),
        ("此用户没有填写评论!", False, RejectReason.BOILERPLATE),
        ("默认好评", False, RejectReason.BOILERPLATE),
        ("您没有填写内容，默认好评", False, RejectReason.BOILERPLATE),
        ("15天内买家未作出评价", False, RejectReason.BOILERPLATE),
        ("买家未及时做出评价，系统默认好评！", False, RejectReason.BOILERPLATE),
        ("评价方未及时做出评价,系统默认好评!", False, RejectReason.BOILERPLATE),
        ("好评", False, None),
        ("默认好评，其实不好用", False, None),
        ("商家没有填写评价就自动好评，太坑了", False, None),
        ("此用户没有填写评价内容", False, RejectReason.BOILERPLATE),
        ("此用户未填写评价内容。", False, RejectReason.BOILERPLATE),
        ("系统默认好评!", False, RejectReason.BOILERPLATE),
        ("该评论已被删除", False, RejectReason.BOILERPLATE),
        ("回复(3) 举报 | 赞[12]", False, RejectReason.BOILERPLATE),
        ("评论里说客服没有填写评价内容，我也没收到货", False, None),
        ("更多精彩", True, RejectReason.SHORT),
        ("您还没有登录，登录后才能查看完整内容，没有帐号请先注册", True, RejectReason.LOGIN),
        ("登录后发现余额不见了，打电话给客服，客服说要等三天，三天后还是没有人联系我，" * 6, True, None),
        (
            "品牌：光明 净含量：250ml 保质期：6个月 配料：生牛乳 产地：上海 生产许可证编号：QS1234",
            True,
            RejectReason.GOODS,
        ),
        ("品牌：光明 净含量：250ml 保质期：6个月 配料：生牛乳。我买的这一箱感觉有点发酸，很失望", True, None),
        ("喝了一个月了，味道一直不错", True, None),
    ],
)
def test_what_is_no_review(body, main_text, reason):
    assert reject_reason(record(body), main_text=main_text) is reason


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("滤水壶用了一周就漏水", RejectReason.TITLE),
        ("滤水壶用了一周就漏水 - 消费投诉", RejectReason.TITLE),
        ("作者：陈明 2026-11-20 10:00", RejectReason.TITLE),
        ("滤水壶用了一周就漏水\n来源：消费投诉 作者：陈明 2026-11-20 10:00", RejectReason.TITLE),
        ("滤水壶用了一周就漏水\nBy 陈明, published 2026-11-20 10:00", RejectReason.TITLE),
        ("滤水壶用了一周就漏水，换了滤芯也没有用", None),
        ("陈明说滤水壶漏水了", None),
    ],
)
def test_a_title_with_its_byline_is_no_review(body, reason):
    titled = record(body)._replace(
        title="滤水壶用了一周就漏水 - 消费投诉", author="陈明", date_text="2026-11-20 10:00"
    )
    assert reject_reason(titled, main_text=True) is reason


def test_the_reviews_of_a_page_are_sorted_and_what_is_none_is_counted():
    kept, refused, records = screen_reviews(
        PageRead(""), [record("很好", "a"), record("…", "b"), record("！", "c")], main_text=False
    )
    assert [review.key for review in kept] == ["a"]
    assert refused == {"empty": 2}
    assert [(reason, one.key) for reason, one in records] == [("empty", "b"), ("empty", "c")]
    assert screen_reviews(PageRead("", no_review="list"), (), main_text=True) == ((), {"list": 1}, ())


def test_what_a_page_says_is_bounded():
    assert len(matchable_text("t", [("", "字" * TEXT_CHARS), ("", "牛奶" * TEXT_CHARS)])) <= TEXT_CHARS + 10


@pytest.mark.slow
@given(
    st.lists(st.text(max_size=40), max_size=5),
    st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=4),
)
def test_any_text_and_any_words_give_a_share(texts, words):
    said = matchable_text("".join(texts), [("", text) for text in texts])
    assert 0 <= matched_share(words, said) <= 1 + 1e-9
    assert product_match([words], said).matches == (matched_share(words, said) >= LEAST_SHARE)


@pytest.mark.parametrize(
    ("product", "text", "expected"),
    [
        ("宝马3系", "宝马X1漏油", False),
        ("宝马3系", "宝马3系漏油", True),
        ("吉利帝豪", "吉利帝豪GL漏油", False),
        ("吉利帝豪", "吉利帝豪B柱异响", True),
        ("吉利帝豪GL", "吉利帝豪漏油", False),
        ("哈弗H6", "哈弗H6 Coupe异响", False),
        ("哈弗H6 Coupe", "哈弗H6Coupe异响", True),
        ("马自达3", "马自达6开了3万公里", False),
        ("iPhone 15", "iPhone 15 Pro Max太重", False),
        ("蒙牛纯牛奶", "蒙牛的牛奶涨价了", False),
        ("蒙牛纯牛奶", "蒙牛纯奶涨价了", True),
        ("蒙牛纯牛奶", "特仑苏纯牛奶涨价了", False),
    ],
)
def test_where_a_name_has_a_line_or_model_the_text_names_it(product, text, expected):
    assert named(product, "", text) is expected


def test_this_phone_under_a_page_about_the_model_is_of_the_model():
    assert named("小米14 Pro", "小米14 Pro怎么样", "这手机发热", "同楼上")
    assert not named("小米14 Pro", "小米14怎么样", "这手机发热")


def test_a_word_without_brand_opens_a_page_that_is_about_it():
    assert named("日本马桶盖", "日本马桶盖值得买吗", "还行")
    far = "今天天气不错。" * 30
    assert not named("日本马桶盖", "旅行见闻", far + "在日本看到一个马桶盖")
    assert not named("光明牛奶", "旅行见闻", far + "窗外一片光明。" + far + "喝了牛奶")


@pytest.mark.parametrize(
    ("names", "text", "kept"),
    [
        (("iPhone 15", "iPhone 15 Pro"), "iPhone 15 Pro发热，iPhone 15 Pro卡", ("iPhone 15 Pro",)),
        (("蒙牛真果粒", "蒙牛真果粒花果轻乳"), "蒙牛真果粒好喝", ("蒙牛真果粒",)),
        (("蒙牛真果粒", "蒙牛真果粒花果轻乳"), "蒙牛真果粒花果轻乳好喝", ("蒙牛真果粒花果轻乳",)),
        (("光明牛奶", "光明优倍鲜牛奶"), "光明优倍鲜牛奶好喝", ("光明牛奶", "光明优倍鲜牛奶")),
        (("宝马3系", "宝马X1"), "宝马3系和宝马X1怎么选", ("宝马3系", "宝马X1")),
        (("宝马3系", "宝马X1"), "宝马3系比X1好，3系省油", ("宝马3系",)),
        (("一加 15", "一加 13"), "一加15比一加13好，一加15省电", ("一加 15",)),
        (("一加 15", "一加 Ace 6"), "一加15好，一加15省电，比Ace 6强", ("一加 15",)),
        (("一加 15", "iQOO 15"), "OnePlus 15漏光", ("一加 15",)),
        (("一加 15", "一加 15T"), "一加15T漏光", ("一加 15T",)),
        (("502胶水", "406胶水"), "502胶水粘手，胶水干得快", ("502胶水",)),
        (("宝马3系", "奔驰C级"), "宝马3系比奔驰C级好，3系省油", ("宝马3系", "奔驰C级")),
    ],
)
def test_a_text_goes_to_the_near_product_that_it_names_best(
    names: tuple[str, ...], text: str, kept: tuple[str, ...]
) -> None:
    said = matchable_text("", [("", text)])
    matched = [name for name in names if product_match(product_query(name).keyword_sets, said).matches]
    lost = outdone([product_query(name).keyword_sets for name in matched], said)
    assert tuple(name for name, is_lost in zip(matched, lost, strict=True) if not is_lost) == kept


def test_the_one_that_the_title_names_has_the_page() -> None:
    sets = [product_query(name).keyword_sets for name in ("宝马3系", "宝马X1")]
    said = matchable_text("宝马3系异响", [("", "宝马X1没有这个毛病，X1好，X1省油")])
    assert outdone(sets, said, "宝马3系异响") == [False, True]
