"""Logs of every process: the settings, what comes before a command, and a Celery process's handlers."""

from __future__ import annotations

import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest

from app.run.process import format_worker_log, warnings_as_json


@pytest.fixture
def level() -> Iterator[None]:
    """Our loggers' level is put back."""
    before = logging.getLogger("reviewloop").level
    yield
    logging.getLogger("reviewloop").setLevel(before)


def worker_log(level: str, log_format: str) -> str:
    """What a Celery process with these settings writes about an attempt."""
    out = io.StringIO()
    logger = logging.Logger("root of a worker", logging.WARNING)
    logger.addHandler(logging.StreamHandler(out))
    format_worker_log(logger, "[%(levelname)s] %(message)s", level, log_format)
    ours = logging.getLogger("reviewloop.worker")
    record = ours.makeRecord(
        ours.name, logging.INFO, __file__, 1, "ended\x1b[2J", (), None, extra={"subtask": 12, "attempt": 31}
    )
    if ours.isEnabledFor(record.levelno):
        logger.handlers[0].handle(record)
    return out.getvalue()


@pytest.mark.usefixtures("level")
def test_a_worker_logs_as_its_settings_say() -> None:
    assert worker_log("warning", "json") == ""
    assert worker_log("info", "text") == "[INFO] ended\N{REPLACEMENT CHARACTER}[2J\n"
    told = json.loads(worker_log("info", "json"))
    assert (told["subtask"], told["attempt"], told["level"]) == (12, 31, "info")


def test_a_warning_of_python_is_a_line_of_json_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # put back at the end
    warnings_as_json()
    warnings.showwarning("run as root:\nnot recommended", UserWarning, "worker.py", 3)
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["level"], told["message"]) == ("warning", "UserWarning: run as root: not recommended")
