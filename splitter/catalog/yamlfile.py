"""A YAML text as plain data, with the line of every key.

The files that a person edits (catalogs, scenarios) are read through this module, so that every complaint about them
carries file, line and dotted key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from splitter.errors import CatalogError, Message, join_messages, system_reason

Place = tuple[str | int, ...]
"""A place in the file: keys of mappings and indexes of lists, from the top."""


_WIDE_COLON = re.compile(r"\s*(?:- )?[^\s:：#'\"]+：")
"""A key with a Chinese colon."""
_COLON = Message("the Chinese colon ： ends no key; write `key: value` with : and a blank")
_TAB = Message("a tab; indent with blanks")
_QUOTE = Message("a value begins with this character; put the value in quotes")
_ALIGN = Message(
    "this line does not stand in the column of the keys or entries around it (from line {begin} on); align it"
)
_QUOTE_OPEN = Message("the quote that line {begin} opens is not closed")
_ESCAPE = Message("a \\ in double quotes begins an escape; write \\\\, or use single quotes")
_DIRECTIVE = Message("a line begins with %, which marks a directive; put the value in quotes")
_SYNTAX: Mapping[str, Message] = {
    "found character that cannot start any token": _QUOTE,
    "found a tab character": _TAB,
    "could not find expected ':'": Message(
        "line {begin} is neither a comment, a list entry nor a key; write `key: value`"
    ),
    "mapping values are not allowed": Message(
        "a colon and a blank stand in a value, or the line is indented too far; put the value in quotes, or align "
        "the line"
    ),
    "block sequence entries are not allowed": Message(
        "no list entry can stand here; write each in a line of its own below its key, as `- entry`"
    ),
    "mapping keys are not allowed": _QUOTE,
    "did not find expected key": _ALIGN,
    "did not find expected '-' indicator": _ALIGN,
    "did not find expected ',' or ']'": Message(
        "the bracket [ of line {begin} is not closed, or a comma is missing in it"
    ),
    "did not find expected ',' or '}'": Message(
        "the bracket {{ of line {begin} is not closed, or a comma is missing in it"
    ),
    "did not find expected node content": Message("a value is missing here, or a comma is too many"),
    "found unexpected end of stream": _QUOTE_OPEN,
    "found unexpected document indicator": _QUOTE_OPEN,
    "found unknown escape character": _ESCAPE,
    "did not find expected hexdecimal number": _ESCAPE,
    "did not find expected alphabetic or numeric character": _QUOTE,
    "found undefined alias": Message("* refers to an anchor that is not there; put the value in quotes"),
    "found duplicate anchor": Message("an anchor (&) is written twice; keep one of them"),
    "an alias that holds itself": Message("an alias that holds itself; write the values out"),
    "could not determine a constructor for the tag": Message(
        "a value begins with !, which marks a tag; put the value in quotes"
    ),
    "did not find expected whitespace or line break": _QUOTE,
    "did not find expected comment or line break": Message(
        "only a comment can stand behind | or >; begin the text in the next line"
    ),
    "digit or '.' character": _DIRECTIVE,
    "directive": _DIRECTIVE,
    "did not find expected <document start>": Message(
        "text stands before or behind the keys; remove it, or indent it"
    ),
    "but found another document": Message("--- begins a second document; a file holds one"),
    "found unhashable key": Message("a key must be text; put it in quotes"),
}
"""Problems in words for people, by parts of PyYAML's texts. The first part that a text contains counts.

`{begin}` is the line where the thing around the problem begins.
"""


@dataclass(frozen=True, slots=True)
class CatalogFault:
    """One thing that is wrong.

    Attributes:
        line: line in the file, from 1.
        key: dotted key; empty for the file as a whole.
        message: the problem and a correct form.
    """

    line: int
    key: str
    message: Message | str


def format_place(place: Place) -> str:
    """Return a place as people write it: ``engines.baidu.blocked[1]``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def raise_problems(problems: Iterable[CatalogFault], origin: str) -> None:
    """Raise CatalogError with every problem, in the order of the file, if there is one."""
    found = sorted(set(problems), key=lambda one: (one.line, one.key, str(one.message)))
    if not found:
        return
    lines = [_locate(problem, origin) for problem in found]
    if len(lines) > 1:
        lines.insert(0, Message("{origin}: {n} problems", origin=origin, n=len(lines)))
    raise CatalogError("{problems}", problems=join_messages(lines))


