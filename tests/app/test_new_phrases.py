"""Phrases of new complaints: those that become frequent are found, and nothing is if nothing changes."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from random import Random

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.stats import fisher_exact

from app.cli.main import cli
from app.insight import new_phrases, phrases
from app.insight.new_phrases import list_most_complained
from app.insight.phrases import PhraseCorpus, find_frequent, merge_phrases
from app.reports.phrases import list_new_phrases
from app.run.version import MIGRATIONS
from splitter.normalize import name_key
from tasks.store.content import counted_reviews
from tasks.store.queries.themes import Period
from tasks.store.sql import schema
from tasks.store.sql.database import Store

SINCE, UNTIL = date(2026, 9, 1), date(2026, 11, 28)
PERIOD = Period(SINCE, UNTIL)
NAME = "特仑苏纯牛奶"
PARTS = (
    "前天下单",
    "家里老人",
    "公司团建",
    "姐姐推荐",
    "看了直播",
    "路过超市",
    "孩子放学",
    "晚上九点",
    "周末聚会",
)
"""Parts of texts that show no theme."""
NEW = "拉丝状"


def draw_texts(rng, n, share=0.0):
    """Return texts, a share of which has the new phrase."""
    return [
        f"{rng.choice(PARTS)}，{rng.choice(PARTS)}{NEW if rng.random() < share else ''}" for _ in range(n)
    ]


def make_store(tmp_path, complaints):
    """Return a store with complaints: text, author, day, site and page of each."""
    store = Store.open(f"sqlite:///{tmp_path / 'r.db'}")
    schema.upgrade(store, MIGRATIONS)
    with store.begin(now=datetime(2026, 11, 28, 4, tzinfo=UTC)) as tx:
        product = (1, NAME, name_key(NAME), [], [], tx.now)
        tx.insert("products", ("id", "name", "name_key", "keywords", "aliases", "created_at"), [product])
        pages = {page: site for _, _, _, site, page in complaints}
        tx.insert(
            "pages",
            ("id", "url", "url_key", "site", "content_hash", "encoding", "node", "fetched_at"),
            [
                (page, f"http://{site}/{page}", page.to_bytes(16, "big"), site, "x", "utf-8", "n1", tx.now)
                for page, site in pages.items()
            ],
        )
        tx.insert(
            "page_products", ("page_id", "product_id", "linked_at"), [(page, 1, tx.now) for page in pages]
        )
        tx.run("UPDATE page_products SET verdict = 'review'")
        columns = (
            "page_id",
            "key",
            "title",
            "body",
            "author",
            "date_text",
            "day",
            "url",
            "site",
            "text_hash",
        )
        columns += ("collected_at", "node", "voice")
        rows = [
            (
                page,
                str(n),
                "",
                text,
                author,
                "",
                day,
                f"http://{site}/{page}",
                site,
                bytes(16),
                tx.now,
                "n1",
                "complaint",
            )
            for n, (text, author, day, site, page) in enumerate(complaints)
        ]
        tx.insert("reviews", columns, rows)
        counted_reviews.add_pages(tx, list(pages))
    return store


def draw_complaints(share, *, authors=None, pages=40, seed=3):
    """Return complaints of 600 days before the period and of the period, a share of these with the new phrase."""
    rng = Random(seed)
    found = []
    for place, text in enumerate(draw_texts(rng, 400)):
        found.append(
            (text, f"u{place}", SINCE - timedelta(days=1 + rng.randrange(600)), "a.cn", 1 + place % 40)
        )
    for place, text in enumerate(draw_texts(rng, 80, share)):
        day = SINCE + timedelta(days=rng.randrange(80))
        author = f"n{place}" if authors is None else f"n{place % authors}"
        found.append((text, author, day, "a.cn", 100 + place % pages))
    return found


def read(store):
    with store.read() as tx:
        return list_new_phrases(tx, [NAME], PERIOD)


def test_a_phrase_that_becomes_frequent_is_found_with_its_quotes(tmp_path):
    complaints = draw_complaints(0.12)
    with closing(make_store(tmp_path, complaints)) as store:
        view = read(store)
    (row,) = view.phrases
    assert row.phrase == NEW
    assert row.complaints == sum(NEW in text for text, *_ in complaints)
    assert (row.before, row.expected) == (0, 0)
    assert all(NEW in quote.text for quote in row.quotes)
    assert (view.read, view.complaints, view.read_before, view.complaints_before) == (80, 80, 400, 400)


@pytest.mark.parametrize("given", [{"authors": 2}, {"pages": 1}])
def test_few_people_and_one_page_make_no_phrase(tmp_path, given):
    with closing(make_store(tmp_path, draw_complaints(0.12, **given))) as store:
        assert not read(store).phrases


@pytest.mark.parametrize("author", ["", "匿名用户", "j***n", "用户123", "n1"])
def test_names_that_identify_no_person_are_several_people(tmp_path, author):
    complaints = [
        (text, author if day >= SINCE else name, day, site, page)
        for text, name, day, site, page in draw_complaints(0.12)
    ]
    with closing(make_store(tmp_path, complaints)) as store:
        found = [row.phrase for row in read(store).phrases]
    assert found == ([] if author == "n1" else [NEW])


@pytest.mark.parametrize("since", [date.min, date(1969, 12, 31), date(1970, 1, 1), date(1980, 1, 1)])
def test_no_complaint_is_older_than_a_period_of_all_days(tmp_path, since):
    with closing(make_store(tmp_path, draw_complaints(0.12))) as store, store.read() as tx:
        view = list_new_phrases(tx, [NAME], Period(since, UNTIL))
    assert (view.since, view.complaints, view.complaints_before, list(view.phrases)) == (since, 480, 0, [])


def test_the_product_own_words_brands_days_and_clauses_with_a_theme_are_left_out(tmp_path):
    complaints = draw_complaints(0)
    worn = iter(["，特仑苏", "，海尔", "，喝出黑色颗粒", "，9月19日"] * 8)
    complaints = [
        (text + next(worn, "") if day >= SINCE else text, author, day, site, page)
        for text, author, day, site, page in complaints
    ]
    with closing(make_store(tmp_path, complaints)) as store:
        assert not read(store).phrases


def test_a_phrase_of_a_site_that_is_crawled_more_is_not_new(tmp_path):
    rng = Random(5)
    complaints = []
    for place in range(600):
        is_new = place >= 400
        at_b = rng.random() < (0.8 if is_new else 0.1)
        day = SINCE + timedelta(days=rng.randrange(-500, 0) if not is_new else rng.randrange(80))
        text = f"{rng.choice(PARTS)}{NEW if at_b and rng.random() < 0.5 else ''}"
        complaints.append((text, f"u{place}", day, "b.cn" if at_b else "a.cn", 1 + place % 2 + 2 * at_b))
    with closing(make_store(tmp_path, complaints)) as store:
        assert not read(store).phrases


def test_a_sample_of_many_complaints_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(new_phrases, "MOST_NEW", 60)
    monkeypatch.setattr(new_phrases, "MOST_BEFORE", 200)
    with closing(make_store(tmp_path, draw_complaints(0.3))) as store:
        first, second = read(store), read(store)
    assert first == second
    assert (first.read, first.complaints, first.read_before, first.complaints_before) == (60, 80, 200, 400)
    assert [row.phrase for row in first.phrases] == [NEW]


def test_sites_with_complaints_in_one_period_only_are_not_compared(tmp_path):
    complaints = [
        (*one[:3], "new.cn" if one[2] >= SINCE else "old.cn", one[4]) for one in draw_complaints(0.2)
    ]
    with closing(make_store(tmp_path, complaints)) as store:
        view = read(store)
    assert (view.phrases, view.sites_left_out) == ([], ["new.cn", "old.cn"])


def test_products_with_complaints_are_chosen(tmp_path):
    with closing(make_store(tmp_path, draw_complaints(0))) as store, store.read() as tx:
        assert list_most_complained(tx, PERIOD) == [NAME]
        assert list_most_complained(tx, Period(UNTIL + timedelta(days=1), UNTIL + timedelta(days=9))) == []


def make_corpus(texts, is_new, sites):
    """Return a corpus of texts, each of its own person."""
    joined = " ".join(texts)
    codes = np.array([0 if one in " ，" else ord(one) for one in joined], np.uint32)
    people = np.repeat(np.arange(len(texts)), [len(text) + 1 for text in texts])[:-1]
    return PhraseCorpus(codes, people, np.array(is_new), np.array(sites))


def test_with_one_site_the_test_is_fisher_exact_one():
    texts = ["拉丝状了"] * 9 + ["别的东西"] * 41 + ["拉丝状了"] * 4 + ["别的东西"] * 196
    is_new = [True] * 50 + [False] * 200
    (found,) = merge_phrases(
        make_corpus(texts, is_new, [0] * 250), find_frequent(make_corpus(texts, is_new, [0] * 250))
    )
    assert found.p_value == pytest.approx(fisher_exact([[9, 41], [4, 196]], alternative="greater").pvalue)
    assert (found.people, found.before, found.expected) == (9, 4, 1.0)
    assert found.length == 3


def test_nothing_is_found_if_nothing_changes():
    """Of 200 periods without a change, few have a phrase: the procedure allows 5 %."""
    rng = Random(11)
    found = Counter(
        len(find_frequent(make_corpus(draw_texts(rng, 150, 0.1), [True] * 50 + [False] * 100, [0] * 150))) > 0
        for _ in range(200)
    )
    assert found[True] <= 10


def test_the_chance_at_several_sites_is_that_of_drawing():
    rng = np.random.default_rng(2)
    totals, earlier = np.array([20.0, 50.0]), np.array([60.0, 30.0])
    drawn = rng.hypergeometric(20, 60, 6, 20_000) + rng.hypergeometric(50, 30, 5, 20_000)
    chance = phrases._p_value(np.array([3.0, 4.0]), np.array([3.0, 1.0]), totals, earlier)
    assert chance == pytest.approx((drawn >= 7).mean(), abs=0.01)


@pytest.fixture
def shell(tmp_path, monkeypatch):
    make_store(tmp_path, draw_complaints(0.12)).close()
    monkeypatch.chdir(tmp_path)
    database = f"sqlite:///{tmp_path / 'r.db'}"
    return lambda *words: CliRunner().invoke(cli, [*words, "--db", database])


def test_a_phrase_is_listed_and_adopted_and_then_covered(shell, tmp_path):
    period = ("--from", f"{SINCE}", "--to", f"{UNTIL}")
    listed = shell("insight", "new", NAME, *period)
    assert listed.exit_code == 0, listed.output
    assert NEW in listed.output
    adopted = shell(
        "insight", "adopt", NEW, "--new-theme", "texture", "--zh", "质地", "--en", "Texture", "--json"
    )
    assert adopted.exit_code == 0, adopted.output
    assert json.loads(adopted.stdout) == {
        "theme": "texture",
        "term": NEW,
        "category": "goods",
        "file": "themes.yaml",
    }
    assert "texture" in (tmp_path / "themes.yaml").read_text("utf-8")
    again = json.loads(shell("insight", "new", "--json", *period).stdout)
    assert again["phrases"] == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("adopt", NEW), "--new-theme ID"),
        (("adopt", NEW, "--theme", "a", "--new-theme", "b"), "--new-theme ID"),
        (("adopt", NEW, "--new-theme", "b"), "names in Chinese"),
        (("adopt", NEW, "--theme", "nothing"), "there is no theme"),
        (("adopt", NEW, "--theme", "防晒", "--category", "goods"), "there is no theme"),
        (("adopt", NEW, "--theme", "油耗", "--category", "goods"), "goods has no theme"),
        (("adopt", "颗粒..", "--theme", "异物"), "empty part"),
        (("new", NAME, "--from", "2026-12-01", "--to", "2026-11-01"), "before the first"),
        (("new", NAME, "--days", "all"), "--days 90"),
        (("new", "别的产品"), "别的产品"),
    ],
)
def test_wrong_words_say_what_would_be_right(shell, tmp_path, words, message):
    result = shell("insight", *words)
    assert result.exit_code == 2
    assert message in result.output
    assert not (tmp_path / "themes.yaml").exists()
