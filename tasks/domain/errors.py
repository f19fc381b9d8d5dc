"""The middle floor's part of the exception tree (its root is in splitter.errors).

ReviewloopError
└── TaskError
    ├── IllegalTransition   a subtask was asked to go where the state machine does not lead
    ├── UnknownSubtask, UnknownNode
    └── StoreBusy           the database refused for longer than the busy timeout
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


class StoreBusy(TaskError):
    """The database refused for longer than the busy timeout."""
