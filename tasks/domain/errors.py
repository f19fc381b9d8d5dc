"""The middle floor's part of the exception tree (its root is in splitter.errors).

ReviewloopError
└── TaskError
    ├── IllegalTransition   a subtask was asked to go where the state machine does not lead
    ├── UnknownSubtask, UnknownNode, UnknownSchedule
    ├── StoreFailed         the database refused what was asked; the driver's error is its cause
    │   ├── StoreUnavailable    it is away: the same may succeed after its return
    │   │   └── StoreBusy       SQLite stayed locked for longer than the busy timeout
    │   ├── StoreConflict       transactions met: the same may succeed at once
    │   ├── StoreUnwritable     SQLite's file takes no more writes
    │   └── Unstorable          a value can't be stored: another try would also fail
    └── WrongRevision       the database has another version's schema
"""

from splitter.errors import InputError, ReviewloopError


class TaskError(ReviewloopError):
    """Root of the errors that the loop raises."""


class IllegalTransition(TaskError):
    """The state machine has no such transition from the subtask's state."""


class UnknownSubtask(TaskError, InputError):
    """There is no subtask of that number."""


class UnknownNode(TaskError, InputError):
    """There is no node of that name."""


class UnknownSchedule(TaskError, InputError):
    """There is no schedule of that number or product."""


class WrongRevision(TaskError):
    """The database has another version's schema, or none."""


class StoreFailed(TaskError):
    """The database refused what was asked; its message is one line of the driver's."""


class StoreUnavailable(StoreFailed):
    """The database is away, or not there yet: the same transaction may succeed after its return.

    It is not known whether the transaction was committed if the error came with COMMIT.
    """


class StoreBusy(StoreUnavailable):
    """SQLite stayed locked by another process for longer than the busy timeout."""


class StoreConflict(StoreFailed):
    """A deadlock, or a lock held too long: the same transaction may succeed if it is tried again at once.

    Neither can be ruled out: transactions of several processes store pages, and each page's address is unique.
    """


class StoreUnwritable(StoreFailed):
    """SQLite's file takes no more writes: its disk is full, or it may not be written to."""


class Unstorable(StoreFailed):
    """A value can't be stored, so another try would also fail."""
