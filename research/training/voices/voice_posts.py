"""Posts whose voice is known, by source: what `research.training.train_voices` learns from and `research.bench.quality.voices` scores.

A source whose kind says who speaks (a complaints site, a shop's reviews with their stars, a newspaper's account) gives
its posts their voice. Posts of mixed sources were read and labelled by hand: `research/samples/voices/labels.tsv` holds
source, digest of the text, voice; the texts stay where they were published. `docs/voices.md` names every source.

The folder `voices` of the shared data holds files of public repositories as ``OWNER+NAME/PATH``.
"""

from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from research.tools.pagetruth import SAMPLES
from research.training.voices.voice_mixed import GROUPS, HELD_BACK, cells, columns, lines, mixed
from tasks.domain.voices import Voice

EACH = 500
"""Most posts of one voice from one source."""

MOST_TEXTS = 20_000
"""Most texts of one source that words are learned from."""

_SHORT, _TOLD_APART = 4, 8
"""Texts of at most so many characters teach no words; of at most so many may stand in two sources, being no copies."""

_LABELS, _WRITTEN = SAMPLES / "voices/labels.tsv", SAMPLES / "voices/posts.tsv"
_NEWS_ACCOUNT = 3


@dataclass(frozen=True, slots=True)
class Post:
    """A text and who speaks in it.

    Attributes:
        source: where it was published.
        good: what its author thought, by stars or a mark; None: not told.
        by_hand: somebody read it to say whose voice it is.
        group: sources that are alike, or share posts, and are held out together; empty: the source alone.
    """

    source: str
    text: str
    voice: Voice
    good: bool | None = None
    by_hand: bool = False
    group: str = ""

    @property
    def kin(self) -> str:
        """What is held out with this post: its group of sources, or its source."""
        return self.group or self.source


def written_posts() -> list[Post]:
    """The posts written for this project, in the tree."""
    rows = (line.split("\t") for line in _WRITTEN.read_text("utf-8").splitlines() if not line.startswith("#"))
    return [Post("written", text, Voice(voice)) for voice, text in rows]


def posts(shared: Path) -> list[Post]:
    """The posts of the shared data: of each source and voice at most `EACH`, whichever have the least digests.

    Those of `HELD_BACK` are not among them.
    """
    found = _all(shared)
    back = {post.text for post in found if post.source in HELD_BACK and len(post.text) > _TOLD_APART}
    return [post for post in found if post.source not in HELD_BACK and post.text not in back]


def held_back(shared: Path) -> list[Post]:
    """The posts that nothing is learned, calibrated or chosen from (`HELD_BACK`)."""
    return [post for post in _all(shared) if post.source in HELD_BACK]


def all_texts(shared: Path) -> dict[str, list[str]]:
    """All texts of each source, those held back apart: at most `MOST_TEXTS`, each in one source only."""
    found: dict[str, list[str]] = defaultdict(list)
    told: set[str] = set()
    listed = (
        (source, texts()) for source, texts in mixed(shared / "voices").items() if source not in HELD_BACK
    )
    known = (*_reviews(shared / "reviews"), *_published(shared / "voices"))
    of_known = ((post.source, (post.text,)) for post in known)
    for source, texts in (*listed, *of_known):
        for text in texts:
            if len(text) > _SHORT and text not in told and len(found[source]) < MOST_TEXTS:
                told.add(text)
                found[source].append(text)
    return dict(found)


def _all(shared: Path) -> list[Post]:
    """The posts of all sources; a longer one that stands in two sources is taken from the first."""
    found: dict[tuple[str, Voice, bool], dict[str, Post]] = defaultdict(dict)
    told: dict[str, str] = {}
    for post in (*_reviews(shared / "reviews"), *_published(shared / "voices"), *_by_hand(shared / "voices")):
        if len(post.text) > 1 and (
            len(post.text) <= _TOLD_APART or told.setdefault(post.text, post.source) == post.source
        ):
            grouped = replace(post, group=GROUPS.get(post.source, ""))
            found[post.source, post.voice, post.by_hand][digest(post.text)] = grouped
    return [of[key] for _, of in sorted(found.items()) for key in sorted(of)[:EACH]]


def digest(text: str) -> str:
    """What a label knows its text by."""
    return sha256(text.encode()).hexdigest()[:12]


def _reviews(folder: Path) -> Iterator[Post]:
    """What the shared data have of reviews and complaints; their stars or labels are the voice."""
    for row in _rows(folder / "auto_complaints_12365auto.csv"):
        yield Post("12365auto", row["desc"].strip(), Voice.COMPLAINT, False)
    kinds = {"书籍": "books", "酒店": "hotels"}
    for row in _rows(folder / "online_shopping_10_cats.csv"):
        yield _rated(kinds.get(row["cat"], "shopping"), row["review"], row["label"] == "1")
    for row in _rows(folder / "waimai_10k_sample.csv"):
        yield _rated("takeaway", row["review"], row["label"] == "1")
    for row in _rows(folder / "jd_phone_reviews.csv"):
        if row["得分"] in {"1", "2", "4", "5"}:
            yield _rated("jd", row["评论内容"], row["得分"] in {"4", "5"})


