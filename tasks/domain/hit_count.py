"""Hit counts of searches, and how sure they are: of one partition of a task, and of all of them.

A partition is one query: a keyword set, of any time or within a span. Its result pages are cut into chunks. A partition
with more hits than the engine lists is split into spans; one without a hit is relaxed to fewer words
(`tasks.scheduling.query_refinement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from splitter.spans import Span

if TYPE_CHECKING:
    from splitter.catalog.model import Engine


class Provenance(StrEnum):
    """The provenance of the number of hits found."""

    REPORTED = "reported"  # the engine printed it
    COUNTED = "counted"  # counted up to the last page
    CAPPED = "capped"  # the engine lists no more than this
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """Bounds of an engine's lists and numbers, in hits.

    Attributes:
        most: for one query, ever (its cap).
        per_page: on a full result page.
        count_cap: a reported number that is this or more means "at least"; None: every number is exact.
    """

    most: int = 760
    per_page: int = 10
    count_cap: int | None = None

    @classmethod
    def for_engine(cls, engine: Engine) -> EngineLimits:
        """Return the limits of an engine of the catalog."""
        return cls(engine.max_hits, engine.hits_per_page, engine.count_cap)


class PartitionState(StrEnum):
    """The state of a partition."""

    OPEN = "open"  # it is read, or will be
    SPLIT = "split"  # its spans are partitions of their own
    RELAXED = "relaxed"  # it had no hit; a partition with fewer words took its place
    FULL = "full"  # it has more hits than are listed, and cannot be split


@dataclass(frozen=True)
class NewPartition:
    """A query to be added to a task, and how its result pages are cut into chunks.

    Attributes:
        pages, chunk_pages: number of its result pages, and of those in a chunk.
        dropped: words that were left out, the first one first.
        own_words: a person chose its keywords.
        start_at, end_at: its span; None: of any time.
    """

    keywords: tuple[str, ...]
    pages: int
    chunk_pages: int
    dropped: tuple[str, ...] = ()
    own_words: bool = False
    start_at: datetime | None = None
    end_at: datetime | None = None

    @property
    def span(self) -> Span | None:
        """The range of time; `None`: any time."""
        return Span(self.start_at, self.end_at) if self.start_at and self.end_at else None

    @property
    def chunks(self) -> list[range]:
        """The numbers of its result pages, from 1 on, by chunk.

        The first chunk of a span is one page, which shows if the span holds too many hits.
        """
        first = 1 if self.start_at else self.chunk_pages
        begins = [1, *range(1 + first, self.pages + 1, self.chunk_pages), self.pages + 1]
        return [range(begin, end) for begin, end in pairwise(begins)] if self.pages else []


@dataclass(frozen=True, kw_only=True)
class Partition(NewPartition):
    """A query of a task, with the findings of its result pages so far.

    Attributes:
        first_chunk: number of its first chunk in its task.
        parent_id: the partition that it replaces, wholly or for its span.
        pages_read, listed: result pages that were read, and the hits on them.
        ended: the last one had no next page.
        reported: hits the engine reports, by the last page with a number; None: it reports none.
        new_hits: different hits that its task had not listed before: they became targets.
        found, provenance: its hit count.
    """

    id: int
    task_id: int = 0
    first_chunk: int = 1
    parent_id: int | None = None
    state: PartitionState = PartitionState.OPEN
    pages_read: int = 0
    listed: int = 0
    ended: bool = False
    reported: int | None = None
    new_hits: int = 0
    found: int | None = None
    provenance: Provenance = Provenance.UNKNOWN

    @property
    def end(self) -> int:
        """The number after its last chunk."""
        return self.first_chunk + len(self.chunks)

    def pages_of(self, chunk: int) -> range:
        """Return the numbers of the result pages of a chunk, by its number in the task."""
        return self.chunks[chunk - self.first_chunk]

    def is_at_cap(self, limits: EngineLimits) -> bool:
        """Return True if the engine lists no more, however many there are."""
        return self.pages_read * limits.per_page >= limits.most

    def is_whole(self, limits: EngineLimits) -> bool:
        """Return True if everything there is was listed."""
        return self.ended and (
            not self.is_at_cap(limits) or (self.reported is not None and self.reported <= limits.most)
        )

    def is_over(self, limits: EngineLimits) -> bool:
        """Return True if there are more hits than the engine lists: it reports more, or it listed its maximum."""
        if self.is_whole(limits):
            return False
        return self.is_at_cap(limits) if self.reported is None else self.reported > limits.most


@dataclass(frozen=True, slots=True)
class HitCount:
    """A number of hits and where it comes from. None: unknown; `CAPPED`: at least this many."""

    found: int | None = None
    provenance: Provenance = Provenance.UNKNOWN


def hit_count(partition: Partition, limits: EngineLimits) -> HitCount:
    """Return the hit count of a partition by its findings.

    Listed to its end it is counted, whatever the engine reports: engines make numbers up. Else the engine's number
    stands; at or above its `count_cap`, or if a full partition cannot be split, it means "at least".
    """
    reported, listed = partition.reported, partition.listed
    if partition.is_whole(limits):
        return HitCount(listed, Provenance.COUNTED)
    if reported is not None:
        is_capped = partition.state is PartitionState.FULL or (
            limits.count_cap is not None and reported >= limits.count_cap
        )
        return HitCount(max(reported, listed), Provenance.CAPPED if is_capped else Provenance.REPORTED)
    return HitCount(listed, Provenance.CAPPED) if partition.is_at_cap(limits) else HitCount()


def all_counted(partitions: Sequence[Partition]) -> bool:
    """Return True if every hit of a task was listed, so that its different hits can be counted."""
    # Of the others something took the place.
    of = [one for one in partitions if one.state in (PartitionState.OPEN, PartitionState.FULL)]
    return bool(of) and all(one.provenance is Provenance.COUNTED for one in of)


def task_hit_count(partitions: Sequence[Partition], different: int) -> HitCount:
    """How many hits a task has.

    Args:
        partitions: all of its partitions.
        different: its different hits; used if `all_counted`.

    Returns:
        The different hits if all were listed. Else the sum over the partitions, a split one by the sum of its
        spans once all of these are known (by its own number until then); capped if one of them is, else reported.
    """
    if all_counted(partitions):
        return HitCount(different, Provenance.COUNTED)
    below: dict[int | None, list[Partition]] = {}
    for partition in partitions:
        below.setdefault(partition.parent_id, []).append(partition)
    return _sum([_merge_parts(partition, below) for partition in below.get(None, ())])


def _merge_parts(partition: Partition, below: dict[int | None, list[Partition]]) -> HitCount:
    hits = HitCount(partition.found, partition.provenance)
    if partition.state not in (PartitionState.SPLIT, PartitionState.RELAXED):
        return hits
    inside = _sum([_merge_parts(one, below) for one in below.get(partition.id, ())])
    return hits if inside.found is None and partition.state is PartitionState.SPLIT else inside


def _sum(of: Sequence[HitCount]) -> HitCount:
    if not of or any(one.found is None for one in of):
        return HitCount()
    kinds = {one.provenance for one in of}
    from_weakest = (Provenance.CAPPED, Provenance.REPORTED, Provenance.COUNTED)
    weakest = next((kind for kind in from_weakest if kind in kinds), Provenance.UNKNOWN)
    return HitCount(sum(one.found or 0 for one in of), weakest)
