"""`reviewloop schedule`: rules for products, reports and exports; run, paused, resumed, removed; failures told."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from openpyxl import load_workbook
from sqlalchemy import update
from tiny_world import PRODUCTS

from app.reports import scheduled_files
from app.reports.scheduled_files import deliver_due
from app.run.settings import load_settings
from app.run.sweep_wiring import delivery_tools
from tasks.store.queue import notices
from tasks.store.sql.database import Store
from tasks.store.sql.tables import schedules

FIRST, SECOND = PRODUCTS[:2]


def listed(crawled):
    return crawled.ask("schedule", "list")["schedules"]


def test_a_product_gets_a_rule_and_keeps_its_number(crawled, reviewloop):
    [one] = crawled.ask("schedule", "set", FIRST, "--every", "7d")["schedules"]
    assert (one["number"], one["product"], one["every_s"], one["state"]) == (1, FIRST, 604800, "on")
    [one] = crawled.ask("schedule", "set", FIRST, "--cron", "0 8 * * 1")["schedules"]
    assert (one["product"], one["cron"], one["zone"], one["every_s"]) == (
        FIRST, "0 8 * * 1", "Asia/Shanghai", None,
    )  # fmt: skip
    assert one["next_at"].endswith("T00:00:00+00:00")
    [row] = [row for row in crawled.ask("product", "list")["products"] if row["name"] == FIRST]
    assert (row["recrawl_every_s"], row["recrawl_cron"]) == (None, "0 8 * * 1")
    crawled.ask("product", "edit", FIRST, "--recrawl", "never")
    assert listed(crawled) == []


def test_pause_resume_run_and_remove(crawled):
    crawled.ask("schedule", "set", FIRST, "--every", "7d")
    [paused] = crawled.ask("schedule", "pause", FIRST)["schedules"]
    assert (paused["state"], paused["next_at"]) == ("paused", None)
    [run] = crawled.ask("schedule", "run", "1")["schedules"]
    assert (run["state"], run["next_at"]) == ("paused", None)
    assert run["last_at"] is not None
    [on] = crawled.ask("schedule", "resume", FIRST)["schedules"]
    assert (on["state"], on["last_at"]) == ("on", run["last_at"])
    assert crawled.ask("schedule", "remove", FIRST) == {"removed": [1]}
    assert listed(crawled) == []
    store = Store.open(crawled.url)
    with store.read() as tx:
        done = [(row.action, row.subject) for row in notices.list_audit_rows(tx, most=9)]
    store.close()
    words = ["remove", "resume", "run", "pause", "set"]
    assert done[:5] == [(f"{word} schedule", f"1: {FIRST}") for word in words]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", FIRST), "either --every 7d or --cron"),
        (("set", FIRST, "--every", "7d", "--cron", "0 8 * * *"), "either --every 7d or --cron"),
        (("set", FIRST, "--cron", "0 8 * *"), "has 4 fields instead of 5"),
        (("set", FIRST, "--cron", "0 0 30 2 *"), "never comes"),
        (("set", FIRST, "nobody", "--every", "7d"), "no product 'nobody'"),
        (("set", "1", "--every", "7d"), "no product '1'"),
        (("pause", "7"), "no schedule '7'"),
        (("add", "report", "--every", "1d"), "write mailto:"),
        (("add", "report", "--every", "1d", "--to", "file:x", "--format", "xlsx"), "possible: html"),
        (("add", "export", "--every", "1d", "--to", "file:x", "--format", "md"), "possible: csv"),
        (("add", "export", "--every", "1d", "--to", "file:x", "--product", "nobody"), "nobody"),
        (("add", "failed-report", "--every", "1d", "--to", "file:x", "--product", FIRST), "all products"),
        (("add", "recrawl", "--every", "1d", "--to", "file:x"), "has no to"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_and_nothing_is_set(crawled, reviewloop, words, said):
    result = reviewloop("schedule", *words, "--db", crawled.url)
    assert result.exit_code == 2
    assert said in result.stderr
    assert listed(crawled) == []


def test_files_are_made_in_a_folder(crawled, tmp_path):
    folder = tmp_path / "made"
    to = ("--to", f"file:{folder}", "--every", "1d")
    crawled.ask("schedule", "add", "report", *to)
    crawled.ask("schedule", "add", "failed-report", *to, "--format", "md")
    crawled.ask("schedule", "add", "export", *to, "--format", "xlsx", "--product", FIRST)
    rows = crawled.ask("schedule", "run", "1", "2", "3")["schedules"]
    assert [(row["state"], row["problem"]) for row in rows] == [("on", None)] * 3
    report, failed, export = (
        next(folder.glob(f"{name}-?-*")) for name in ("report", "failed-report", "export")
    )
    assert FIRST in report.read_text("utf-8")
    assert failed.read_text("utf-8").startswith("# 2 subtasks wait for a person")
    sheet = load_workbook(export, read_only=True).active
    assert {row[0] for row in sheet.iter_rows(min_row=2, min_col=3, max_col=3, values_only=True)} == {FIRST}


def test_a_file_and_its_mail_are_in_the_language_of_the_schedule(crawled, reviewloop, monkeypatch):
    sent = []
    monkeypatch.setattr(
        scheduled_files,
        "send",
        lambda parcel, *_, **__: sent.append((parcel, parcel.path.read_text("utf-8"))),
    )
    for kind in ("report", "failed-report"):
        wanted = ("schedule", "add", kind, "--every", "1d", "--to", "mailto:boss@example.cn")
        assert reviewloop("--lang", "zh", *wanted, "--db", crawled.url).exit_code == 0
    assert reviewloop("schedule", "run", "1", "2", "--db", crawled.url).exit_code == 0
    assert len(sent) == 2
    for parcel, page in sent:
        written = f"{parcel.subject}\n{parcel.text}".replace("Asia/Shanghai", "")
        assert not re.search("[A-Za-z]{2,}", written)
        assert '<html lang="zh-CN">' in page


def test_a_failure_is_told_and_tried_again(crawled, reviewloop):
    to = ("--to", "mailto:boss@example.cn", "--db", crawled.url)
    assert "REVIEWLOOP_SMTP_URL" in reviewloop("schedule", "add", "report", "--every", "1d", *to).stderr
    result = reviewloop("schedule", "run", "1", "--db", crawled.url)
    assert result.exit_code == 1
    [row] = listed(crawled)
    assert row["state"] == "failed 1 of 5"
    assert "REVIEWLOOP_SMTP_URL" in row["problem"]
    shown = reviewloop("schedule", "list", "--db", crawled.url).stdout
    assert "failed 1 of 5" in shown
    assert "no mail server is set" in shown


def test_a_runner_does_what_was_missed_once_and_goes_on_where_one_fails(crawled, tmp_path):
    """Two runners look one after the other: each schedule is made by one of them."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    for to in (f"file:{blocked}", f"file:{tmp_path / 'made'}"):
        crawled.ask("schedule", "add", "report", "--every", "1d", "--to", to)
    store = Store.open(crawled.url)

    def write(operation):
        with store.begin() as tx:
            return operation(tx)

    tools = delivery_tools(load_settings({}, database_url=crawled.url))
    assert deliver_due(tools, store, write) == [], "not yet due"
    write(
        lambda tx: tx.engine_connection.execute(update(schedules).values(next_at=tx.now - timedelta(days=9)))
    )
    (first, problem), (second, none) = deliver_due(tools, store, write)
    assert (first.id, second.id, none) == (1, 2, "")
    assert "blocked" in problem
    assert deliver_due(tools, store, write) == []
    assert len(list((tmp_path / "made").iterdir())) == 1
    store.close()
    states = {row["number"]: row["state"] for row in listed(crawled)}
    assert states == {1: "failed 1 of 5", 2: "on"}


def test_no_secret_of_a_webhook_is_shown(crawled, reviewloop):
    to = "https://hooks.example.cn/T0KEN?key=T0KEN"
    added = reviewloop("schedule", "add", "report", "--every", "1d", "--to", to, "--db", crawled.url)
    shown = added.stdout + json.dumps(listed(crawled))
    assert "https://hooks.example.cn/..." in shown
    assert "T0KEN" not in shown
