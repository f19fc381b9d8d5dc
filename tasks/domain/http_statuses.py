"""The meaning of HTTP statuses: the one table of statuses that give no page."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tasks.domain.failures import ErrorClass

_CLASSES: Mapping[int, ErrorClass] = MappingProxyType(
    {
        401: ErrorClass.FORBIDDEN,
        403: ErrorClass.FORBIDDEN,
        404: ErrorClass.NOT_FOUND,
        410: ErrorClass.NOT_FOUND,
        412: ErrorClass.FORBIDDEN,  # what bot guards of Chinese sites answer to a client they do not know
        429: ErrorClass.RATE_LIMITED,
        432: ErrorClass.FORBIDDEN,  # Weibo's, to visitors without a cookie
    }
)


def error_class(status: int) -> ErrorClass:
    """The error class of an answer whose status is no success."""
    return _CLASSES.get(status, ErrorClass.SERVER_ERROR if status >= 500 else ErrorClass.OTHER_STATUS)
