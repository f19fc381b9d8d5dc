"""Texts of mixed sources, as public repositories hold them: what is labelled by hand (`research.training.voices.voice_posts`).

Files lie in the folder `voices` of the shared data as ``OWNER+NAME/PATH``; a file that is not there has no texts. Most
sources are named in `research/bench/voice-sources.yaml` (`research.training.voices.voice_files`); here are those that need a reader.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

from openpyxl import load_workbook

from research.training.voices.voice_files import sources
from splitter.catalog.names import Group

_LISTED = sources()

HELD_BACK = (
    *("dongchedi", "bags weibo", "xiaohongshu ai", "bilibili graphics cards"),
    *(source.source for source in _LISTED if source.held_back),
)
"""Sources that nothing is learned, calibrated or chosen from: only tested on."""

GROUPS = {source.source: source.group for source in _LISTED if source.group} | {
    "heimao": "loan complaints",
    "xiaohongshu bars": "bars",
}
"""The group of sources that are held out together."""

SEARCHED: Mapping[Group, frozenset[str]] = {
    Group.SHOP: frozenset(
        source.source
        for source in _LISTED
        if source.source.startswith(("jd ", "tmall ", "taobao ", "app store ", "bank app ")) and not source.held_back
    ) - {"taobao recommendations"} | {"tmall snacks"},
    Group.MICROBLOG: frozenset({
        "huawei weibo", "xiaomi weibo", "takeaway weibo", "games weibo", "seller weibo", "energy weibo", "game weibo",
        "weibo ready meals", "weibo assisted driving",
    }),
    Group.FORUM: frozenset({
        "car forum", "xiaohongshu beauty", "xiaohongshu bars", "xiaohongshu shanghai bars", "xiaohongshu porsche",
        "xiaohongshu shoes", "hupu", "mobile01 laptops", "ptt taobao board", "dianping mountain castle",
    }),
}  # fmt: skip
"""Sources that were found by the name of a product or a brand, as the pages of a crawl are, by the kind of their site."""

_DAILY_EVENTS = ("0", "000", "1", "2", "3", "4", "5", "6")


def mixed(folder: Path) -> Mapping[str, Callable[[], Iterable[str]]]:
    """What reads the texts of each mixed source in a folder."""
    opinions = folder / "1064yanzu+public_opinion/persistent_data"
    hupu = folder / "SusieWang0720+COM5507-Project-Report/虎扑正文及评论.csv"
    energy = folder / "serena-xue+Weibo-Data-Text-Analysis/results"
    return {source.source: partial(source.texts, folder) for source in _LISTED} | {
        "huawei weibo": lambda: _daily_posts(folder / "cxgoal-97+HUAWEI-News-Visualization/data"),
        "car forum": lambda: cells(
            folder / "Losstie+DF-car_theme_emotionRecognition/data/test_public.csv", 1
        ),
        "xiaohongshu beauty": lambda: cells(
            folder / "KaitoHH+xiaohongshu-spider-visualizer/xiaohongshu.csv", 9
        ),
        "xiaohongshu bars": lambda: cells(folder / "NYYCS+social-media-scrapers/xiaohongshu.csv", 4),
        "weibo": lambda: columns(folder / "dengxiuqi+weibo2018/test.txt", 2, ","),
        "xiaomi weibo": lambda: _weibo(opinions, "小米", "小米pad6pro", "雷军"),
        "takeaway weibo": lambda: _weibo(opinions, "京东外卖"),
        "games weibo": lambda: _weibo(opinions, "明日方舟", "第五人格", "王者荣耀"),
        "seller weibo": lambda: _weibo(opinions, "东北雨姐"),
        "bags weibo": lambda: cells(folder / "dmindemon+Weibo-NLP/comment.csv", 5),
        "energy weibo": lambda: chain(cells(energy / "positive.csv", 0), cells(energy / "negative.csv", 0)),
        "game weibo": lambda: _sheet(folder / "courage75+bert-/weibo.xlsx", 0),
        "xiaohongshu ai": lambda: _notes(folder / "kkittywong+FINT400.-term-paper-coding/小红书.txt"),
        "xiaohongshu porsche": lambda: _script_notes(
            folder / "ShenTianyuKaiser+po-opinion-compass/src/pages/home/mock-data.ts"
        ),
        "bilibili graphics cards": lambda: cells(
            folder / "BounceAAS+sentiment-analysis-Aigents-for-Chinese-text/comments.csv", 0
        ),
        "bilibili ai": lambda: cells(folder / "GFishpp+kimi-report-GFish/B站报告/bilibili_comments.csv", 3),
        "dongchedi": lambda: (
            text.replace("\\n", "\n")
            for text in cells(folder / "Berwyn-Git+Dongchedi-Comments/filterd_data.csv", 0)
        ),
        "hupu": lambda: chain.from_iterable(cells(hupu, column) for column in range(4, 104)),
        "meituan": lambda: cells(folder / "NateHomles+meituanspider/comment.csv", 0),
        "tmall snacks": lambda: _sheet(folder / "handsomeWeiye+sanzhisongshu/评论.xlsx", 2),
    }


def lines(path: Path) -> Iterator[str]:
    """The lines of a text file."""
    if path.exists():
        yield from path.read_text("utf-8-sig").split("\n")[:-1]


def cells(path: Path, column: int, encoding: str = "utf-8-sig") -> Iterator[str]:
    """One column of a table, its head too."""
    if path.exists():
        with path.open(encoding=encoding, newline="") as file:
            yield from (row[column] for row in csv.reader(file) if len(row) > column)


def columns(path: Path, column: int, mark: str = "\t") -> Iterator[str]:
    """One column of lines whose values are between marks."""
    return (line.split(mark, column + 1 if mark == "\t" else column)[column] for line in lines(path))


def _daily_posts(folder: Path) -> Iterator[str]:
    """Posts naming a brand, as one a day of each of three moods."""
    for number in _DAILY_EVENTS:
        path = folder / f"posnegstatswithtext-{number}.json"
        for day in json.loads(path.read_text("utf-8-sig")) if path.exists() else ():
            yield from (day[mood] for mood in ("积极微博", "消极微博", "中性微博") if day.get(mood))


def _weibo(folder: Path, *names: str) -> Iterator[str]:
    """Posts that a search for each of some names found."""
    return chain.from_iterable(cells(folder / f"微博_{name}.csv", 4) for name in names)


def _sheet(path: Path, column: int) -> Iterator[str]:
    """One column of a workbook's first sheet."""
    if path.exists():
        for row in load_workbook(path, read_only=True).worksheets[0].iter_rows(values_only=True):
            if len(row) > column and row[column]:
                yield str(row[column])


def _notes(path: Path) -> Iterator[str]:
    """Notes of a table with tabs; its columns of comments hold several in one."""
    if path.exists():
        with path.open(encoding="utf-16", newline="") as file:
            for row in csv.reader(file, delimiter="\t"):
                yield from row[1:2]


def _script_notes(path: Path) -> Sequence[str]:
    """Notes in a script's data."""
    if not path.exists():
        return ()
    found = re.findall(r"笔记内容: \[\s*\{\s*text:\s*'((?:[^'\\]|\\.)*)'", path.read_text("utf-8"))
    return [text.replace("\\n", "\n") for text in found]
