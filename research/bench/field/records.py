"""Finished runs with their bounds, and the file that stores them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from research.bench.field import bound
from research.bench.field.bound import Facts
from research.bench.field.measured import SHARES, SLOTS, Measured, Runner
from research.bench.field.worlds import JOBS, Regime, World, draw, hits
from splitter.errors import InputError
from tasks.worker.settings import CrawlSettings

SMALL = "small"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What somebody who knew all rates would reach (`research.bench.field.bound`).

    Attributes:
        pages_at_mark: on average.
        possible_at: by name (see `research.bench.field.measured.SHARES`), when that share could be stored; None: never.
    """

    pages_at_mark: float
    possible_at: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A run that is wanted; `seconds`: the most it takes."""

    regime: str
    job: str
    nodes: int
    seed: int
    strategy: str
    seconds: float
    runner: str = Runner.EMBEDDED.value

    @property
    def label(self) -> str:
        """The regime; with the job's name unless that is small, and with the runner's if it is a cluster."""
        more = {self.job: SMALL, self.runner: Runner.EMBEDDED}
        return "-".join([self.regime, *(name for name, usual in more.items() if name != usual)])

    @property
    def world(self) -> World:
        """The world that the run is made in."""
        return draw(Regime(self.regime), self.seed, products=JOBS[self.job], nodes=self.nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(Run):
    """A finished run, its bound, and what was measured."""

    bound: Bound
    measured: Measured


def facts_of(world: World) -> Facts:
    """Return what the bound of a world rests on."""
    return bound.facts_of(world, hits(world), SLOTS * CrawlSettings().lanes)


def bound_of(world: World, mark_s: float) -> Bound:
    """Return the bound of a world at the mark, and when shares could be stored."""
    facts = facts_of(world)
    return Bound(
        pages_at_mark=bound.pages_by(facts, mark_s),
        possible_at=dict(zip(SHARES, bound.times_of(facts, tuple(SHARES.values())), strict=True)),
    )


def read(file: Path) -> list[Record]:
    """Return the finished runs in a file: one JSON object a line. Raises InputError."""
    adapter = TypeAdapter(Record)
    records = []
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(lines, 1):
        try:
            records.append(adapter.validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise InputError(f"{file}:{number}: no run of `bench field`: {first['msg']}") from error
    return records


def append(file: Path, one: Record) -> None:
    """Add a run to a file, which is made if it is missing."""
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(one)) + "\n")
