"""Our own messages for the errors that pydantic finds in a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from splitter.errors import Message, cut_value

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_MEMBER = re.compile(r"<[^<>]*: ('\w+')>")
"""A member of an enum as pydantic prints it: <LabAnswer.GONE: 'gone'>."""
_TEXT = Message("must be text")
_INTEGER = Message("must be a whole number")
_NUMBER = Message("must be a number")
_BOOLEAN = Message("must be true or false")
_LIST = Message("must be a list")
_MAPPING = Message("must be a mapping of keys to values")
_DATE = Message("must be a date such as 2026-05-01")

_MESSAGES: Mapping[str, Message] = {
    "bool_parsing": _BOOLEAN,
    "bool_type": _BOOLEAN,
    "date_from_datetime_parsing": _DATE,
    "date_parsing": _DATE,
    "datetime_from_date_parsing": _DATE,
    "datetime_parsing": _DATE,
    "dict_type": _MAPPING,
    "enum": Message("must be one of {expected}"),
    "extra_forbidden": Message("unknown key"),
    "finite_number": Message("must be a finite number"),
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "frozen_set_type": _LIST,
    "greater_than": Message("must be greater than {gt}"),
    "greater_than_equal": Message("must be {ge} or more"),
    "int_from_float": _INTEGER,
    "int_parsing": _INTEGER,
    "int_parsing_size": _INTEGER,
    "int_type": _INTEGER,
    "ip_any_network": Message("must be an address or a network such as 10.0.0.0/8"),
    "json_invalid": Message("must be JSON"),
    "less_than": Message("must be less than {lt}"),
    "less_than_equal": Message("must be {le} or less"),
    "list_type": _LIST,
    "literal_error": Message("must be one of {expected}"),
    "mapping_type": _MAPPING,
    "missing": Message("missing; it has no default"),
    "model_attributes_type": _MAPPING,
    "model_type": _MAPPING,
    "set_type": _LIST,
    "string_pattern_mismatch": Message("must match {pattern}"),
    "string_too_long": Message("must have {max_length} characters or fewer"),
    "string_too_short": Message("must have {min_length} characters or more"),
    "string_type": _TEXT,
    "string_unicode": _TEXT,
    "too_long": Message("must have {max_length} entries or fewer"),
    "too_short": Message("must have {min_length} entries or more"),
    "tuple_type": _LIST,
}
"""Description of a right value, by pydantic's type of the error."""


def explain_wrong_value(detail: ErrorDetails) -> Message:
    """Return what is wrong with a value and what would be right, without its place."""
    context = detail.get("ctx", {})
    cause = context.get("error")
    if detail["type"] == "value_error":
        return cause if isinstance(cause, Message) else Message("{text}", text=str(cause))
    message = _MESSAGES.get(detail["type"])
    if message is None:
        return Message("{text}", text=detail["msg"])
    expected = _MEMBER.sub(r"\1", str(context.get("expected", ""))).replace(" or ", ", ")
    return Message(message.template, **context | {"expected": expected})


def explain_found_value(detail: ErrorDetails) -> Message:
    """Return what is wrong with a value of a file, and what stands there instead."""
    given = detail["input"]
    wrong = explain_wrong_value(detail)
    if isinstance(given, list):
        return Message("{wrong}; found a list", wrong=wrong)
    if isinstance(given, Mapping):
        return Message("{wrong}; found a mapping", wrong=wrong)
    if given is None:
        return Message("{wrong}; found nothing", wrong=wrong)
    return Message("{wrong}; found {given!r}", wrong=wrong, given=cut_value(given))
