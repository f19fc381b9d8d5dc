"""Regular expressions of a catalog, run by RE2: their time grows with the text and never faster.

The text is chosen by whoever serves a page, and Python's engine tries the ways of a pattern one by one: `(a+)+b` takes
minutes of thirty letters. RE2 tries all ways at once, so it knows neither look-around nor back-references.
Here `\\d`, `\\w` and `\\s` mean ASCII alone.
"""

from __future__ import annotations

import re
from functools import lru_cache

import re2

from splitter.errors import Message, WrongValue

_LARGEST_PROGRAM = 2_500
"""Maximum number of instructions of a compiled pattern, and of steps for a character of a page."""

# Syntax that Python's engine knows and RE2 does not, with its replacement.
_ELSEWHERE = (
    (
        re.compile(r"\(\?<?[=!]"),
        Message(
            "look-around is not known; write what stands around it into the pattern, and what is wanted into a group"
        ),
    ),
    (
        re.compile(r"\\[1-9]|\(\?P="),
        Message("references back to a group are not known; write the alternatives out"),
    ),
    (
        re.compile(r"\(\?>|[*+?}]\+"),
        Message("atomic groups and possessive counts are not needed; leave (?> ) and the + out"),
    ),
    (
        re.compile(r"\(\?\(|\(\?#"),
        Message("conditions and comments are not known; write alternatives with |"),
    ),
    (re.compile(r"\\Z"), Message(r"write \z for the end of the text")),
    (
        re.compile(r"\\u[0-9a-fA-F]{4}|\\U|\\N"),
        Message(r"write the character itself, or \x{5149} by its number"),
    ),
)


class BadPattern(WrongValue):
    """A regular expression that can't be run. The message has a form that can."""


class Pattern:
    """A compiled regular expression of a catalog.

    Attributes:
        text: as written.
    """

    def __init__(self, text: str) -> None:
        """Raises BadPattern, see `compile_pattern`."""
        self.text = text
        options = re2.Options()
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options)
        except (re2.error, UnicodeEncodeError) as error:
            said = error.args[0] if error.args else error
            text_said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
            kind, _, part = text_said.partition(": ")
            why = Message("{kind}: {part}", kind=Message(kind), part=part) if part else Message(kind)
            for found, hint in _ELSEWHERE:
                if found.search(text):
                    raise BadPattern("{why}: {hint}", why=why, hint=hint) from None
            raise BadPattern("{why}", why=why) from None
        if self._compiled.programsize > _LARGEST_PROGRAM:
            raise BadPattern(
                "it compiles to {n} steps, over {most}; count less in braces, or leave the "
                "count out: .* instead of .{{1,1000}}",
                n=self._compiled.programsize,
                most=_LARGEST_PROGRAM,
            )

    @property
    def groups(self) -> int:
        """How many groups it has."""
        return int(self._compiled.groups)

    def search(self, text: str) -> tuple[str, ...] | None:
        """Return the first match: its text, then that of each group (empty if unused); `None` without a match."""
        # RE2 reads bytes: given a str, its package would also count characters, which is not needed here.
        match = self._compiled.search(text.encode("utf-8", "replace"))
        return None if match is None else _texts(match[0], *match.groups())

    def find_all(self, text: str) -> list[tuple[str, ...]]:
        """Every match, each as `search` gives it."""
        found = self._compiled.finditer(text.encode("utf-8", "replace"))
        return [_texts(match[0], *match.groups()) for match in found]


def _texts(*parts: bytes | None) -> tuple[str, ...]:
    return tuple((part or b"").decode("utf-8", "replace") for part in parts)


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """A pattern, compiled once.

    Raises:
        BadPattern: RE2 knows no such pattern, or it is too large. The message has a form that works.
    """
    return Pattern(text)
