"""The middle floor's part of the exception tree (its root is in splitter.errors).

ReviewloopError
└── TaskError
    ├── IllegalTransition   a subtask was asked to go where the state machine does not lead
    ├── UnknownSubtask, UnknownNode, UnknownSchedule
    ├── StoreBusy           the database refused for longer than the busy timeout
    ├── StoreUnwritable     the database's file takes no more writes
    └── WrongRevision       the database has another version's schema
"""

from splitter.errors import InputError, ReviewloopError


class TaskError(ReviewloopError):
    """Root of what the loop raises."""


class IllegalTransition(TaskError):
    """A subtask was asked to go where the state machine does not lead."""


class UnknownSubtask(TaskError, InputError):
    """There is no subtask of that number."""


class UnknownNode(TaskError, InputError):
    """There is no node of that name."""


class UnknownSchedule(TaskError, InputError):
    """There is no schedule of that number or product."""


class StoreBusy(TaskError):
    """The database refused for longer than the busy timeout."""


class WrongRevision(TaskError):
    """The database has another version's schema, or none."""


class StoreUnwritable(TaskError):
    """The database's file takes no more writes: its disk is full, or it may not be written to."""
