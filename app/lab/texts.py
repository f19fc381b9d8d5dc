"""What people write on the lab's pages: real review texts where they are there, made ones elsewhere."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

DEFAULT_REVIEWS = Path(__file__).resolve().parents[3] / "shared" / "data" / "reviews"
"""The folder of real reviews, beside the repository."""

_COLUMNS = {
    "online_shopping_10_cats.csv": "review",
    "waimai_10k_sample.csv": "review",
    "jd_phone_reviews.csv": "评论内容",
    "auto_complaints_12365auto.csv": "desc",
    "heimao_example.csv": "summary",
}
_SHORTEST, _LONGEST = 6, 900
_FEW = 20
_CONTROL = re.compile(r"[\x00-\x1f\x7f\s\ufeff]+")

_BOUGHT = (
    "上周在超市买了一箱",
    "本人于本月初在专卖店购买了两箱",
    "孩子一直在喝，这次网购了一箱",
    "春节期间单位发的",
    "在小区门口的便利店买了几盒",
)
_WRONG = (
    "打开后发现里面有黑色异物",
    "还没到保质期就已经胀包",
    "喝起来有明显的酸味，像是变质了",
    "生产日期被涂改过，看不清楚",
    "包装漏液，整箱都发霉了",
    "孩子喝完之后上吐下泻",
    "买十送一的活动到店里却不承认",
    "实际净含量比包装上标的少了很多",
    "口感和以前完全不一样，稀得像水",
)
_ANSWERED = (
    "打客服电话一直没人接",
    "商家说不是质量问题，拒绝退货",
    "厂家让我自己去检测，费用还要自己出",
    "客服答应三天内回复，到现在没有消息",
    "超市推给厂家，厂家又推给超市",
    "对方只同意换一盒，态度非常差",
)
_WANTED = (
    "希望有关部门尽快查处，给消费者一个说法。",
    "要求退款并按规定赔偿。",
    "请大家购买时多加注意！",
    "要求公开道歉，并赔偿医药费。",
    "再也不会买这个牌子了。",
)


def made_texts() -> tuple[str, ...]:
    """Complaints made of parts: the same 1,350 every time."""
    return tuple(
        f"{bought}，{wrong}。{answered}，{wanted}"
        for bought, wrong, answered, wanted in product(_BOUGHT, _WRONG, _ANSWERED, _WANTED)
    )


def load_texts(folder: Path, avoid: Iterable[str] = ()) -> tuple[str, ...]:
    """The review texts of a folder, or made ones where it holds none.

    Args:
        folder: where the CSV files of real reviews are; it need not exist.
        avoid: regular expressions; a text in which one is found is left out (a review that says
            "please sign in first" would make a good page look like a login wall).

    Returns:
        Texts of 6 to 900 characters without line breaks and repeats, always in the same order; never empty.
    """
    refused = [re.compile(pattern) for pattern in avoid]
    texts = dict.fromkeys(
        text
        for text in map(_tidy, _cells(folder))
        if len(text) >= _SHORTEST and not any(pattern.search(text) for pattern in refused)
    )
    return tuple(texts) or made_texts()


def fitting(texts: tuple[str, ...], keywords: Iterable[str]) -> tuple[str, ...]:
    """Those texts that mention one of the keywords, so that milk is complained of and not a telephone.

    All of them where fewer than `_FEW` fit. Takes a search through all texts: keep the answer.
    """
    words = tuple(keywords)
    found = tuple(text for text in texts if any(word in text for word in words))
    return found if len(found) >= _FEW else texts


def _cells(folder: Path) -> Iterator[str]:
    for name, column in _COLUMNS.items():
        path = folder / name
        if path.is_file():
            with path.open(encoding="utf-8-sig", newline="") as lines:
                yield from (row[column] or "" for row in csv.DictReader(lines))


def _tidy(text: str) -> str:
    return _CONTROL.sub(" ", text).strip()[:_LONGEST].rstrip()