def _locate(problem: CatalogFault, origin: str) -> Message:
    place = f"{origin}:{problem.line}"
    if problem.key:
        place = f"{place}: {problem.key}"
    return Message("{place}: {problem}", place=place, problem=problem.message)


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML text, read.

    Attributes:
        data: mappings, lists, text, numbers, true/false, null.
        lines: line (from 1) of every place; of a mapping's entry, the line of its key.
        problems: problems of YAML that could still be read (repeated keys and the like).
    """

    data: Any
    lines: dict[Place, int]
    problems: list[CatalogFault] = field(default_factory=list)

    def problem(self, place: Place, message: Message | str) -> CatalogFault:
        """Return a problem at a place, or at the nearest one around it that is in the text."""
        near = place
        while near and near not in self.lines:
            near = near[:-1]
        return CatalogFault(self.lines.get(near, 1), format_place(place), message)

    def json(self) -> str:
        """Return the data as JSON, so that strict models take lists for tuples and text for enumerations."""
        return json.dumps(self.data, ensure_ascii=False, default=str)


class _Loader(Composer, CParser, SafeConstructor, Resolver):
    """PyYAML's `CSafeLoader` with two differences: a date stays the text it was written as, and nodes are composed in
    Python, which bounds how deep they nest."""

    def __init__(self, text: bytes) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        Resolver.__init__(self)


def _as_written(loader: _Loader, node: yaml.Node) -> object:
    return loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else None


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_written)  # type: ignore[type-var]


def read_text(path: Path, advice: Message) -> str:
    """Return the text of a file.

    Args:
        advice: names the file to give if this one can't be read.

    Raises:
        CatalogError: the file can't be read, or is not UTF-8.
    """
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise CatalogError(
            "{path}: {reason}; {advice}", path=path, reason=system_reason(error), advice=advice
        ) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise CatalogError(
            "{path}:{line}: not UTF-8; save the file as UTF-8", path=path, line=line
        ) from error


def read(text: str, origin: str) -> Document:
    """Read one YAML document whose top is a mapping.

    Raises:
        CatalogError: the text is not YAML, holds several documents, or its top is no mapping.
    """
    try:
        loader = _Loader(text.encode("utf-8", "replace"))
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise CatalogError(
                "{origin}:1: the file must hold keys and values, such as 'version: 1'", origin=origin
            )
        document = Document(None, {})
        _walk(node, (), document, ())
        return replace(document, data=loader.construct_document(node))
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, origin) from error
    except yaml.reader.ReaderError as error:
        line = text.encode("utf-8", "replace").count(b"\n", 0, error.position) + 1
        raise CatalogError(
            "{origin}:{line}: not readable as YAML: {reason}",
            origin=origin,
            line=line,
            reason=Message("a character that can't be seen; remove it"),
        ) from error
    except RecursionError as error:
        raise CatalogError(
            "{origin}:1: nested too deeply; a catalog has about five levels", origin=origin
        ) from error


def _syntax_error(error: yaml.MarkedYAMLError, text: str, origin: str) -> CatalogError:
    mark = error.problem_mark or error.context_mark or yaml.Mark("", 0, 0, 0, None, 0)
    begin = error.context_mark or mark
    line, column = mark.line, mark.column
    lines = text.splitlines()
    problem = _explain_syntax(error.problem or "", lines[line : line + 1], column)
    for number in range(line, max(0, min(begin.line, line - 1)) - 1, -1):
        if number < len(lines) and (key := _WIDE_COLON.match(lines[number])) is not None:
            problem, line, column = _COLON, number, key.end() - 1
    return CatalogError(
        "{origin}:{line}: not readable as YAML at column {column}: {problem}",
        origin=origin,
        line=line + 1,
        column=column + 1,
        problem=Message(problem.template, begin=begin.line + 1, **problem.parameters),
    )


def _explain_syntax(said: str, line: Sequence[str], column: int) -> Message:
    """Return what is wrong in words for people. A text of PyYAML that is not known is quoted."""
    if "".join(line)[: column + 1].lstrip(" ").startswith("\t"):
        return _TAB
    return next((problem for part, problem in _SYNTAX.items() if part in said), Message("{said}", said=said))


def _walk(node: yaml.Node, place: Place, document: Document, around: tuple[int, ...]) -> None:
    """Note the line of every place at and below a node, and keys that are written twice or are no text."""
    document.lines.setdefault(place, node.start_mark.line + 1)
    if id(node) in around:
        raise yaml.constructor.ConstructorError(
            None, None, "an alias that holds itself; write the values out", node.start_mark
        )
    around = (*around, id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*place, index), document, around)
    elif isinstance(node, yaml.MappingNode):
        first: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            line = key_node.start_mark.line + 1
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else "..."
            message: Message | None = None
            if key_node.tag != "tag:yaml.org,2002:str":
                message = Message("a key must be text; write '{key}' in quotes", key=key)
            elif key in first:
                message = Message("written twice, first in line {line}; keep one of them", line=first[key])
            document.lines.setdefault((*place, key), line)
            if message:
                document.problems.append(CatalogFault(line, format_place((*place, key)), message))
            else:
                first[key] = line
                _walk(value_node, (*place, key), document, around)
