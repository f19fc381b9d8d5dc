"""Which reviews are copies: by length, or by author; whose name identifies nobody."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.reading.copies.authors import identity, is_nobody
from tasks.reading.copies.copy_key import LEAST, copy_key, is_long, length
from tasks.reading.copies.near_duplicates import plain

LONG = "蒙牛纯牛奶喝出活虫子，客服一直推脱，要求赔偿并公开道歉"
JUST = "牛奶里有异物投诉三次没有人处理希望尽快给出合理答复"
SHORT = "老牌子值得信赖"

NOBODY = (
    "匿名|匿 名|（匿名）|匿名用户|匿名网友(上海)|匿名(来自北京)|j***n|Ｊ＊＊＊Ｎ|张**|1●●8|张xx|"
    "138XXXX1234|王某某|李女士|张先生|小陈同学|用户123|用户_8a9f|京东用户|手机用户2938471|新浪网友|"
    "网易北京市网友|知乎用户AbxQ|贴吧用户_QaAbCdE|微信用户|小红薯5F3A21|momo|Amazon Customer|"
    "Kindle Customer|A Google user|user123|guest_12|Anonymous|anónimo|tb8812345|jd_5f3a81c2d9|"
    "bili_12345678|dpuser_1234567|游客|路人甲|楼主|作者|???|\ufffd\ufffd|-|张|null|N/A|已注销|账号已注销|"
    "a...n|j…n|anonymous-abcdefghijkl"
)
SOMEBODY = (
    "王小明|李雷|remember|zhangsan1987|牛奶观察|author-abcdefghijkl|小王2013|user_of_the_year|"
    "Jack Customer-Smith|tbone|qqbaby|阳光|快乐的小鱼|Tom|13800001234|质量万里行|梅西"
)


@pytest.mark.parametrize("name", ["", " ", *NOBODY.split("|")])
def test_a_name_that_many_people_share_identifies_nobody(name: str) -> None:
    assert is_nobody(name)
    assert identity("jd.com", name) is None


@pytest.mark.parametrize("name", SOMEBODY.split("|"))
def test_a_name_that_somebody_chose_identifies_an_author_of_one_site(name: str) -> None:
    assert not is_nobody(name)
    assert identity("jd.com", name) == identity("jd.com", f" {name}\n") != identity("suning.com", name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("好评", 2),
        (SHORT, 7),
        (JUST, LEAST - 1),
        (f"{JUST}。", LEAST),
        ("好评" * 30, 4),
        ("好评" + "！" * 60, 5),
        ("质量好，物流快！" * 10, 10),
        (f"好评 \n\u3000 {'👍🎉😀' * 20}", 2),
        (f"好评 http://t.cn/{'a1' * 20}", 2),
        (f"太过分了大家都来看看这个品牌干的好事//@牛奶观察：{SHORT}吧", 8),
    ],
)
def test_what_repeats_itself_or_is_no_text_adds_no_length(text: str, expected: int) -> None:
    assert length(text) == expected
    assert is_long(text) == (expected >= LEAST)


@given(st.text("好评物流很快下次还会再来一定支持abcdefghijklmn0123456789", max_size=70))
def test_a_text_of_letters_is_long_by_its_length_alone(text):
    assert is_long(text) == (length(text) >= LEAST)


@given(
    st.text(
        "的一是了我不人在他有这上们来到时大地为子中你说生国年着就那和要她出也得里后自以会@[]/＠﹫［：， a\u0301",
        max_size=90,
    )
)
def test_han_characters_make_long_what_all_letters_make_long(text):
    letters = plain(text[: 2 * LEAST])
    grams = {letters[at : at + 3] for at in range(len(letters) - 2)}
    by_start = len(text) >= LEAST and "//" not in text and max(len(set(letters)), len(grams) + 2) >= LEAST
    assert is_long(text) == (by_start or length(text) >= LEAST)


RULE = [
    # one review, another, are they copies
    (("a.cn", "王小明", SHORT), ("a.cn", "王小明", SHORT), True),
    (("a.cn", "王小明", SHORT), ("a.cn", " 王小明\n", SHORT), True),
    (("a.cn", "王小明", SHORT), ("a.cn", "李雷", SHORT), False),
    (("a.cn", "王小明", SHORT), ("b.cn", "王小明", SHORT), False),
    (("a.cn", "王小明", SHORT), ("a.cn", "", SHORT), False),
    (("a.cn", "", SHORT), ("a.cn", "", SHORT), False),
    (("a.cn", "匿名", SHORT), ("a.cn", "匿名", SHORT), False),
    (("a.cn", "j***n", SHORT), ("a.cn", "j***n", SHORT), False),
    (("a.cn", "用户123", SHORT), ("a.cn", "用户123", SHORT), False),
    (("a.cn", "王小明", "好评"), ("a.cn", "王小明", "差评"), False),
    (("a.cn", "王小明", JUST), ("a.cn", "李雷", JUST), False),
    (("a.cn", "王小明", f"{JUST}。"), ("b.cn", "李雷", f"{JUST}。"), True),
    (("a.cn", "", LONG), ("b.cn", "j***n", LONG), True),
    (("a.cn", "王小明", "好评" * 30), ("a.cn", "李雷", "好评" * 30), False),
    (("a.cn", "王小明", "好评" * 30), ("a.cn", "王小明", "好评" * 30), True),
    (("a.cn", "王小明", LONG), ("a.cn", "王小明", LONG[:-1]), False),
]


@pytest.mark.parametrize(("one", "other", "are_copies"), RULE)
def test_copies_share_a_key(one: tuple[str, str, str], other: tuple[str, str, str], are_copies: bool) -> None:
    key = copy_key(*one)
    assert (key is not None and key == copy_key(*other)) is are_copies


def test_the_key_is_for_ever() -> None:
    """It is stored: another value would be another review."""
    assert copy_key("a.cn", "王小明", SHORT) == bytes.fromhex("38071f2fa56cc2ebfa395cfe29985797")
    assert copy_key("a.cn", "王小明", LONG) == bytes.fromhex("9d14f217415f5e3fe2235e5bcfc3f596")
