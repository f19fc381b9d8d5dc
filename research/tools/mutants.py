"""Measure what tests detect: change one operator, constant or condition of a module at a time and run the tests.

    python -m research.tools.mutants --seed 1 --count 40 tasks/store/*.py --tests tests/store --tier fast

The changes are drawn from all modules together, the same ones for the same seed and source. They are made in a copy
of the tree. What follows `--tests` goes to pytest. A change that no test detects survives; run survivors against more
tests with `--only`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
PAIRS: Sequence[tuple[type[Any], type[Any]]] = [
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)),
]
OTHER = dict(PAIRS) | {right: left for left, right in PAIRS}


@dataclass(frozen=True)
class Mutant:
    """A module with one change."""

    module: str
    line: int
    before: str
    after: str
    source: str


def list_mutants(module: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a module, in the order of its source."""
    raw = source.encode()
    lines = raw.splitlines(keepends=True)
    for node in _changeable(ast.parse(source)):
        if (changed := _changed(node)) is None:
            continue
        start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
        end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
        before, after = raw[start:end].decode(), f"({ast.unparse(changed)})"
        text = (raw[:start] + after.encode() + raw[end:]).decode()
        yield Mutant(module, node.lineno, " ".join(before.split()), after, text)


def _changeable(node: ast.AST) -> Iterator[ast.expr]:
    """Yield expressions, but not annotations, decorators and f-strings, whose positions are not exact."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "decorator_list") or isinstance(child, ast.JoinedStr):
                continue
            if isinstance(child, ast.expr):
                yield child
            if isinstance(child, ast.AST):
                yield from _changeable(child)


def _changed(node: ast.expr) -> ast.expr | None:
    new = copy.deepcopy(node)
    match new:
        case ast.Compare(ops=[operator, *_]) if type(operator) in OTHER:
            new.ops[0] = OTHER[type(operator)]()
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OTHER:
            new.op = OTHER[type(operator)]()
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.IfExp(test=test):
            new.test = ast.UnaryOp(ast.Not(), test)
        case ast.Constant(value=bool(value)):
            new.value = not value
        case ast.Constant(value=int(value)):
            new.value = value + 1
        case ast.Constant(value=float(value)):
            new.value = 2.0 * value or 1.0
        case _:
            return None
    return new


def run_tests(tree: Path, arguments: Sequence[str], max_cpu_s: int) -> str | None:
    """Return the first failure, or `None` if all tests pass. CPU time is limited, because machines are shared."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *arguments]
    try:
        done = subprocess.run(
            ["bash", "-c", f'ulimit -t {max_cpu_s}; exec "$@"', "bash", *command],
            cwd=tree, capture_output=True, encoding="utf-8", timeout=20 * max_cpu_s,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "a timeout"
    failures = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return None if done.returncode == 0 else (failures or [f"exit status {done.returncode}"])[0][:150]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="+", help="paths of modules, relative to the project")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--only", type=int, nargs="*", help="run only the mutants with these numbers")
    parser.add_argument("--tests", nargs=argparse.REMAINDER, default=[], help="arguments of pytest")
    given = parser.parse_args()
    every = [one for name in given.modules for one in list_mutants(name, (ROOT / name).read_text("utf-8"))]
    drawn = Random(given.seed).sample(every, min(given.count, len(every)))
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree = shutil.copytree(
            ROOT, Path(folder) / "tree", ignore=shutil.ignore_patterns(".git", ".venv", ".*_cache")
        )
        if (shared := ROOT.parent / "shared").exists():
            tree.with_name("shared").symlink_to(shared.resolve())
        if failure := run_tests(tree, given.tests, 3600):
            sys.exit(f"the tests fail without a change: {failure}")
        cpu_s = os.times().children_user + os.times().children_system
        print(f"{len(drawn)} of {len(every)} mutants; the tests use {cpu_s:.0f} s of CPU", flush=True)
        killed, ran = Counter[str](), Counter[str]()
        for number, mutant in enumerate(drawn):
            if given.only is not None and number not in given.only:
                continue
            original = (tree / mutant.module).read_text("utf-8")
            _write(tree / mutant.module, mutant.source)
            failure = run_tests(tree, given.tests, int(30 + 2 * cpu_s))
            _write(tree / mutant.module, original)
            ran[mutant.module] += 1
            killed[mutant.module] += failure is not None
            verdict = f"killed by {failure}" if failure else "SURVIVED"
            print(
                f"{number} {mutant.module}:{mutant.line} {mutant.before} -> {mutant.after}: {verdict}",
                flush=True,
            )
        for module, count in sorted(ran.items()):
            print(f"{module}: {killed[module]} of {count} killed")


def _write(path: Path, text: str) -> None:
    """Write a module and remove its bytecode, which Python would use if size and second are the same."""
    path.write_text(text, "utf-8")
    Path(cache_from_source(str(path))).unlink(missing_ok=True)


if __name__ == "__main__":
    main()
