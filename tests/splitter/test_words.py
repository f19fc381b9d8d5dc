import marshal
import subprocess
import sys

import pytest

from splitter.words import jieba_tokenizer, rarity, words_of


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
def cache(tmp_path_factory):
    """A folder that holds jieba's dictionary."""
    folder = tmp_path_factory.mktemp("home") / "deep" / "reviewloop"
    jieba_tokenizer(folder)
    return folder


def test_the_dictionary_is_kept_where_nobody_else_may_write(cache):
    (file,) = cache.iterdir()
    assert (cache.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    written = file.stat().st_mtime_ns
    again = jieba_tokenizer(cache)
    assert file.stat().st_mtime_ns == written
    assert again.lcut("光明高钙牛奶") == ["光明", "高钙", "牛奶"]


@pytest.mark.parametrize("content", [b"", b"not marshal", b"\xfb"])
def test_a_broken_cache_is_made_anew(cache, content):
    (file,) = cache.iterdir()
    size = file.stat().st_size
    file.write_bytes(content)
    assert jieba_tokenizer(cache).lcut("光明高钙牛奶") == ["光明", "高钙", "牛奶"]
    assert [(file.stat().st_size) for file in cache.iterdir()] == [size]


def test_a_cache_that_others_may_write_is_not_read(cache):
    (file,) = cache.iterdir()
    file.write_bytes(marshal.dumps(({}, 1)))
    assert jieba_tokenizer(cache).FREQ == {}
    file.chmod(0o666)
    assert jieba_tokenizer(cache).FREQ != {}


_THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from splitter.words import keep_cache_in, words_of
keep_cache_in(Path(sys.argv[1]))
with ThreadPoolExecutor(8) as pool:
    for words in pool.map(words_of, ["光明高钙牛奶"] * 8):
        print(*words)
"""


def test_the_first_use_is_quiet_and_safe_for_threads_without_a_folder_to_write(tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = subprocess.run(
        [sys.executable, "-W", "default", "-c", _THREADS, tmp_path / "file" / "cache"],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert (done.stdout, done.stderr) == ("光明 高钙 牛奶\n" * 8, "")
