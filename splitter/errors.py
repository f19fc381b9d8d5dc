"""The exception tree of reviewloop.

    ReviewloopError                 everything the project raises on purpose
    ├── InputError                  what came in was wrong; exit status 2
    │   ├── CatalogError            sites.yaml: names file, line, key and a correct form
    │   ├── ProductNameError        a product name that gives no query
    │   └── WrongValue              one value of a file or setting
    └── (tasks.domain.errors)              StoreBusy, IllegalTransition, ...

A message names the problem, its place, and a correct form. It is a template with values, so that it can be shown in
any language (`describe` of `app.views.words`); `str` gives it in English.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from json import JSONDecodeError
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pydantic_core import CoreSchema

_LONGEST_VALUE = 200
"""Characters of a value in a stored message."""
_LONGEST_QUOTE = 60
"""Characters of a wrong value in a message."""


class Message:
    """A text for people, which can be made in any language: a template and its values.

    Attributes:
        template: English text with names of parameters in braces. Without parameters it is taken as it is.
        parameters: values of the names. Messages among them are made in the same language, and lists are
            joined by commas.
    """

    def __init__(self, template: str = "", /, **parameters: object) -> None:
        self.template = template
        self.parameters = parameters

    def __str__(self) -> str:
        """Return the text in English."""
        if not self.parameters:
            return self.template
        return self.template.format_map(
            {
                name: ", ".join(map(str, value)) if isinstance(value, tuple | list) else value
                for name, value in self.parameters.items()
            }
        )

    def as_document(self) -> dict[str, Any]:
        """Return the message as JSON has it, for `from_document`. Long values are cut."""
        return {"template": self.template, "parameters": {k: _as_json(v) for k, v in self.parameters.items()}}

    @staticmethod
    def from_document(document: Mapping[str, Any]) -> Message:
        """Return the message of a document that `as_document` made."""
        values = document["parameters"].items()
        return Message(
            document["template"],
            **{k: Message.from_document(v) if isinstance(v, Mapping) else v for k, v in values},
        )

    def __eq__(self, other: object) -> bool:
        """Return True for a message of the same class, template and values."""
        if not isinstance(other, Message) or type(other) is not type(self):
            return NotImplemented
        return (self.template, self.parameters) == (other.template, other.parameters)

    def __hash__(self) -> int:
        """Return a hash that equal messages share."""
        return hash(self.template)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: object) -> CoreSchema:
        """Return the schema of a field with a message: its JSON is the English text."""
        from pydantic_core import core_schema  # only the API needs it

        return core_schema.is_instance_schema(cls, serialization=core_schema.to_string_ser_schema())


def _as_json(value: object) -> object:
    if isinstance(value, Message):
        return value.as_document()
    if isinstance(value, tuple | list):
        return [str(one)[:_LONGEST_VALUE] for one in value]
    return value if isinstance(value, int | float) else str(value)[:_LONGEST_VALUE]


def cut_value(value: object) -> object:
    """Return a wrong value as a message quotes it: a long text is cut."""
    if isinstance(value, str) and len(value) > _LONGEST_QUOTE:
        return value[:_LONGEST_QUOTE] + "…"
    return value


def join_messages(messages: Iterable[object], between: str = "\n") -> Message:
    """Return messages as one. Reasons may be among them."""
    parameters = {f"message{n}": message for n, message in enumerate(messages, 1)}
    return Message(between.join(f"{{{name}}}" for name in parameters), **parameters)


_NAMED = 30


def list_names(names: Sequence[str], most: int = _NAMED) -> Message | tuple[str, ...]:
    """Return names as a parameter of a message; empty if there are none."""
    shown = tuple(names[:most])
    if len(names) <= most:
        return shown
    return Message("{names} and {n} more", names=shown, n=len(names) - most)


def system_reason(error: OSError) -> Message:
    """Return why the system refused something: "No such file or directory"."""
    return Message(error.strerror or str(error) or type(error).__name__)


def json_reason(error: ValueError) -> Message:
    """Return why a text is no JSON: "Expecting value"."""
    return Message(error.msg if isinstance(error, JSONDecodeError) else "it can't be read")


class ReviewloopError(Message, Exception):
    """Root of everything reviewloop raises on purpose."""

    @property
    def message(self) -> Message:
        """The error's message, to be kept without the frames of the error."""
        return Message(self.template, **self.parameters)


class InputError(ReviewloopError):
    """Input from a person or a file that cannot be used; nothing was stored."""

    def suggest(self, name: str, known: Collection[str], most: int = 3) -> Self | None:
        """Return this error with a hint at the known names that are most like a wrong one; None if none is."""
        near = get_close_matches(name, known, most, 0.5)
        if not near:
            return None
        cls = type(self)
        return cls("{problem}; did you mean {near}?", problem=self, near=tuple(map(repr, near)))

    @classmethod
    def unknown(cls, template: str, name: str, known: Collection[str], see: str) -> Self:
        """Make the error of an unknown `{name}`. It lists names near it, or points to the list of all."""
        problem = cls(template, name=cut_value(name))
        return problem.suggest(name, known) or cls("{problem}; see {see}", problem=problem, see=see)


class WrongValue(InputError, ValueError):
    """A value that can't be used. A pydantic model takes it for a ValueError and adds the place."""


class CatalogError(InputError):
    """A catalog (sites.yaml) is wrong; the message carries file, line and key of each problem."""


class ProductNameError(InputError):
    """A product name is empty, too long, or has no keyword to search for."""
