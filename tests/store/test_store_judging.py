"""Stored pages are judged again: voices, verdicts, refused texts that are taken in; interrupted, or only tried."""

from datetime import date, datetime, timedelta

import pytest
from world import CATALOG, hit, review

from splitter.spans import get_zone
from tasks.domain.pages import Review
from tasks.domain.voices import Voice, VoiceJudgement
from tasks.jobs import judging
from tasks.jobs.judging import judge, page_judge
from tasks.store.content import imports, links, products
from tasks.store.content.imports import ImportedReview, review_key
from tasks.store.content.imports import page_of as page_of_import
from tasks.store.content.products import NewProduct, ProductEdit
from tasks.store.content.reviews import VOICE
from tasks.store.queries.queues import get_totals
from tasks.store.queries.review_counts import count_reviews
from tasks.store.queries.reviews import ReviewFilter, list_reviews
from tasks.store.queue import upkeep
from tasks.store.sql.tables import page_products, reviews
from tasks.store.sql.tables import pages as page_table
from tasks.store.sql.tables import products as product_table

MILK, YOGURT = ("光明", "高钙", "牛奶"), ("蒙牛", "酸奶")
SOUR = "光明高钙牛奶有点酸"
ILL = review("x", "牛奶喝了拉肚子，客服不理")


def voice(one):
    return VoiceJudgement("complaint" if "酸" in one.body else "praise", 0.9, 0.8, -0.25, "two")


def add_voices(found, _group=None, _category=None):
    return [one._replace(voice=voice(one)) for one in found]


def save(world, words, bodies, *, name="", **page):
    """Store a product's page with these reviews, read by a version that knew no voices."""
    read = [review(str(n), body) for n, body in enumerate(bodies)]
    world.stored_page(name or "".join(words), read, words=words, refresh=timedelta(), judge=True, **page)


def judged(world, *, again=False, catalog=CATALOG, product_id=None, progress=lambda _: None, **how):
    of_page = page_judge(catalog, add_voices, "two", again=again)
    sweep = f"judge two{' all' if again else ''}{product_id or ''}"
    return judge(world.store, of_page, sweep, progress, product_id=product_id, again=again, **how)


def refused_keys(world):
    """Reasons and keys of refused records."""
    return [(row.refused, row.key) for row in world.rows(reviews, reviews.c.refused.is_not(None))]


def have_voices(world):
    return [row.voice is not None for row in world.rows(reviews)]


def change_words(world, name, words):
    again = NewProduct(name=name, keywords=words, own_keywords=words)
    world.do(products.edit, name, ProductEdit(keywords=words), again)


def test_stored_reviews_get_a_voice_and_another_one_only_when_asked(world):
    save(world, MILK, [SOUR, "不错"])
    assert have_voices(world) == [False, False]
    done = judged(world)
    assert (done.pages, done.reviews) == (1, 2)
    assert done.voices == {(None, "complaint"): 1, (None, "praise"): 1}
    first, _ = world.rows(reviews)
    assert (first.voice, first.voice_probability, first.buyer) == ("complaint", 0.9, 0.8)
    assert (first.sentiment, first.voice_model) == (-0.25, "two")
    assert judged(world).pages == 0
    for _ in range(2):  # from the beginning, each time it had ended
        assert judged(world, again=True).voices == {("complaint", "complaint"): 1, ("praise", "praise"): 1}


def test_a_text_that_is_not_judged_is_no_buyer_anywhere_and_is_not_looked_at_again(world):
    save(world, MILK, [SOUR, "It went sour", "不错"])
    untold = VoiceJudgement(None, None, None, None, "two")

    def knows_chinese(found, _group, _category):
        return [one._replace(voice=untold if one.body.isascii() else voice(one)) for one in found]

    of_page = page_judge(CATALOG, knows_chinese, "two", again=False)
    done = judge(world.store, of_page, "judge two", lambda _: None)
    assert done.voices == {(None, "complaint"): 1, (None, None): 1, (None, "praise"): 1}
    rows = {row.body: row for row in world.rows(reviews)}
    assert [getattr(rows["It went sour"], name) for name in VOICE] == list(untold)
    counted = world.look(count_reviews, ReviewFilter())
    assert counted.by_voice == {"complaint": 1, "praise": 1, "not_judged": 1}
    assert world.look(get_totals).voices == counted.by_voice
    of_voices = [world.look(count_reviews, ReviewFilter(voices=(one,))).by_voice.total() for one in Voice]
    assert sum(of_voices) == counted.total - 1
    (listed,) = [row for row in world.look(lambda tx: list(list_reviews(tx))) if row.body == "It went sour"]
    assert (listed.voice, listed.voice_probability, listed.sentiment) == (None, None, None)
    (page,) = world.look(links.list_after, 0, None, 2)
    assert {one.review.body: one.review.voice for one in page.records}["It went sour"] == untold
    assert judge(world.store, of_page, "judge two once more", lambda _: None).voices == {}


