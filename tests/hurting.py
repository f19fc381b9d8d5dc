"""Finds every regular expression of the tree, and makes strings to hurt each from its own pieces.

An engine that tries the ways of a pattern one by one is slow where a long text nearly matches in many ways. So a text
is made of a repeat of the pattern, pumped up, after what stands before it, and followed by what can't match.
"""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from time import thread_time
from typing import Any

ROOT = Path(__file__).parents[1]
ROOMS = ("splitter", "tasks", "app", "research", "migrations")
_CALLS = frozenset({"compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"})
_NAMES_RE = re.compile(rf"\bre\s*\.\s*(?:{'|'.join(sorted(_CALLS))})\b")
_ASKED = frozenset({"search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn"})
# How a pattern may be asked that is handed on: the others do the same.
_ANY = frozenset({"search", "fullmatch"})
# What no pattern of the tree matches, so that a pumped text fails at its end.
_ENDS = ("\0", "!x\0", "")
_MOST_TEXTS = 60
_SHORT_CHARS, _GLANCE_CHARS, _LONG_CHARS = 40, 2_048, 16_384
_LEAST_PUMPS = 40
"""So many tell exponential time, however long the pump."""
_SUSPECT_S = 0.03
"""CPU seconds for such a text from which on the growth of the time is looked at."""
_GIVE_UP_S = 1.0
"""A quarter of the text takes a linear pattern a hundredth of it."""
_QUARTERS = 4
_SUPERLINEAR = 2.5
"""Times as long for a text as for its quarter four times over: 1 where time is linear, 4 where it is quadratic."""
_HARDLY = 1.2
"""The same at a glance: linear and quadratic time together that are 2.5 for a long text are 1.33 for its eighth."""


@dataclass(frozen=True)
class Found:
    """A regular expression in the tree.

    Attributes:
        place: file and line.
        asked: by which methods it is asked.
    """

    place: str
    pattern: re.Pattern[Any]
    asked: frozenset[str]


def patterns() -> tuple[list[Found], list[str]]:
    """Every regular expression of the tree; and the places of those that are only made while it runs."""
    found: list[Found] = []
    made_later: list[str] = []
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            source = path.read_text()
            if not _NAMES_RE.search(source):
                continue  # most files: to walk their trees takes seconds
            tree = ast.parse(source)
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _is_re(node.func)]
            maps = [node for node in ast.walk(tree) if _maps_compile(node)]
            if not calls and not maps:
                continue
            names = _names(path)
            usage = _usage(tree)
            for call in calls:
                place = f"{path.relative_to(ROOT)}:{call.lineno}"
                try:
                    pattern = _evaluated(call, names)
                except NameError:
                    made_later.append(place.rpartition(":")[0])
                    continue
                assert isinstance(call.func, ast.Attribute)
                how = call.func.attr
                asked = frozenset({how}) if how != "compile" else usage.get(_target(tree, call), _ANY)
                found.append(Found(place, pattern, asked))
            made_later += [str(path.relative_to(ROOT))] * len(maps)
            known = {(one.pattern.pattern, one.pattern.flags) for one in found}
            for pattern in _held(list(names.values())):
                if (pattern.pattern, pattern.flags) not in known:
                    found.append(Found(str(path.relative_to(ROOT)), pattern, _ANY))
    return found, made_later


def _held(values: Any) -> Iterator[re.Pattern[Any]]:
    """Yield the patterns that a module holds by name or in a collection, also those made from others."""
    for value in values:
        if isinstance(value, re.Pattern):
            yield value
        elif isinstance(value, dict):
            yield from _held(value.values())
        elif isinstance(value, tuple | list):
            yield from _held(value)


def _is_re(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "re"
        and node.attr in _CALLS
    )


def _maps_compile(node: ast.AST) -> bool:
    """`map(re.compile, ...)` and the like: patterns from data."""
    return isinstance(node, ast.Call) and any(_is_re(argument) for argument in node.args)


def _names(path: Path) -> dict[str, Any]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    try:
        return vars(import_module(module))
    except ModuleNotFoundError as error:
        # A bench's peer, or a migration, whose name is no module's: its names are what the file itself says.
        package = (error.name or module).partition(".")[0]
        if find_spec(package) and "versions" not in module:
            raise
        return {"re": re}


