"""Collect the texts that people read, update the catalogs of `app/locale` and compile them: `make locale`.

A text is collected from: calls of `translate`, `plural` and `t`; messages of our exceptions; the help of commands and options; sentences of
reasons, situations and suggestions; names of states and other enums; templates. Translations that exist are kept. `--check` prints what lacks a
translation and exits with 1 if there is any.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import click
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

import app
from app.cli.help_texts import change_texts
from app.cli.inspect.doctor import TEXTS
from app.cli.main import RESEARCH, cli
from app.cli.program import GROUPS
from app.insight.rows import MEANINGS, ThemeState
from app.views.fields import NodeState
from app.views.loop_state import Situation
from app.views.words import DOMAIN, FOLDER, LANGUAGES
from splitter.catalog.load import builtin
from splitter.catalog.names import BUILTIN, Category, Group, Kind
from splitter.lexicon import Role
from tasks.domain.breaker import BreakerState
from tasks.domain.failures import SUGGESTIONS, ErrorClass, FailureReason
from tasks.domain.reasons import Reason
from tasks.domain.states import State, Transition
from tasks.domain.verdicts import Verdict
from tasks.domain.voices import Voice
from tasks.jobs.schedule import SWEEPS
from tasks.reading.relevance import RejectReason
from tasks.store.content.corrections import LeftOut

ROOT = Path(app.__file__).parents[1]
SOURCES = ("app", "tasks", "splitter")
EXTRA = FOLDER / "extra.txt"
"""Texts that the product takes from a library or from data, one a line: click's words and names of stored values."""

_NO_DATE = datetime(2000, 1, 1, tzinfo=UTC)
"""The dates in a compiled catalog: equal texts give equal files."""

_SEPARATORS = (", ", "; ", ": ")
"""Texts without a word that have another form in Chinese."""
_TEMPLATE_CALL = re.compile(r"""\b(?:t|translate)\(\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')""")
_TEMPLATE_PLURAL = re.compile(r"""\bp\(("(?:[^"\\]|\\.)*"), ("(?:[^"\\]|\\.)*")""")
_TEMPLATE_NAV = re.compile(r"""\("/[\w/]*", "([^"]+)"\)""")
_TEMPLATE_CHOICE = re.compile(r"""\bt\("([^"]+)" if [^)]{1,80} else "([^"]+)"\)""")

Message = str | tuple[str, str]


