"""Logs of every process: as lines of text, or of JSON with subtask and attempt."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from datetime import UTC, datetime

from app.files.harmless import HarmlessFormatter, shown


class JsonFormatter(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """As JSON: time, level, logger, message; subtask and attempt where it is about one; the traceback."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": shown(record.getMessage()),
            **{name: getattr(record, name) for name in ("subtask", "attempt") if hasattr(record, name)},
        }
        if record.exc_info:
            fields["traceback"] = shown(self.formatException(record.exc_info))
        return json.dumps(fields, ensure_ascii=False)


def warnings_as_json() -> None:
    """Write Python's warnings as lines of JSON to standard error: some come before there are handlers of logs."""
    form = JsonFormatter()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: object,
        **__: object,
    ) -> None:
        said = f"{category.__name__}: {' '.join(str(message).split())}"
        record = logging.LogRecord("py.warnings", logging.WARNING, filename, lineno, said, None, None)
        print(form.format(record), file=sys.stderr, flush=True)

    warnings.showwarning = show


def format_worker_log(logger: logging.Logger, form: str, level: str, log_format: str) -> None:
    """Give the handlers of a Celery process's logger the settings' format; with the level info, our loggers tell more.

    Args:
        form: Celery's format, for text.
        level, log_format: the settings.
    """
    for handler in logger.handlers:
        handler.setFormatter(JsonFormatter() if log_format == "json" else HarmlessFormatter(form))
    if level == "info":
        logging.getLogger("reviewloop").setLevel(logging.INFO)
