"""Every phrase that the dashboard may say, as its sources have it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from app.views.loop_state import Situation
from app.web.pages.matrix import MEASURES
from splitter.catalog.names import Category, Kind
from tasks.domain.failures import SUGGESTIONS, ErrorClass, FailureReason
from tasks.domain.host_wait import UNREACHABLE
from tasks.domain.states import State, Transition
from tasks.domain.voices import Voice

WEB = Path(__file__).parents[2] / "app" / "web"
_CALL = re.compile(r"""\bt\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_NAV = re.compile(r"""\("/\w*", "([^"]+)"\)""")
_CHOICE = re.compile(r"""\bt\("([^"]+)" if [^)]* else "([^"]+)"\)""")
OUTCOMES = ("succeeded", "failed", "silent", "released", "cancelled", "runs")
PROVENANCES = ("unknown", "reported", "counted", "capped")
TRIED = ("records", "empty", "blocked", "broken")
TARGETS = ("todo", "stored", "refused", "given_up")
ACTIONS = (
    "retry",
    "edit",
    "assign",
    "abandon",
    "drain",
    "resume",
    "add products",
    "edit product",
    "remove product",
    "import reviews",
    "judge reviews",
    "read dates again",
    "undo import",
    "import undone",
    "add",
    "remove",
)
SCHEDULES = (
    *("on", "paused", "due", "under way", "failed", "report", "failed-report", "export"),
    *(f"{act} schedule" for act in ("add", "set", "run", "pause", "resume", "remove")),
)
_NAMED = (*Category, *Kind, *State, *Transition, *Voice, *FailureReason, *ErrorClass, *SUGGESTIONS.values())


def phrases_used() -> set[str]:
    """All of them."""
    found = {ast.literal_eval(text) for text in _in_templates()} | set(_in_code())
    found |= {str(one) for one in _NAMED}
    return (
        found
        | set(MEASURES.values())
        | {one.sentence for one in Situation}
        | {UNREACHABLE, *OUTCOMES, *PROVENANCES, *TRIED, *TARGETS, *ACTIONS, *SCHEDULES}
    )


def _in_templates() -> Iterator[str]:
    for path in sorted((WEB / "templates").glob("*.html")):
        text = path.read_text("utf-8")
        yield from _CALL.findall(text)
        yield from (repr(one) for one in _NAV.findall(text))
        yield from (repr(one) for both in _CHOICE.findall(text) for one in both)


def _in_code() -> Iterator[str]:
    """What is passed to `t`, and what is kept to be passed to it later: verdicts, what was done."""
    for path in sorted(WEB.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _named(node.func) == "t":
                yield from _texts(*node.args[:1])
        if path.name == "node_ratings.py":
            yield from (one for one in _texts(tree) if one.startswith("{node}") and one.endswith("."))
        if path.name in ("failed.py", "nodes.py"):
            yield from (one for one in _texts(tree) if re.search(r"\{(n|node)\}", one) and one.endswith("."))


def _named(function: ast.expr) -> str:
    return str(getattr(function, "attr", getattr(function, "id", "")))


def _texts(*roots: ast.AST) -> Iterator[str]:
    for root in roots:
        for node in ast.walk(root):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
