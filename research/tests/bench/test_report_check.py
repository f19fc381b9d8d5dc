"""Every sentence of a report is counted again, and a wrong one is found."""

from __future__ import annotations

import html
import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from research.bench.quality.report import load_checker, write_report, write_reports
from research.bench.quality.report_check import Claim, count_rows, read_claims
from tasks.store.queue.upkeep import store_value
from tasks.store.sql.database import Store

PRODUCTS, REPORTS = 12, 6


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    """A store, and reports about it."""
    file = tmp_path_factory.mktemp("reports") / "r.db"
    return file, write_reports(file, PRODUCTS, REPORTS)


@pytest.fixture(scope="module")
def checker(reports):
    return load_checker(reports[0])


def test_every_sentence_and_row_is_supported(reports, checker):
    _, pages = reports
    assert [fault for page in pages for fault in checker.list_faults(page)] == []
    assert sum(len(read_claims(page)) for page in pages) > 50 * REPORTS
    assert sum(map(count_rows, pages)) > 50 * REPORTS


def _change(value):
    """Yield values that are wrong in place of this one."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        yield value + 1
    elif isinstance(value, float):
        yield value * 1.01 + 0.001
    elif isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        yield f"{value[:-1]}{(int(value[-1]) + 1) % 10}"
    elif isinstance(value, list):
        yield value[1:]
        yield [*value, "other.example"]
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from ({**value, name: wrong} for wrong in _change(one))


def test_a_wrong_figure_is_found_whichever_it_is(reports, checker):
    tried = set()
    for page in reports[1]:
        for claim in read_claims(page):
            for name, value in claim.values.items():
                if name in ("kind", "product", "from", "to"):
                    continue
                for wrong in _change(value):
                    changed = Claim({**claim.values, name: wrong}, claim.link, claim.text, claim.language)
                    assert checker.find_fault(changed), (name, wrong, claim)
                    tried.add((claim.values["kind"], name))
    assert {
        ("complaints", "complaints"),
        ("rising", "since"),
        ("rising", "expected"),
        ("all_rising", "count"),
        ("all_rising", "weeks"),
        ("left_out", "reviews"),
        ("share", "share"),
        ("not_asked", "sites"),
    } <= tried
    assert len(tried) > 25


def test_a_wrong_number_in_a_text_is_found(reports, checker):
    tried = 0
    for page in reports[1]:
        for claim in read_claims(page):
            for found in re.finditer(r"\d+", claim.text):
                text = f"{claim.text[: found.start()]}{int(found[0]) + 1}{claim.text[found.end() :]}"
                changed = Claim(claim.values, claim.link, text, claim.language)
                if claim.values["kind"] in ("complaints", "compared") and found.start() < 30:
                    continue  # the words for the period
                assert checker.find_fault(changed), (text, claim)
                tried += 1
    assert tried > 300


def test_reviews_that_an_upgrade_left_to_be_counted_are_in_no_figure(reports, tmp_path):
    file = Path(shutil.copy(reports[0], tmp_path / "half.db"))
    with closing(Store.open(f"sqlite:///{file}")) as store, store.begin() as tx:
        upto = tx.value("SELECT max(id) FROM reviews")
        for table in ("review_days", "review_themes"):
            tx.run(f"DELETE FROM {table} WHERE review_id > :after", after=upto // 2)
        store_value(tx, "counted_reviews", tx.now, {"after": upto // 2, "upto": upto})
    page = write_report(file)
    checker = load_checker(file)
    assert list(checker.list_faults(page)) == []
    (claim, *_) = [one for one in read_claims(page) if one.values["kind"] == "counted"]
    for values, text in (
        ({**claim.values, "share": claim.values["share"] + 0.01}, claim.text),
        (claim.values, claim.text.replace("50", "51")),
    ):
        assert checker.find_fault(Claim(values, claim.link, text, claim.language))
    whole = load_checker(reports[0])
    assert any(fault.startswith("complaints: ") for fault in whole.list_faults(page))


def test_a_sentence_without_figures_is_found(reports, checker):
    page = reports[1][0]
    added = page.replace("</section>", "<p>7 complaints more than ever</p></section>", 1)
    assert [fault for fault in checker.list_faults(added) if "7 complaints" in fault]


def test_reviews_that_are_gone_are_missed(reports, tmp_path):
    file, pages = reports
    other = tmp_path / "other.db"
    other.write_bytes(file.read_bytes())
    claim = next(one for one in read_claims(pages[0]) if one.values["kind"] == "theme")
    with sqlite3.connect(other) as db:
        db.execute(
            "UPDATE reviews SET themes = NULL WHERE page_id IN "
            "(SELECT page_id FROM page_products WHERE product_id = ?) AND themes LIKE ?",
            (claim.values["product"], f"%{claim.values['theme']}%"),
        )
    faults = list(load_checker(other).list_faults(pages[0]))
    assert any(fault.startswith("theme: ") for fault in faults)
    assert any("does not show it" in fault for fault in faults)
    assert html.escape(json.dumps(claim.values, ensure_ascii=False)).replace("&quot;", "&#34;") in pages[0]
