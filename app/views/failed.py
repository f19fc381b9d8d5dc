"""Views of subtasks that wait for a person, and of one subtask with its history."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from app.views.words import describe
from splitter.errors import Message
from tasks.domain.errors import UnknownSubtask
from tasks.domain.states import State
from tasks.store.queries import subtask as subtask_queries
from tasks.store.queries.subtask import AttemptRow, TargetRow
from tasks.store.queue import manual
from tasks.store.queue.manual import ManualRow
from tasks.store.sql.transaction import Transaction

ATTEMPT_FIELDS = (
    "no round node allocated_at lasted_s end offered tried collected requests active_s wait_s errors"
)
TARGET_FIELDS = "id kind state tries reason url>"


@dataclass(frozen=True, slots=True, kw_only=True)
class CauseView:
    """The subtasks at one site that wait for a person for the same reason.

    Attributes:
        count: number of subtasks.
        suggestion: advice for the person.
    """

    reason: str
    site: str
    count: int
    suggestion: str
    subtasks: Sequence[ManualRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingView:
    """All subtasks that wait for a person, grouped by cause."""

    groups: Sequence[CauseView]
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubtaskView:
    """A subtask with its attempts and its targets (URLs to fetch).

    Attributes:
        why: the reason why the subtask waits for a person; `None` if it does not wait.
        suggestion: advice for the person.
        refetch: the response when the last URL was fetched again; `None` if this was not requested.
    """

    subtask: Mapping[str, Any]
    why: Message | None
    suggestion: str | None
    attempts: Sequence[AttemptRow]
    targets: Sequence[TargetRow]
    refetch: Mapping[str, Any] | None = None

    def get_last_url(self) -> str:
        """Return the last URL that an attempt reported; if there is none, the URL of the first open target."""
        for attempt in reversed(self.attempts):
            if attempt.last_response and attempt.last_response.get("url"):
                return str(attempt.last_response["url"])
        return next((one.url for one in self.targets if one.state == "todo"), self.targets[0].url)


def group_by_cause(rows: Iterable[ManualRow]) -> WaitingView:
    """Group waiting subtasks by reason and site."""
    groups = []
    for (reason, site), group in groupby(sorted(rows, key=get_cause), key=get_cause):
        subtasks = list(group)
        suggestion = subtasks[0].suggestion
        groups.append(
            CauseView(reason=reason, site=site, count=len(subtasks), suggestion=suggestion, subtasks=subtasks)
        )
    return WaitingView(groups=groups, total=sum(group.count for group in groups))


def get_cause(row: ManualRow) -> tuple[str, str]:
    """Return (reason, site) of a waiting subtask."""
    return row.reason, row.site


def describe_response(last: Mapping[str, Any]) -> str:
    """Return a sentence about the response that came instead of a page, in the reader's language.

    Older versions stored an English sentence, which is returned unchanged.
    """
    return describe(Message.from_document(last["problem"])) if "problem" in last else last["detail"]


def get_subtask_view(tx: Transaction, number: int) -> SubtaskView:
    """Return a subtask with its history. Raises UnknownSubtask."""
    row = subtask_queries.get_subtask(tx, number)
    if row is None:
        raise UnknownSubtask("there is no subtask {subtask}", subtask=number)
    waiting = manual.list_manual(tx, after=number - 1, most=1) if row["state"] == State.MANUAL else []
    return SubtaskView(
        subtask=row,
        why=Message("{because}", because=waiting[0].because) if waiting else None,
        suggestion=waiting[0].suggestion if waiting else None,
        attempts=subtask_queries.list_attempts(tx, number),
        targets=subtask_queries.list_targets(tx, number),
    )
