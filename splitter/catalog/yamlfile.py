"""A YAML text as plain data, with the line of every key.

The files that a person edits (catalogs, scenarios) are read through this module, so that every complaint about them
carries file, line and dotted key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
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
        raise _syntax_error(error, origin) from error
    except yaml.reader.ReaderError as error:
        line = text.encode("utf-8", "replace").count(b"\n", 0, error.position) + 1
        raise CatalogError(
            "{origin}:{line}: not readable as YAML: {reason}", origin=origin, line=line, reason=error.reason
        ) from error
    except RecursionError as error:
        raise CatalogError(
            "{origin}:1: nested too deeply; a catalog has about five levels", origin=origin
        ) from error


def _syntax_error(error: yaml.MarkedYAMLError, origin: str) -> CatalogError:
    mark = error.problem_mark or error.context_mark or yaml.Mark("", 0, 0, 0, None, 0)
    parts = [part for part in (error.context, error.problem) if part]
    return CatalogError(
        "{origin}:{line}: not readable as YAML at column {column}: {problem}",
        origin=origin,
        line=mark.line + 1,
        column=mark.column + 1,
        problem=", ".join(parts),
    )


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
