"""The report that is mailed: counts, samples, escaped; no script, no outside address."""

from __future__ import annotations

import csv
import html
import io
import re
from itertools import combinations

from openpyxl import load_workbook
from sqlalchemy import update
from tiny_world import PRODUCTS

from tasks.domain.voices import Voice
from tasks.reading.copies.near_duplicates import plain, shingles, similarity_if_near
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts, reviews

NASTY = '<script>alert(1)</script><img src=http://evil.cn onerror="x"> \x1b[2J ' + "很长的评论" * 10


def written(crawled, tmp_path, *names):
    told = crawled.ask("report", *names, "-o", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert told["bytes"] == len(text.encode())
    return text


def test_the_report_tells_what_is_stored(crawled, tmp_path):
    text = written(crawled, tmp_path)
    counts = {row["name"]: row["reviews"] for row in crawled.ask("product", "list")["products"]}
    for name in PRODUCTS:
        assert re.search(rf"<td>{name}</td><td class=\"number\">{counts[name]:,}</td>", text)
    assert text.count("<svg") == 6
    assert text.count("<article>") >= len(PRODUCTS)


def test_what_strangers_wrote_stays_text(crawled, tmp_path):
    store = Store.open(crawled.url)
    with store.begin() as tx:
        tx.engine_connection.execute(
            update(reviews).values(body=NASTY, author=NASTY, title=NASTY, same_as=None)
        )
    store.close()
    text = written(crawled, tmp_path)
    assert "&lt;script&gt;alert(1)" in text
    assert "\x1b" not in text
    assert not re.search(r"<(script|img|iframe|link|object|embed|form|base)\b", text)
    markup = re.sub(r"&lt;.*?&gt;", "", text)
    assert not re.search(r"\b(src|style)\s*=", markup)
    assert all(one.startswith('"http') for one in re.findall(r"\bhref\s*=\s*(\S+)", markup))


def test_samples_differ_and_each_links_to_its_page(crawled, tmp_path):
    store = Store.open(crawled.url)
    with store.begin() as tx:
        first = tx.value("SELECT min(id) FROM reviews WHERE refused IS NULL")
        for n, voice in enumerate(Voice):
            tx.run(
                "UPDATE reviews SET voice = :voice, voice_probability = 0.9 WHERE id % 6 = :n",
                voice=voice,
                n=n,
            )
        said = tx.value("SELECT voice FROM reviews WHERE id = :id", id=first)
        tx.run("UPDATE reviews SET body = '短' WHERE voice = 'question'")
        tx.run(
            "UPDATE reviews SET body = :body || (id % 7) WHERE voice = :said",
            body="这箱牛奶结块了客服不理人要求退款很失望再也不买了",
            said=said,
        )
        voices = tx.value("SELECT count(DISTINCT voice) FROM reviews WHERE refused IS NULL")
    store.close()
    articles = re.findall(r"<article>.*?</article>", written(crawled, tmp_path), re.DOTALL)
    assert len(articles) >= voices == len(Voice)
    bodies = [html.unescape(re.search(r'class="body">(.*?)</p>', one, re.DOTALL)[1]) for one in articles]
    hashes = [frozenset(shingles(plain(body))) for body in bodies]
    near = [similarity_if_near(one, other) for one, other in combinations(hashes, 2)]
    assert set(near) == {None}
    assert len({plain(body) for body in bodies}) == len(bodies)
    assert all('<a href="http' in one for one in articles)
    assert {re.search(rf"\b({'|'.join(Voice)}) \d+%", one)[1] for one in articles} == set(Voice)


def failed_report(crawled, tmp_path, form):
    told = crawled.ask("failed", "report", "-o", tmp_path / f"failed.{form}")
    assert told["subtasks"] == crawled.ask("failed", "list")["total"] > 0
    return (tmp_path / f"failed.{form}").read_bytes()


def test_what_waits_for_a_person_in_every_format(crawled, reviewloop, tmp_path):
    groups = crawled.ask("failed", "list")["groups"]
    n = sum(row["attempts"] for group in groups for row in group["subtasks"])
    html = failed_report(crawled, tmp_path, "html").decode()
    markdown = failed_report(crawled, tmp_path, "md").decode()
    table = list(csv.DictReader(io.StringIO(failed_report(crawled, tmp_path, "csv").decode())))
    sheet = load_workbook(io.BytesIO(failed_report(crawled, tmp_path, "xlsx"))).worksheets[0]
    assert len(table) == sheet.max_row - 1 == n == markdown.count("- attempt ")
    for group in groups:
        assert group["suggestion"][:20] in html
        assert f"({group['count']})" in markdown
    wrong = reviewloop("failed", "report", "-o", tmp_path / "failed.pdf", "--db", crawled.url)
    assert wrong.exit_code == 2


def test_a_response_of_a_stranger_stays_text(crawled, tmp_path):
    store = Store.open(crawled.url)
    last = {"url": "http://x.cn/<b>", "status": 200, "error": "blocked", "detail": "", "head": NASTY}
    with store.begin() as tx:
        tx.engine_connection.execute(update(attempts).values(last_response=last))
    store.close()
    html = failed_report(crawled, tmp_path, "html").decode()
    assert "&lt;script&gt;alert(1)" in html
    assert not re.search(r"<(script|img|b)\b", html)
    markdown = failed_report(crawled, tmp_path, "md").decode()
    assert r"\<script\>" in markdown
    assert "\x1b" not in html + markdown
