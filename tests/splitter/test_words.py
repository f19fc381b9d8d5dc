import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from splitter import dictionary
from splitter.words import Tokenizer, rarity, words_of


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


def cut(folder, text):
    return Tokenizer(folder).of(text).lcut(text)


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """A folder that holds jieba's dictionary."""
    folder = tmp_path_factory.mktemp("home") / "deep" / "reviewloop"
    Tokenizer(folder)
    return folder


def test_the_dictionary_is_kept_where_nobody_else_may_write(cache):
    (file,) = cache.iterdir()
    assert (cache.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    written = file.stat().st_mtime_ns
    assert cut(cache, "光明高钙牛奶") == ["光明", "高钙", "牛奶"]
    assert file.stat().st_mtime_ns == written


def test_in_parts_it_says_the_same_as_whole(cache):
    parts, whole = Tokenizer(cache), Tokenizer(None)
    assert parts.total == whole.total
    for text in (*names(), "杭研大厦", "T恤", "农夫山泉茶π", "𠮷野家"):
        assert parts.of(text).lcut(text) == whole.of(text).lcut(text)
    kept = parts.of("牛光").FREQ
    assert kept
    everything = whole.of("".join(kept)).FREQ
    assert all(everything[word] == frequency for word, frequency in kept.items())
    assert len(kept) < len(everything)
    assert {word for word in everything if word[:1] == "牛"} == {word for word in kept if word[:1] == "牛"}


def names():
    lines = (Path(__file__).parents[2] / "research" / "samples" / "names.txt").read_text("utf-8").splitlines()
    return lines[:300]


@pytest.mark.parametrize("content", [b"", b"not marshal", b"\xfb", b"\x03" + bytes(7) + b"abc"])
def test_a_broken_cache_is_made_anew(cache, content):
    (file,) = cache.iterdir()
    size = file.stat().st_size
    file.write_bytes(content)
    assert cut(cache, "光明高钙牛奶") == ["光明", "高钙", "牛奶"]
    assert [(file.stat().st_size) for file in cache.iterdir()] == [size]


def test_half_of_a_cache_is_made_anew(cache):
    (file,) = cache.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    assert cut(cache, "光明高钙牛奶") == ["光明", "高钙", "牛奶"]
    assert file.read_bytes() == content


def test_a_cache_that_others_may_write_is_not_read(tmp_path):
    file = tmp_path / f"jieba-{version('jieba')}.parts"
    dictionary.write(file, {"光": 0, "光明": 0, "光明高": 10**9}, 10**9)
    assert cut(tmp_path, "光明高钙牛奶") == ["光明高", "钙", "牛奶"]
    file.chmod(0o666)
    assert cut(tmp_path, "光明高钙牛奶") == ["光明", "高钙", "牛奶"]


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