def collect_messages() -> set[Message]:
    """Return each text that people may read; a pair is a singular and a plural."""
    found: set[Message] = set(EXTRA.read_text("utf-8").splitlines())
    paths = (path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py")))
    modules = [ast.parse(path.read_text("utf-8")) for path in paths]
    names = {*_list_exceptions(modules), "unknown", "cls", "translate", "t"}
    for module in modules:
        found.update(_read_module(module, names))
    for path in Path(click.__file__).parent.glob("*.py"):
        found.update(_read_module(ast.parse(path.read_text("utf-8")), {"_"}))
    found.update(read_templates())
    found.update(_read_help(cli.to_info_dict(cli.make_context("reviewloop", [], resilient_parsing=True))))
    found.update((*GROUPS, *RESEARCH.values()))
    for sentences in (Reason, Situation):
        found.update(one.sentence for one in sentences)
    found.update((*SUGGESTIONS.values(), *MEANINGS.values()))
    found.update(one.does for one in SWEEPS)
    found.update(_read_sites())
    found.update(*TEXTS.values())
    found.update(
        map(str, (*Category, *Group, *Kind, *State, *Transition, *Voice, *FailureReason, *ErrorClass))
    )
    found.update(map(str, (*NodeState, *BreakerState, *ThemeState, *Verdict, *RejectReason, *LeftOut, *Role)))
    return {
        text
        for text in found
        if text in _SEPARATORS or re.search("[A-Za-z]", text if isinstance(text, str) else text[0])
    }


def _read_sites() -> Iterator[str]:
    """Yield the reasons that the built-in catalogs of sites give."""
    for catalog in map(builtin, BUILTIN):
        yield from (engine.unsupported for engine in catalog.engines.values())
        decisions = [engine.robots for engine in catalog.engines.values()]
        decisions += [site.robots for site in catalog.sites.values()]
        yield from (one.reason for one in decisions if one is not None and not one.obey)


def _list_exceptions(modules: Iterable[ast.Module]) -> set[str]:
    """Return the names of the classes of messages and errors that people read."""
    bases = {
        node.name: {getattr(base, "attr", getattr(base, "id", "")) for base in node.bases}
        for module in modules
        for node in ast.walk(module)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Message"}
    while below := {name for name, above in bases.items() if above & found and name not in found}:
        found |= below
    return found


def _read_module(module: ast.Module, names: set[str]) -> Iterator[Message]:
    for node in ast.walk(module):
        if not isinstance(node, ast.Call):
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("plural", "ngettext") and all(isinstance(one, ast.Constant) for one in node.args[:2]):
            one, many = (ast.literal_eval(argument) for argument in node.args[:2])
            yield one, many
        elif name in names and node.args:
            yield from _list_literals(node.args[0])


def _list_literals(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _list_literals(node.body)
        yield from _list_literals(node.orelse)


def read_templates() -> Iterator[Message]:
    """Yield the texts of the dashboard's pages and of reports."""
    for folder in ("web", "reports"):
        for path in sorted((ROOT / "app" / folder / "templates").glob("*.html")):
            yield from _read_template(path.read_text("utf-8"))


def _read_template(text: str) -> Iterator[Message]:
    yield from (ast.literal_eval(one) for one in _TEMPLATE_CALL.findall(text))
    yield from _TEMPLATE_NAV.findall(text)
    yield from (
        (ast.literal_eval(one), ast.literal_eval(many)) for one, many in _TEMPLATE_PLURAL.findall(text)
    )
    for both in _TEMPLATE_CHOICE.findall(text):
        yield from both


def _read_help(command: dict[str, Any]) -> Iterator[str]:
    """Yield the help of a command, of its options and of the commands below it."""
    yield from _list_texts(command.get("help") or "")
    for option in command.get("params", ()):
        yield from _list_texts(option.get("help") or "")
    for below in command.get("commands", {}).values():
        yield from _read_help(below)


def _list_texts(text: str) -> list[str]:
    """Return the paragraphs and remarks of a help text."""
    found: list[str] = []

    def keep(one: str) -> str:
        found.append(one)
        return one

    change_texts(text, keep)
    return found


def update_catalog(code: str, messages: Iterable[Message]) -> Catalog:
    """Return the catalog of a language with these messages and the translations that its file has."""
    known = read_catalog(code)
    catalog = Catalog(locale=code, domain=DOMAIN, fuzzy=False)
    for message in messages:
        before = known.get(message[0] if isinstance(message, tuple) else message)
        catalog.add(message, before.string if before is not None else "")
    for before in known:
        if before.id and str(before.id).startswith("field."):
            catalog.add(before.id, before.string)
    return catalog


def read_catalog(code: str) -> Catalog:
    """Return the catalog of a language as its file has it."""
    with (_find_folder(code) / f"{DOMAIN}.po").open("rb") as file:
        catalog = read_po(file, locale=code)
    catalog.creation_date = catalog.revision_date = _NO_DATE
    return catalog


def list_untranslated(catalog: Catalog) -> list[str]:
    """Return the texts of a catalog that have no translation."""
    return [str(one.id) for one in catalog if one.id and not any(_list_forms(one.string))]


def _list_forms(string: Any) -> tuple[str, ...]:
    return (string,) if isinstance(string, str) else tuple(string)


def format_po(catalog: Catalog) -> bytes:
    """Return a catalog as the text of its file: sorted, without dates or places, so that changes are easy to read."""
    file = BytesIO()
    write_po(file, catalog, width=0, no_location=True, omit_header=True, sort_output=True)
    header = (
        b'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=utf-8\\n"\n'
        + f'"Plural-Forms: {catalog.plural_forms}\\n"\n\n'.encode()
    )
    return header + file.getvalue()


def format_mo(catalog: Catalog) -> bytes:
    """Return a catalog in the compiled form that gettext reads."""
    file = BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def _find_folder(code: str) -> Path:
    return FOLDER / code / "LC_MESSAGES"


def main() -> None:
    """Update and compile all catalogs."""
    messages, lacking = collect_messages(), 0
    for code in LANGUAGES:
        catalog = update_catalog(code, messages if code != "en" else ())
        folder = _find_folder(code)
        (folder / f"{DOMAIN}.po").write_bytes(format_po(catalog))
        (folder / f"{DOMAIN}.mo").write_bytes(format_mo(read_catalog(code)))
        untranslated = list_untranslated(catalog)
        lacking += len(untranslated)
        print(f"{code}: {len(catalog)} texts, {len(untranslated)} without a translation")
        if "--check" in sys.argv:
            print("\n".join(untranslated))
    sys.exit(1 if lacking and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