def test_a_trial_reports_what_would_change_and_changes_nothing(world):
    save(world, YOGURT, [SOUR])
    change_words(world, "蒙牛酸奶", MILK)
    before = [world.rows(table) for table in (reviews, page_products, page_table)]
    tried = judged(world, dry_run=True)
    assert [world.rows(table) for table in (reviews, page_products, page_table)] == before
    done = judged(world)
    assert tried == done
    assert done.taken_in == 1


def test_a_text_that_is_taken_in_keeps_its_day(world):
    late = datetime(2024, 1, 6, 23, 30, tzinfo=get_zone("America/New_York"))
    one = review("x", SOUR)._replace(date=late)
    world.stored_page("酸奶", [one], words=YOGURT, refresh=timedelta(), judge=True)
    change_words(world, "酸奶", MILK)
    assert judged(world).taken_in == 1
    (row,) = world.look(lambda tx: list(list_reviews(tx)))
    assert (row.published_at, row.day, row.has_clock) == (late, date(2024, 1, 6), True)


def test_refused_texts_are_taken_in_word_for_word(world):
    """The product's words have changed: now the page is about it."""
    save(world, YOGURT, [SOUR, "同感"])
    assert world.exported() == []
    change_words(world, "蒙牛酸奶", MILK)
    done = judged(world)
    assert (done.taken_in, done.taken_back, done.left_out) == (2, 2, 0)
    (change,) = done.changes
    assert (change.product, change.before, change.after) == ("蒙牛酸奶", "wrong_product", "review")
    rows = world.look(lambda tx: [(row.product, row.body, row.voice) for row in list_reviews(tx)])
    assert rows == [("蒙牛酸奶", SOUR, "complaint"), ("蒙牛酸奶", "同感", "praise")]
    row = world.rows(reviews)[0]
    assert (row.key, row.author, row.date_text, row.rating) == ("0", "小明", "2014-03-15", 1.0)
    (page,) = world.rows(page_table)
    assert (page.reviews, refused_keys(world)) == (2, [])


def test_reviews_of_another_product_are_left_out_of_exports_and_come_back(world):
    save(world, MILK, [SOUR, "同感"])
    change_words(world, "光明高钙牛奶", YOGURT)
    done = judged(world)
    assert (done.left_out, done.taken_back) == (2, 0)
    assert world.exported() == []
    assert len(world.rows(reviews)) == 2, "none is deleted"
    (link,) = world.rows(page_products)
    assert (link.verdict, link.missing) == ("wrong_product", "蒙牛 酸奶")
    change_words(world, "光明高钙牛奶", MILK)
    assert judged(world, again=True).taken_back == 2
    assert len(world.exported()) == 2


def test_what_was_no_review_is_one_by_new_rules(world):
    """The record says enough today; another is still none."""
    save(world, MILK, ["光明高钙牛奶不错"], refused=[("short", ILL), ("empty", review("y", "！"))])
    assert judged(world).taken_in == 1
    assert [body for _, body in world.exported()] == ["光明高钙牛奶不错", ILL.body]
    assert refused_keys(world) == [("empty", "y")]


def test_a_rescued_record_of_a_page_about_something_else_is_withheld(world):
    save(world, YOGURT, ["别的东西"], refused=[("short", ILL)])
    assert judged(world).taken_in == 0
    (page,) = world.rows(page_table)
    (link,) = world.rows(page_products)
    assert (page.reviews, link.verdict) == (0, "wrong_product")
    assert refused_keys(world) == [("wrong_product", "0"), ("wrong_product", "x")]
    assert world.look(links.refusals_by_reason) == {"wrong_product": 2}


