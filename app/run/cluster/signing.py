"""Sign the messages of a cluster, and let workers accept only signed messages.

The header `signature` has an HMAC-SHA256 over the task, its id, start and expiry, the queue, and the arguments as
canonical JSON. Someone who can write to Redis without knowing the key can't start a task. A message can be sent again
(a replay). It is then a repeated or late notification, which is harmless because of the leases in the database.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping
from typing import Any

from celery import Task
from celery.signals import before_task_publish
from kombu.utils.json import dumps

log = logging.getLogger("reviewloop.messages")

_HEADER = "signature"
_SIGNED = ("task", "id", "eta", "expires")
_PURPOSE = b"reviewloop: messages of the cluster"
_NAME_CHARS = 80


def signing_key(secret: str) -> bytes:
    """Return the key for signing messages, derived from the cluster's secret. The secret also has other uses."""
    return hmac.digest(secret.encode(), _PURPOSE, "sha256")


def signature(key: bytes, headers: Mapping[str, Any], queue: str, body: Any) -> str:
    """Return the signature of a message.

    Args:
        headers: headers of the message in Celery's protocol 2.
        body: body of the message in Celery's protocol 2: arguments, named arguments, and follow-up tasks.
    """
    said = [*(headers.get(name) for name in _SIGNED), queue, body]
    text: str = dumps(said, sort_keys=True)  # type: ignore[no-untyped-call]
    return hmac.digest(key, text.encode(), "sha256").hex()


def sign_messages(key: bytes | None) -> None:
    """Sign all messages that this process sends from now on; `None` stops signing."""
    before_task_publish.disconnect(dispatch_uid=__name__)
    if key is None:
        return

    def sign(headers: dict[str, Any], routing_key: str, body: Any, **_: Any) -> None:
        headers[_HEADER] = signature(key, headers, routing_key, body)

    before_task_publish.connect(sign, weak=False, dispatch_uid=__name__)


class Checked:
    """Accepts messages that are signed with a key, and refuses, logs and counts the others.

    Attributes:
        refused: number of refused messages.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.refused = 0

    def passes(self, message: Any) -> bool:
        """Return True if a holder of the key sent this message to this queue."""
        given = message.headers.get(_HEADER)
        queue = (message.delivery_info or {}).get("routing_key", "")
        if not isinstance(given, str):
            wrong = "not signed"
        elif not hmac.compare_digest(
            given.encode("utf-8", "replace"),
            signature(self._key, message.headers, queue, message.payload).encode(),
        ):
            wrong = "signed with another key, or changed"
        else:
            return True
        self.refused += 1
        task = str(message.headers.get("task"))[:_NAME_CHARS]
        log.warning("message refused (%d so far): %s: task %r on %r", self.refused, wrong, task, queue)
        return False


def make_checked_task(key: bytes) -> type[Task]:
    """Return the base class of a worker's tasks, including Celery's own. It checks a message before its task starts."""
    checked = Checked(key)

    class CheckedTask(Task):
        abstract = True

        def start_strategy(self, app: Any, consumer: Any, **options: Any) -> Callable[..., Any]:
            """Return the function that the worker calls with each message of this task."""
            take = super().start_strategy(app, consumer, **options)

            def take_signed(message: Any, body: Any, ack: Any, *others: Any, **named: Any) -> Any:
                if checked.passes(message):
                    return take(message, body, ack, *others, **named)
                return ack(log, consumer.connection_errors)  # acknowledged, so that no other worker gets it

            return take_signed

    return CheckedTask
