import subprocess
import sys
from pathlib import Path

import pytest

from splitter import dictionary
from splitter.lexicon import user_words
from splitter.words import Tokenizer, jieba_tokenizer, rarity, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ""),
        (" \r\n", ""),
        ("光明高钙牛奶,12盒", "光明 高钙 牛奶 , 12 盒"),
        ("杭研大厦", "杭研 大厦"),  # 杭研 is in no dictionary
        ("L'Oréal欧莱雅", "L'Oréal 欧莱雅"),
        ("wi-fi6.5%牛奶+b", "wi-fi6.5 牛奶 b"),
        ("ソニー ヘッドホン", "ソニー ヘッドホン"),
        ("𠮷野家", "𠮷 野家"),
        ("农夫山泉茶π", "农夫山泉 茶π"),
    ],
)
def test_the_words_of_a_text(text, words):
    assert words_of(text) == words.split()


def test_common_words_are_less_rare():
    assert rarity("手机") < rarity("吸顶灯")
    assert rarity("特仑苏") is not None
    assert rarity("龘靐齉") is None


@pytest.fixture(scope="module")
def whole():
    """jieba's own dictionary, read as a whole."""
    return jieba_tokenizer()


@pytest.mark.parametrize(
    "first",
    ["A", "c", "γ", "4", "江", "小", "阿", "一", "吉", "高", "龢", "𠮷", "牛", "\ud83d", "%"],
)
def test_a_part_of_the_dictionary_has_what_jieba_reads(whole, first):
    expected = {word: count for word, count in whole.FREQ.items() if word[0] == first}
    assert dictionary.part(first) == expected
    assert {word: dictionary.frequency(word) for word in expected} == expected
    assert dictionary.frequency(f"{first} 217830") == 0


def test_the_total_is_that_of_jieba(whole):
    assert whole.total == dictionary.TOTAL


@pytest.mark.slow
def test_every_word_has_the_frequency_that_jieba_reads(whole):
    assert dictionary.part("") == whole.FREQ
    assert [word for word, count in whole.FREQ.items() if dictionary.frequency(word) != count] == []


def test_names_are_cut_as_with_all_of_the_dictionary(whole):
    for word, (count, _) in user_words().items():
        whole.add_word(word, count)
    for text in (*names(), "光明高钙牛奶", "杭研大厦", "T恤", "农夫山泉茶π", "𠮷野家"):
        assert Tokenizer().of(text).lcut(text) == whole.lcut(text)


def names():
    lines = (Path(__file__).parents[2] / "research" / "samples" / "names.txt").read_text("utf-8").splitlines()
    return lines[:300]


_THREADS = """
from concurrent.futures import ThreadPoolExecutor
from splitter.words import words_of
with ThreadPoolExecutor(8) as pool:
    for words in pool.map(words_of, ["光明高钙牛奶"] * 8):
        print(*words)
"""


def test_the_first_use_is_quiet_and_safe_for_threads():
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", _THREADS], capture_output=True, encoding="utf-8", check=True
    )
    assert (done.stdout, done.stderr) == ("光明 高钙 牛奶\n" * 8, "")


def test_how_rare_words_are_is_known_without_jieba():
    code = "import sys; from splitter.words import rarity; rarity('手机'); print('jieba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert done.stdout == "False\n"