def test_it_goes_on_where_it_was_interrupted(world, monkeypatch):
    monkeypatch.setattr(judging, "BATCH", 1)
    for number in range(3):
        save(world, MILK, [SOUR], url=hit(str(number)), name=str(number))

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        judged(world, progress=stop)
    assert have_voices(world) == [True, False, False]
    assert judged(world).pages == 2
    with pytest.raises(KeyboardInterrupt):
        judged(world, again=True, progress=stop)
    assert judged(world, again=True).pages == 2


def test_only_the_pages_of_one_product(world):
    save(world, MILK, [SOUR])
    save(world, YOGURT, ["蒙牛酸奶不错"], url=hit("2"))
    ids = {row.name: row.id for row in world.rows(product_table)}
    assert judged(world, product_id=ids["蒙牛酸奶"]).pages == 1
    assert have_voices(world) == [False, True]


def test_a_site_without_a_verdict_and_an_import_get_voices_alone(world):
    save(world, MILK, [SOUR])
    change_words(world, "光明高钙牛奶", YOGURT)
    assert world.add_product("自带", sites=())
    own = Review(review_key("", "", "", "很好", None), "", "很好", "", "", None, None)
    one = ImportedReview("自带", "自带", "jd.com", "", own, page_of_import("jd.com", "", "自带"))
    world.do(imports.save, "shop", [one], world.look(products.ids, ["自带"]))
    sites = {name: site.model_copy(update={"judge": False}) for name, site in CATALOG.sites.items()}
    done = judged(world, catalog=CATALOG.model_copy(update={"sites": sites}))
    assert (done.voices.total(), done.changes) == (2, [])
    assert len(world.exported()) == 2


def test_a_page_that_changed_meanwhile_is_left_as_it_is(world):
    lease, hits = world.found("光明高钙牛奶", [hit("1")], MILK)
    save(world, YOGURT, [SOUR])
    change_words(world, "蒙牛酸奶", MILK)
    of_page = page_judge(CATALOG, add_voices, "two", again=False)

    def slow(page):
        found = of_page(page)
        world.save(lease, hits.todo[0], [review("0", SOUR)], judge=True)  # fetched again for another product
        return found

    judge(world.store, slow, "judge two", lambda _: None)
    assert refused_keys(world) == [("wrong_product", "0")]
    world.judge_links()
    assert refused_keys(world) == []


def test_a_page_that_cannot_be_judged_is_logged_and_left_out(world, monkeypatch, caplog):
    def fail_once(*given):
        monkeypatch.undo()
        raise ZeroDivisionError

    urls = [hit("1"), hit("2")]
    lease, hits = world.found("甲", urls, MILK)
    for target in hits.todo:
        world.save(lease, target, [review("a", SOUR)], judge=True)
    world.found("乙", urls, MILK)
    monkeypatch.setattr(judging, "judge_for_products", fail_once)
    world.judge_links()
    verdicts = [row.verdict for row in world.rows(page_products, page_products.c.product_id == 2)]
    assert verdicts == ["wrong_product", "review"]
    assert [record.exc_info is not None for record in caplog.records] == [True]
    assert judged(world).taken_back == 1, "`judge` looks at all pages again"


def test_refused_texts_go_with_time(world):
    save(world, YOGURT, ["甲", "乙"], refused=[("empty", review("y", "！"))])
    counted = world.look(links.refusals_by_reason)
    world.now += upkeep.KEEP_DETAIL
    assert world.do(upkeep.drop_batch, upkeep.REFUSED, upkeep.KEEP_DETAIL) == 0
    world.pass_s(1)
    assert world.do(upkeep.drop_batch, upkeep.REFUSED, upkeep.KEEP_DETAIL) == 3
    assert world.do(upkeep.drop_batch, upkeep.REFUSED, upkeep.KEEP_DETAIL) == 0
    texts = {(row.title, row.body, row.author, row.date_text) for row in world.rows(reviews)}
    assert texts == {("", "", "", "")}
    assert world.look(links.refusals_by_reason) == counted == {"wrong_product": 2, "empty": 1}
    assert judged(world).taken_in == 0, "of such a page there is nothing to judge"
