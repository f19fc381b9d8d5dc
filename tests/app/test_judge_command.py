"""`reviewloop judge`, and what a crawl says of voices at once: in its end, exports, `status` and for Python."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

import pytest
from tiny_world import PRODUCTS

from app.api import reviews
from app.cli.inspect import judge
from splitter.errors import InputError
from tasks.domain.voices import Voice
from tasks.jobs import judging
from tasks.store.sql.database import Store

UNTOLD = "UPDATE reviews SET voice = NULL, voice_probability = NULL, buyer = NULL, sentiment = NULL, voice_model = NULL"


def of_an_older_version(crawled):
    """The store as a version without voices left it."""
    store = Store.open(crawled.url)
    with store.begin() as tx:
        tx.engine_connection.exec_driver_sql(UNTOLD)
    store.close()


def test_a_crawl_judges_what_it_stores(crawled, reviewloop):
    rows = list(reviews(crawled.url))
    assert all(row["voice"] in tuple(Voice) and 0 < row["voice_probability"] <= 1 for row in rows)
    assert all(-1 <= row["sentiment"] <= 1 for row in rows)
    told = crawled.ask("status")["voices"]
    assert told == crawled.printed["voices"]
    assert sum(told.values()) == crawled.printed["reviews"]
    assert "Voices    " in reviewloop("status", "--db", crawled.url).stdout


def test_one_voice_or_some_are_exported(crawled, reviewloop, tmp_path):
    def count(*options):
        return crawled.ask("export", "reviews", "-o", tmp_path / "some.csv", *options)["rows"]

    of = Counter(row["voice"] for row in reviews(crawled.url))
    both = count("--voice", "complaint, praise")
    assert (
        both
        == of["complaint"] + of["praise"]
        == len(list(reviews(crawled.url, voices=["complaint", "praise"])))
    )
    assert count("--voice", ",".join(Voice)) == of.total()
    wrong = reviewloop("export", "reviews", "--voice", "complaint,shout", "--db", crawled.url)
    assert wrong.exit_code == 2
    assert "'shout' is no voice; the voices are complaint, praise" in wrong.stderr
    with pytest.raises(InputError):
        list(reviews(crawled.url, voices=["shout"]))


@pytest.mark.parametrize(
    "command", [("judge",), ("product", "remove", PRODUCTS[1], "--delete-reviews", "--yes")]
)
def test_a_link_without_a_verdict_is_judged_without_a_runner(crawled, command):
    crawled.ask("judge")  # which then has looked at all pages
    store = Store.open(crawled.url)
    with closing(store), store.begin() as tx:
        assert tx.run("UPDATE page_products SET verdict = 'unjudged' WHERE product_id = 1")
    crawled.ask(*command)
    with closing(store), store.read() as tx:
        assert tx.value("SELECT count(*) FROM page_products WHERE verdict = 'unjudged'") == 0


def test_an_older_store_is_judged(crawled, reviewloop):
    of_an_older_version(crawled)
    n = crawled.printed["reviews"]
    assert crawled.ask("status")["voices"] == {"not_judged": n}
    tried = crawled.ask("judge", "--dry-run")
    done = crawled.ask("judge")
    assert crawled.ask("status")["voices"] == crawled.printed["voices"]
    assert (done["reviews"], done["ended"], done["changes"]) == (n, True, [])
    assert {**tried, "dry_run": False} == done
    assert crawled.ask("judge")["pages"] == 0
    assert crawled.ask("verify")["violations"] == []


def test_ctrl_c_ends_it_and_the_next_one_goes_on(crawled, reviewloop, monkeypatch):
    of_an_older_version(crawled)
    monkeypatch.setattr(judging, "BATCH", 2)

    def interrupted(text, *_):
        if "pages" in text:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(judge, "say", interrupted)
        ended = reviewloop("judge", "--db", crawled.url)
    assert ended.exit_code == 1
    assert "of 2 pages" in ended.stdout
    first = crawled.printed["pages"] - 2
    assert crawled.ask("judge")["pages"] == first


_EARLIER = """
    UPDATE reviews SET published_at = '2001-02-03 04:05:06.000000', day = '2001-02-03' WHERE date_text <> ''
"""


def test_stored_dates_are_read_again(crawled, reviewloop):
    store = Store.open(crawled.url)
    with closing(store), store.begin() as tx:
        wrong = tx.run(_EARLIER)
    tried = crawled.ask("judge", "--dates", "--dry-run")
    assert (tried["moved"] + tried["lost"], tried["found"], tried["ended"]) == (wrong, 0, True)
    shown = reviewloop("judge", "--dates", "--dry-run", "--db", crawled.url).stdout
    assert "2001-02-03 -> " in shown
    assert {**crawled.ask("judge", "--dates"), "dry_run": True} == tried
    assert "Nothing to do" in reviewloop("judge", "--dates", "--db", crawled.url).stdout
    assert crawled.ask("verify")["violations"] == []


def test_reading_dates_is_interrupted_and_goes_on(crawled, reviewloop, monkeypatch):
    monkeypatch.setattr(judging, "BATCH", 2)

    def interrupted(text, *_):
        if "pages" in text:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(judge, "say", interrupted)
        assert reviewloop("judge", "--dates", "--db", crawled.url).exit_code == 1
    assert crawled.ask("judge", "--dates")["pages"] == crawled.printed["pages"] - 2


def test_dates_are_all_read_each_time(crawled, reviewloop):
    wrong = reviewloop("judge", "--dates", "--all", "--db", crawled.url)
    assert wrong.exit_code == 2
    assert "leave --all away" in wrong.stderr
