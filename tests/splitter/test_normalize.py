import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitter.normalize import normalize, split_list, split_words


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("光明牛奶", "光明牛奶"),
        ("ＡＢＣ１２３（袋）", "ABC123(袋)"),
        ("  a \t b\u3000c\n", "a b c"),
        ("牛\u200d奶\ufeff", "牛奶"),
        ("牛🥛奶👨‍👩‍👧", "牛 奶"),
        ("1️⃣段", "1段"),
        ("Nestle™ 雀巢®", "Nestle 雀巢"),
        ("蒙牛純牛奶罐裝", "蒙牛纯牛奶罐装"),
        ("㎏ ①", "kg 1"),
        ("é", "é"),
        ("e\u0301", "é"),
        ("\x00\ud800", ""),
    ],
)
def test_one_way_of_writing(written, normal):
    assert normalize(written) == normal


@given(st.text())
def test_nothing_unprintable_stays(text):
    normal = normalize(text)
    assert normal.isprintable()
    assert normal == " ".join(normal.split())


@pytest.mark.parametrize(
    "text",
    [
        "荣耀,Magic8",
        "荣耀，Magic8",
        "荣耀、 Magic8",
        "荣耀;Magic8",
        " 荣耀；Magic8；",
        "荣耀||Magic8",
        "荣耀 Magic8",
    ],
)
def test_keywords_are_split_at_what_people_put_between_them(text):
    assert split_words(text) == ("荣耀", "Magic8")


def test_blanks_separate_keywords_only_without_another_separator():
    assert split_words("荣耀,Magic8 Pro") == split_list("荣耀,Magic8 Pro") == ("荣耀", "Magic8 Pro")
    assert split_list("Magic8 Pro") == split_words("Magic8 Pro,") == ("Magic8 Pro",)
    assert split_words(" ") == split_words("、") == ()