def _rated(source: str, text: str, good: bool) -> Post:
    return Post(source, text.strip(), Voice.PRAISE if good else Voice.COMPLAINT, good)


def _published(folder: Path) -> Iterator[Post]:
    """Posts of sources that say who speaks."""
    of_one_voice: list[tuple[str, Voice, Iterable[str]]] = [
        ("heimao", Voice.COMPLAINT, _complaints(folder / "Chi-Tian+Spider")),
        ("afqmc", Voice.QUESTION, columns(folder / "zejunwang1+bertorch/data/AFQMC/train.txt", 0)),
        ("thucnews", Voice.NEWS, columns(folder / _THUCNEWS, 0)),
        (
            "lcsts",
            Voice.NEWS,
            _between(folder / "wangle1218+text-summarization/data/PART_III.txt", "short_text"),
        ),
        ("news accounts", Voice.NEWS, _news_accounts(folder / "thunlp+Chinese_Rumor_Dataset")),
        (
            "advertisements",
            Voice.COMPANY,
            _advertisements(folder / "mhsbz+models_ft/data/AdvertiseGen/dev.json"),
        ),
        ("shopping guides", Voice.COMPANY, cells(folder / "shezhenbo62+finally_spider/smzdm.csv", 1)),
        ("tieba", Voice.OTHER, cells(folder / "Yihang-creator+crawlerForNLP/tieba.csv", 5)),
        ("weibo", Voice.OTHER, columns(folder / "dengxiuqi+weibo2018/train.txt", 2, ",")),
    ]
    for source, voice, texts in of_one_voice:
        good = False if voice is Voice.COMPLAINT else None
        for text in texts:
            yield Post(source, text.strip(), voice, good)
    for text, stars in _pairs(folder / "liudashuai121+NLP_BISHE/dazhongdianping.csv", "gb18030"):
        if stars in {"1", "2", "4", "5"}:
            yield _rated("dianping", text, stars in {"4", "5"})
    for text, said in _pairs(
        folder / "Ticsmyc+Text-sentiment-classification/爬取数据/微鲸电视 评价（标记完成）.csv"
    ):
        if said in {"正面", "负面"}:
            yield _rated("television", text, said == "正面")
    for mark, text in _pairs(folder / "forever1986+bert_task/data/weibo_senti_100k.csv"):
        yield Post("weibo", text.strip("\ufeff \n"), Voice.OTHER, mark == "1")
    for line in lines(folder / "zejunwang1+bertorch/data/tnews/dev.json"):
        title: str = json.loads(line)["sentence"]
        if not _ASKS.search(title):
            yield Post("toutiao", title, Voice.NEWS)
        elif _ASKS_READERS.match(title):
            yield Post("toutiao", title, Voice.QUESTION)


_THUCNEWS = "649453932+Chinese-Text-Classification-Pytorch/THUCNews/data/test.txt"
_ASKS = re.compile(r"[?？]|吗$")
_ASKS_READERS = re.compile(r"你|有[没什哪]|怎么|如何|为什么|哪|什么")
"""Titles that ask readers, as of Toutiao's questions; others that ask only want to be opened, and are left out."""


def _by_hand(folder: Path) -> Iterator[Post]:
    """The posts labelled by hand whose texts are there."""
    voices = {}
    for line in _LABELS.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            source, key, voice = line.split("\t")
            voices[source, key] = Voice(voice)
    for source, texts in mixed(folder).items():
        for text in texts():
            if label := voices.get((source, digest(text.strip()))):
                yield Post(source, text.strip(), label, by_hand=True)


def _rows(path: Path) -> Iterator[dict[str, str]]:
    if path.exists():
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from csv.DictReader(file)


def _pairs(path: Path, encoding: str = "utf-8-sig") -> Iterator[tuple[str, str]]:
    return zip(cells(path, 0, encoding), cells(path, 1, encoding), strict=True)


def _between(path: Path, tag: str) -> Iterator[str]:
    if path.exists():
        yield from re.findall(rf"<{tag}>\s*(.*?)\s*</{tag}>", path.read_text("utf-8"), re.DOTALL)


def _complaints(folder: Path) -> Iterator[str]:
    """Complaints as two files of one crawl hold them; the characters of one were encoded twice."""
    for line in lines(folder / "black_cat.txt"):
        complaint = json.loads(line)
        yield from (complaint["投诉标题"], complaint["投诉详情"])
    for text in (*cells(folder / "heimao.csv", 0), *cells(folder / "heimao.csv", 1)):
        with suppress(UnicodeError):
            yield text.encode("latin-1").decode("utf-8")


def _news_accounts(folder: Path) -> Iterator[str]:
    for path in sorted(folder.glob("CED_Dataset/original-microblog/*.json")):
        post = json.loads(path.read_text("utf-8"))
        if isinstance(post.get("user"), dict) and post["user"].get("verified_type") == _NEWS_ACCOUNT:
            yield post["text"]


def _advertisements(path: Path) -> Iterator[str]:
    return (json.loads(line)["summary"].replace("<UNK>", "") for line in lines(path))
