"""The log of requests: what stands in a line, that it is bounded and private, and that a full disk ends nothing."""

from __future__ import annotations

import errno
import json
import logging
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tasks.worker import request_log
from tasks.worker.request_log import RequestLog, RequestRecord, hide_secrets

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def sent(**named: Any) -> RequestRecord:
    usual = {
        "at": NOW,
        "node": "node1",
        "site": "cca.org.cn",
        "host": "cca.org.cn",
        "url": "http://cca.org.cn/1",
        "status": 200,
        "size": 1000,
        "seconds": 0.25,
        "error": "",
        "subtask": 3,
        "attempt": 7,
    }
    return RequestRecord(**{**usual, **named})


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_request_is_a_line_that_says_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    log = RequestLog(path)
    log.note(sent(url="http://me:pw@cca.org.cn/搜?q=光明&token=abc#top"))
    log.note(sent(status=0, size=0, error="timeout", subtask=0, attempt=0))
    log.close()
    assert lines(path) == [
        {
            "time": "2026-01-01T12:00:00.000+00:00",
            "node": "node1",
            "site": "cca.org.cn",
            "host": "cca.org.cn",
            "url": "http://cca.org.cn/搜?q=光明&token=***",
            "status": 200,
            "bytes": 1000,
            "seconds": 0.25,
            "outcome": "ok",
            "subtask": 3,
            "attempt": 7,
        },
        {
            **dict.fromkeys(("status", "subtask", "attempt")),
            "time": "2026-01-01T12:00:00.000+00:00",
            "node": "node1",
            "site": "cca.org.cn",
            "host": "cca.org.cn",
            "url": "http://cca.org.cn/1",
            "bytes": 0,
            "seconds": 0.25,
            "outcome": "timeout",
        },
    ]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("url", "logged"),
    [
        ("http://a.cn/?keyword=牛奶&key=x&sign=1&page=2", "http://a.cn/?keyword=牛奶&key=x&sign=***&page=2"),
        ("http://u:p@a.cn:8080/x?Access_Token=1", "http://a.cn:8080/x?Access_Token=***"),
        ("http://a.cn/x?flag&password=", "http://a.cn/x?flag&password=***"),
        ("http://a.cn/x", "http://a.cn/x"),
    ],
)
def test_what_is_secret_in_an_address_is_left_out(url: str, logged: str) -> None:
    assert hide_secrets(url) == logged


def test_a_file_that_is_full_is_kept_once_and_a_new_one_begun(tmp_path: Path) -> None:
    path = tmp_path / "requests.jsonl"
    log = RequestLog(path, most_bytes=1000)
    for n in range(40):
        log.note(sent(attempt=n + 1))
        log.flush()
    log.close()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["requests.jsonl", "requests.jsonl.1"]
    assert all(one.stat().st_size < 1500 for one in tmp_path.iterdir())
    assert lines(path)[-1]["attempt"] == 40


def test_a_full_disk_is_told_once_and_nothing_stands_there_in_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    path = tmp_path / "requests.jsonl"
    # Its thread sleeps; the test writes in its place.
    monkeypatch.setattr(request_log, "_EVERY_S", 3600.0)
    log = RequestLog(path)
    log.note(sent(attempt=1))
    log.flush()
    real = os.write

    def full(file: int, data: bytes) -> int:
        if len(data) > 10:
            return real(file, data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(
            os, "write", lambda file, data: full(file, data[:15]) if len(data) > 15 else full(file, data[:5])
        )
        for n in (2, 3):
            log.note(sent(attempt=n))
            log.flush()
    log.note(sent(attempt=4))
    log.flush()
    log.close()
    assert [line["attempt"] for line in lines(path)] == [1, 4]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert "No space left on device; crawling goes on" in told[0]
    assert "2 lines are missing" in told[1]


def test_lines_that_nobody_writes_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_log, "_EVERY_S", 3600.0)
    monkeypatch.setattr(request_log, "MOST_QUEUED", 5)
    log = RequestLog(tmp_path / "requests.jsonl")
    for _ in range(9):
        log.note(sent())
    log.close()
    assert len(lines(tmp_path / "requests.jsonl")) == 5
