"""The report that is mailed: findings, quotes, escaped; no script, no outside address."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from itertools import combinations

import pytest
from openpyxl import load_workbook
from sqlalchemy import update
from tiny_world import PRODUCTS

from tasks.reading.copies.near_duplicates import plain, shingles, similarity_if_near
from tasks.store.content import counted_reviews
from tasks.store.sql.database import Store
from tasks.store.sql.tables import attempts

NASTY = '<script>alert(1)</script><img src=http://evil.cn onerror="x"> \x1b[2J ' + "很长的评论" * 10


def written(crawled, tmp_path, *names):
    told = crawled.ask("report", *names, "--days", "all", "-o", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    assert told["bytes"] == len(text.encode())
    return text


def test_the_report_tells_what_is_stored(crawled, tmp_path):
    text = written(crawled, tmp_path)
    counts = {row["name"]: row["reviews"] for row in crawled.ask("product", "list")["products"]}
    for name in PRODUCTS:
        assert re.search(rf"<td>{name}</td><td class=\"number\">{counts[name]:,}</td>", text)
        assert f">{name}</a></h2>" in text
    assert '<html lang="en">' in text


def test_the_report_has_its_period_and_language(crawled, tmp_path, reviewloop):
    file = tmp_path / "r.html"
    given = ("report", PRODUCTS[0], "-o", file, "--db", crawled.url)
    assert reviewloop("--lang", "zh", *given, "--from", "2014-01-01", "--to", "2014-03-31").exit_code == 0
    text = file.read_text("utf-8")
    assert '<html lang="zh-CN">' in text
    assert "2014-01-01" in text
    assert PRODUCTS[1] not in text
    for claim in re.findall(r'data-claim="(.*?)"', text):
        chosen = json.loads(html.unescape(claim))
        assert (chosen["from"], chosen["to"]) == ("2014-01-01", "2014-03-31")
    for wrong in (("--days", "many"), ("--from", "2014-02-01", "--to", "2014-01-01"), ("没有",)):
        file.unlink(missing_ok=True)
        assert reviewloop("report", "-o", file, "--db", crawled.url, *wrong).exit_code == 2
        assert not file.exists()


def test_what_strangers_wrote_stays_text(crawled, tmp_path):
    store = Store.open(crawled.url)
    with store.begin() as tx:
        numbers = [number for (number,) in tx.rows("SELECT id FROM reviews WHERE refused IS NULL")]
        values = {"body": NASTY, "author": NASTY, "title": NASTY, "site": NASTY, "same_as": None}
        values |= {"voice": "complaint", "themes": [["foreign_matter", -1, 0, len(NASTY)]]}
        with counted_reviews.recount(tx, reviews=numbers):
            tx.update("reviews", ("id",), [{"id": number, **values} for number in numbers])
    store.close()
    text = written(crawled, tmp_path)
    assert "&lt;script&gt;alert(1)" in text
    assert "\x1b" not in text
    assert not re.search(r"<(script|img|iframe|link|object|embed|form|base)\b", text)
    markup = re.sub(r"&lt;.*?&gt;", "", text)
    assert not re.search(r"\b(src|style)\s*=", markup)
    assert all(one.startswith(('"http', '"#')) for one in re.findall(r"\bhref\s*=\s*(\S+)", markup))


@pytest.fixture
def complaints(crawled):
    """Three reviews of one product as complaints about one theme, two of them nearly equal."""
    bodies = [f"这箱牛奶结块了客服不理人要求退款很失望再也不买了{n}" for n in "一二"] + [
        "喝到一半发现有黑色颗粒"
    ]
    store = Store.open(crawled.url)
    with store.begin() as tx:
        (product, name), *_ = tx.rows("SELECT id, name FROM products ORDER BY id")
        numbers = [number for (number,) in tx.rows(_OF_PRODUCT, product=product)]
        for number, body in zip(numbers, bodies, strict=True):
            themes = [["foreign_matter", -1, 0, len(body)]]
            with counted_reviews.recount(tx, reviews=[number]):
                values = {"id": number, "body": body, "voice": "complaint", "themes": themes, "same_as": None}
                tx.update("reviews", ("id",), [values])
    store.close()
    return name, bodies, numbers


_OF_PRODUCT = """
    SELECT r.id FROM reviews r JOIN page_products l ON l.page_id = r.page_id AND l.verdict = 'review'
    WHERE l.product_id = :product AND r.refused IS NULL ORDER BY r.id DESC LIMIT 3
"""


def test_quotes_differ_and_each_links_to_its_page(crawled, tmp_path, complaints):
    name, bodies, _ = complaints
    crawled.ask("report", name, "--days", "all", "-o", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    row = re.search(r'Foreign matter</th>.*?(<tr class="quotes">.*?</tr>)', text, re.DOTALL)[1]
    quotes = [html.unescape(one) for one in re.findall(r"<q>(.*?)</q>", row)]
    assert len(set(quotes) & set(bodies[:2])) == 1
    assert bodies[2] in quotes
    hashes = [frozenset(shingles(plain(quote))) for quote in quotes]
    assert {similarity_if_near(one, other) for one, other in combinations(hashes, 2)} == {None}
    assert row.count('<a href="http') == len(quotes)
    rows = text[text.index('class="rows"') :]
    assert all(body in rows for body in bodies)


@pytest.mark.parametrize("address", ["", "https://example.com/reviews/"])
def test_sentences_link_to_their_rows(crawled, tmp_path, complaints, monkeypatch, address):
    monkeypatch.setenv("REVIEWLOOP_WEB_ADDRESS", address)
    name, _, numbers = complaints
    crawled.ask("report", name, "--days", "all", "-o", tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text("utf-8")
    links = re.findall(r'<span class="claim" data-claim="[^"]*"><a href="(.*?)">', text)
    assert links
    if address:
        assert all(link.startswith("https://example.com/reviews/products/") for link in links)
        assert any(link.endswith("days=all&amp;theme=foreign_matter") for link in links)
        assert f'href="https://example.com/reviews/reviews/{numbers[0]}"' in text
    else:
        assert {link.removeprefix("#") for link in links} <= set(re.findall(r'id="(.*?)"', text))


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