def _evaluated(call: ast.Call, names: dict[str, Any]) -> re.Pattern[Any]:
    def value(node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "", "eval"), dict(names))

    flags = [one.value for one in call.keywords if one.arg == "flags"]
    place = {"compile": 1, "search": 2, "match": 2, "fullmatch": 2, "findall": 2, "finditer": 2}
    assert isinstance(call.func, ast.Attribute)
    at = place.get(call.func.attr, 99)
    flags += call.args[at : at + 1]
    made = value(call.args[0])
    assert not isinstance(made, re.Pattern)
    return re.compile(made, value(flags[0]) if flags else 0)


def _target(tree: ast.Module, call: ast.Call) -> str:
    """The name a compiled pattern is assigned to; empty where it is none's alone."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and node.value is call and isinstance(node.targets[0], ast.Name):
            return node.targets[0].id
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Attribute)
            and node.value.value is call
        ):
            return f".{node.value.attr}"  # NAME = re.compile(...).fullmatch
    return ""


def _usage(tree: ast.Module) -> dict[str, frozenset[str]]:
    """By which methods a module asks its own patterns; a name handed on otherwise may be asked by any."""
    asked: dict[str, set[str]] = {}
    methods = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in _ASKED:
            asked.setdefault(node.value.id, set()).add(node.attr)
            methods.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in methods:
            asked[node.id] = set(_ANY)
    usage = {name: frozenset(how) for name, how in asked.items()}
    return usage | {f".{how}": frozenset({how}) for how in _ASKED}


# --- texts ---------------------------------------------------------------------------------------------------


class _TooLong(Exception):
    pass


def hurt_by(found: Found) -> str | None:
    """How the first text begins for which a pattern takes more than linear time; None where there is none.

    The times compared are of the same machine, so that a slow one finds the same.
    """
    for before, pump in hurting(found.pattern):
        for end in _ENDS:
            for how in found.asked:
                glance = max(_GLANCE_CHARS, _LEAST_PUMPS * len(pump))
                for chars in (_SHORT_CHARS, glance, _LONG_CHARS):
                    text = partial(_text, before, pump, end)
                    if chars > glance and _harmless(found.pattern, how, text, glance):
                        continue
                    if _hurts(found.pattern, how, text, chars):
                        return f"{before[:40]}{pump[:40]} ... {end}, {chars} characters"
    return None


def _text(before: str, pump: str, end: str, chars: int) -> str:
    return before + pump * max(1, chars // len(pump)) + end


def _hurts(pattern: re.Pattern[Any], how: str, text: Callable[[int], str], chars: int) -> bool:
    """Whether each of three tries finds it: the times of quarter and whole are taken one after the other."""
    quarter, whole = text(chars // _QUARTERS), text(chars)
    if _seconds(pattern, how, whole, _SUSPECT_S) < _SUSPECT_S:
        return False
    for _ in range(3):
        quarters_s = 0.0
        for _ in range(_QUARTERS):
            if (short_s := _seconds(pattern, how, quarter, _GIVE_UP_S)) >= _GIVE_UP_S:
                return True
            quarters_s += short_s
        limit_s = max(_SUSPECT_S, _SUPERLINEAR * quarters_s)
        if _seconds(pattern, how, whole, limit_s) < limit_s:
            return False
    return True


def _harmless(pattern: re.Pattern[Any], how: str, text: Callable[[int], str], glance: int) -> bool:
    """Whether a short text shows that the long one is no suspect.

    It takes less than half of what would make the long one suspect if time were quadratic, or hardly longer than its
    own quarters.
    """
    glance_s = _seconds(pattern, how, text(glance), _SUSPECT_S)
    if glance_s < _SUSPECT_S / 2 * (glance / _LONG_CHARS) ** 2:
        return True
    if glance_s >= _SUSPECT_S:
        return False
    short_s = min(_seconds(pattern, how, text(glance // _QUARTERS), _SUSPECT_S) for _ in range(3))
    return glance_s < _HARDLY * _QUARTERS * short_s


def _seconds(pattern: re.Pattern[Any], how: str, text: str, limit_s: float) -> float:
    """CPU seconds of this thread for a text, which is given up at a limit.

    The clock of the process counts in ticks of milliseconds while a timer of its time runs, so it is not asked.
    """
    asked: Any = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text

    def give_up(_signal: int, _frame: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, give_up)
    began = thread_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, limit_s)
        if how in ("sub", "subn"):
            pattern.sub(asked[:0], asked)
        elif how == "finditer":
            for _ in pattern.finditer(asked):
                pass
        else:
            getattr(pattern, how)(asked)
        return thread_time() - began
    except _TooLong:
        return max(limit_s, thread_time() - began)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def hurting(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """What stands before, and what is to be repeated: from each repeat of the pattern, and from it as a whole."""
    source = pattern.pattern
    if isinstance(source, bytes):
        source = source.decode("latin-1")
    is_bytes = isinstance(pattern.pattern, bytes)
    parsed = list(parser.parse(source, pattern.flags & ~re.UNICODE if is_bytes else pattern.flags))
    texts = list(dict.fromkeys(_pumps(parsed, "")))
    pieces = list(dict.fromkeys(piece for _, piece in texts))
    # Repeats beside each other: blanks or blanks, digits or digits.
    texts += [("", one + other) for one in pieces[:8] for other in pieces[:8] if one != other]
    return [pair for pair in dict.fromkeys(texts) if pair[1]][:_MOST_TEXTS]


def _pumps(items: list[Any], before: str) -> Iterator[tuple[str, str]]:
    sample = before
    for code, value in items:
        for body in _bodies(code, value):
            if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT) and value[1] > 20:
                for piece in _samples(body):
                    yield sample, piece
                    yield "", piece
                    # The way to the repeat again and again: each is a new beginning.
                    yield "", sample[-40:] + piece
                    yield "", sample[-40:] + piece * 20
            yield from _pumps(body, sample)
        sample += next(iter(_samples([(code, value)])), "")
        if sample:
            yield "", sample[-60:]


def _bodies(code: Any, value: Any) -> list[list[Any]]:
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [list(value[2])]
    if code is codes.SUBPATTERN:
        return [list(value[-1])]
    if code is codes.BRANCH:
        return [list(one) for one in value[1]]
    if code is codes.ATOMIC_GROUP:
        return [list(value)]
    return []


def _samples(items: list[Any], most: int = 4) -> list[str]:
    """Some texts that a part of a pattern matches."""
    texts = [""]
    for code, value in items:
        choices = _choices(code, value)
        texts = [text + choice for choice in choices[:most] for text in texts[:most]][: most * 2]
    return texts


@cache
def _alphabet() -> str:
    return " \t0a_A光。-:/'\"=<>.,@\u200b\xa0#%&*+;[](){}|~!?$^\\展"


def _choices(code: Any, value: Any) -> list[str]:
    if code is codes.LITERAL:
        return [chr(value)]
    if code is codes.ANY:
        return ["a", " ", "0"]
    if code in (codes.NOT_LITERAL, codes.IN, codes.CATEGORY):
        tried = parser.parse("a")
        tried.data[:] = [(code, value)]
        return list(islice((char for char in _alphabet() if _fits(code, value, char)), 4)) or [_first(value)]
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        least, most, body = value
        count = max(1, least) if most else 0
        return [piece * count for piece in _samples(list(body))]
    if code is codes.BRANCH:
        return [text for one in value[1] for text in _samples(list(one), 2)[:2]]
    if code is codes.SUBPATTERN:
        return _samples(list(value[-1]))
    if code is codes.ATOMIC_GROUP:
        return _samples(list(value))
    return [""]  # what stands at a place: ^, $, \b, look-around


def _fits(code: Any, value: Any, char: str) -> bool:
    if code is codes.NOT_LITERAL:
        return ord(char) != value
    if code is codes.CATEGORY:
        return _in_category(value, char)
    negate = bool(value) and value[0][0] is codes.NEGATE
    return any(_in_item(*item, char) for item in value) != negate


def _in_item(code: Any, value: Any, char: str) -> bool:
    if code is codes.LITERAL:
        return ord(char) == value
    if code is codes.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return code is codes.CATEGORY and _in_category(value, char)


def _in_category(value: Any, char: str) -> bool:
    name = str(value).lower()
    fits = {"digit": str.isdigit, "space": str.isspace, "word": lambda one: one.isalnum() or one == "_"}
    kind = next(kind for kind in fits if kind in name)
    return bool(fits[kind](char)) != ("not" in name)


def _first(value: Any) -> str:
    """A character of a set that the alphabet has none of."""
    for code, inner in value if isinstance(value, list) else ():
        if code is codes.LITERAL:
            return chr(inner)
        if code is codes.RANGE:
            return chr(inner[0])
    return "a"
