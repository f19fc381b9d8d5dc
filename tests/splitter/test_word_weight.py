import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.word_weight import Identity, first_to_drop, identity_of


@pytest.mark.parametrize(
    ("keywords", "order"),
    [
        ("光明 高钙 牛奶", "高钙 牛奶"),
        ("雀巢 怡养 中老年 奶粉", "中老年 奶粉 怡养"),
        ("iPhone 15 Pro", "Pro 15"),
        ("吉利 帝豪 GL", "GL 帝豪"),
        ("华为 Mate 30 手机", "手机 30 Mate"),
        ("Apple iPhone 手机", "手机 iPhone"),
        ("502 胶水", "胶水"),
        ("小米 5G 手机", "手机 5G"),
    ],
)
def test_the_order_in_which_keywords_go(keywords, order):
    left, gone = keywords.split(), []
    while len(left) > 1:
        gone.append(left.pop(first_to_drop(left)))
    assert gone == order.split()


def test_the_more_common_of_two_of_a_kind_goes_first():
    assert first_to_drop(["手机", "吸顶灯"]) == 0
    assert first_to_drop(["吸顶灯", "手机"]) == 1


@pytest.mark.parametrize("keywords", [[], ["光明"]])
def test_the_last_keyword_is_never_dropped(keywords):
    with pytest.raises(ValueError, match="at least two"):
        first_to_drop(keywords)


@given(
    st.lists(st.text(max_size=6) | st.sampled_from(["光明", "牛奶", "P30", "高钙"]), min_size=2, max_size=8)
)
def test_any_keywords_can_be_relaxed(keywords):
    dropped = first_to_drop(keywords)
    assert 0 <= dropped < len(keywords)
    assert identity_of(keywords[dropped]) == min(map(identity_of, keywords))


def test_words_we_do_not_know_are_told_by_their_looks():
    assert identity_of("HUAWEI") is Identity.BRAND
    assert identity_of("TK-6308") is Identity.LINE
    assert identity_of("途铠") is Identity.BRAND  # in no dictionary
    assert identity_of("登山鞋") is Identity.PRODUCT
    assert identity_of("轻薄") is Identity.ATTRIBUTE
