"""The dashboard speaks both languages whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO
from itertools import starmap
from random import Random

import pytest

from app.actions.products import RefusedProduct
from app.importing.product_files import open_product_file
from app.importing.product_rows import ProductRows
from app.run.setting_fields import Settings
from app.sites.rule_preview import read_by_rules
from app.views.host_waits import describe_wait, view_waits
from app.views.words import describe, switch_language
from splitter.catalog.model import Bounds
from splitter.catalog.rules import PageRules, ResultRules
from splitter.errors import InputError, Message
from tasks.domain.facts import NodeFacts, SubtaskFacts
from tasks.domain.failures import FailureReason
from tasks.domain.host_wait import NO_PERMIT, UNREACHABLE
from tasks.domain.pair_stats import PairStats
from tasks.domain.reasons import from_document
from tasks.reading.decode import decode
from tasks.scheduling import eligibility, modification, recall
from tasks.scheduling.recall import RecallSettings
from tasks.store.queries.queues import HostQueue


def _made() -> Iterator[object]:
    """Sentences and reasons as other packages make them."""
    settings, chance = RecallSettings(most_unanswered=3), Random(0)
    for reason in FailureReason:
        for way in (settings, replace(settings, enabled=False)):
            for unanswered in (0, 3):
                given = recall.decide_recall(reason, "n1", 5, [], way, chance, unanswered=unanswered)
                assert isinstance(given, recall.ToManual)
                yield given.because
    subtask = SubtaskFacts(
        id=1, site="a.cn", kind="meta", hosts=("a.cn",), left=1, priority=0, failed_on=("n2",)
    )
    nodes = {
        "n1": NodeFacts("n1", frozenset({"microblog"}), 1, 1),
        "n2": NodeFacts("n2", frozenset({"meta"}), 1, 1),
        "n3": NodeFacts("n3", frozenset({"meta"}), 1, 1, frozenset({"a.cn"})),
        "n4": NodeFacts("n4", frozenset({"meta"}), 1, 1),
    }
    for name in ("n0", "n1", "n2", "n3"):
        why = eligibility.why_not(subtask, name, nodes, {})
        assert why is not None
        yield why
    yield eligibility.why_not(replace(subtask, assigned="n1"), "n4", nodes, {})
    quota, budget = Bounds(min=1, max=100), Bounds(min=10, max=600)
    yield from_document(modification.defaults(quota, budget).as_detail()["because"])
    stats = PairStats(attempts=3.0, offered=30, tried=30, collected=25, active_s=9.0)
    yield from_document(modification.modify(stats, 20, quota, budget).as_detail()["because"])
    now, catalog = datetime(2026, 1, 1, tzinfo=UTC), Settings(sites="paper-2014").catalog()
    for cause in (UNREACHABLE, NO_PERMIT, "rate_limited"):
        for until in (now, now + timedelta(seconds=30), now + timedelta(hours=1)):
            for n in (1, 2):
                queue = HostQueue(host="www.baidu.com", cause=cause, until=until, subtasks=n, left=9)
                yield describe_wait(view_waits([queue], catalog)[0], now)


def _refused() -> Iterator[Message]:
    """What is said of products that are refused, and of files that hold none."""
    long = "长" * 300

    def read(text: str | bytes) -> list[Message]:
        data = text if isinstance(text, bytes) else text.encode()
        _, lines = open_product_file(BytesIO(data), "f")
        return [
            one.why for one in starmap(ProductRows({}, {}).read, lines) if isinstance(one, RefusedProduct)
        ]

    for name in ("", "🥛", long, "123", "http://a.cn/b", "2024-01-02", "特\x01仑苏"):
        yield from read(f"name,priority\n特仑苏,1\n{name},x\n")
    for text in (
        "name,priority\n特仑苏,x\n",
        "name,priority\n特仑苏,99999\n",
        "name\n特仑苏,1\n",
        b"name\n\xff\xff\n",
    ):
        yield from read(text)
    texts = (
        "rules:\n  main_text: true\nsites:\n",
        "{}\n",
        "特仑苏很好喝。我很喜欢。\n购物时要注意，不要买错了。\n",
    )
    for data in (
        *map(str.encode, texts),
        "货,价\n牛奶,3\n".encode(),
        b"\xd0\xcf\x11\xe0",
        b"a\0b",
        b"PK\x03\x04",
    ):
        with pytest.raises(InputError) as refused:
            read(data)
        yield refused.value.message


def _tried() -> Iterator[object]:
    """What is said of a page that rules were tried on."""
    now, url = datetime(2026, 1, 1, tzinfo=UTC), "http://a.cn/"
    result = ResultRules(hit="b", link="a@h", title="a")
    links = "".join(
        f"<li><a href=/{n}>第{n}条结果的标题写在这里</a><p>{'摘要' * 20}</p></li>" for n in range(9)
    )
    for text in ("", f"<ul>{links}</ul>", "<title>提示</title><p>您的访问过于频繁，请稍后再试</p>"):
        yield read_by_rules(text.encode(), {}, url, result, now=now).why
    yield read_by_rules("<p>牛奶</p>".encode(), {}, url, PageRules(review="b", body="i"), now=now).why
    yield read_by_rules(b"<p>.</p>", {}, url, PageRules(main_text=True), now=now).why
    for body in ("牛奶很好喝".encode("gb18030"), "牛奶很好喝".encode(), b"a", b"\xef\xbb\xbfa"):
        yield decode(body, {}).why
        yield decode(b"<meta charset=gbk>" + body, {}).why


_NAMES = (
    r"--[a-z-]+|a\.cn|https?|CSV|xlsx?|Excel|File is .* zip file|UTF-?\d+|GB\w+|ASCII|JSON-LD|CSS"
    r"|HTML|Markdown|rules|main_text|true|sites|\b(?:hit|link|review|body|meta|empty|priority|name|keywords|as-list|by|utf-8|gb\w+)\b"
)


@pytest.mark.parametrize("made", [_refused, _tried])
def test_what_a_person_is_told_of_a_trial_is_told_in_chinese(made) -> None:
    """Of files of products that are refused, and of pages that rules are tried on."""
    for english in made():
        with switch_language("zh"):
            chinese = describe(english)
        left = re.sub(_NAMES, "", chinese)
        assert re.search(r"[\u4e00-\u9fff]", chinese), english
        assert not re.search(r"[A-Za-z]{2,}", left), (english, chinese)


def test_reasons_are_told_in_chinese() -> None:
    with switch_language("zh"):
        told = [describe(one) for one in _made()]
    for chinese in told:
        left = re.sub(r"\bn\d\b|[\w.-]+\.(cn|com)|\(?baidu\)?|UTC|robots", "", chinese)
        assert not re.search(r"[a-z]{2,}", left), chinese
        assert re.search(r"[\u4e00-\u9fff]", chinese), chinese
