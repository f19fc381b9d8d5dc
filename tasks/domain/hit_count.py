"""Hit counts of searches, and how sure they are: of one partition of a task, and of all of them.

A partition is one query: a keyword set, of any time or within a span. Its result pages are cut into chunks. A partition
with more hits than the engine lists is split into spans; one without a hit is relaxed to fewer words
(`tasks.scheduling.query_refinement`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

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
    def of(cls, engine: Engine) -> EngineLimits:
        """The limits of an engine of the catalog."""
        return cls(engine.max_hits, engine.hits_per_page, engine.count_cap)


def chunk_count(pages: int, chunk_pages: int, *, spanned: bool) -> int:
    """Return the number of chunks of a partition; for the arguments see `chunk_range`."""
    first = 1 if spanned else chunk_pages
    return 1 + math.ceil(max(0, pages - first) / chunk_pages) if pages else 0


def chunk_range(place: int, pages: int, chunk_pages: int, *, spanned: bool) -> range:
    """Return the numbers of the result pages of a chunk.

    Args:
        place: of the chunk in its partition, from 0.
        pages: number of result pages of the partition, from 1 on.
        chunk_pages: maximum number of result pages in a chunk.
        spanned: the partition has a span: its first chunk is one page, which shows if the span holds too many hits.
    """
    first = 1 if spanned else chunk_pages
    begin = 1 if place == 0 else 1 + first + (place - 1) * chunk_pages
    return range(begin, min(begin + (chunk_pages if place else first), pages + 1))


class PartitionState(StrEnum):
    """The state of a partition."""

    OPEN = "open"  # it is read, or will be
    SPLIT = "split"  # its spans are partitions of their own
    RELAXED = "relaxed"  # it had no hit; a partition with fewer words took its place
    FULL = "full"  # it has more hits than are listed, and cannot be split


@dataclass(frozen=True, slots=True)
class Listing:
    """The findings of a partition's result pages so far.

    Attributes:
        reported: hits the engine reports, by the last page with a number; None: it reports none.
        listed: hits on these pages.
        pages: how many were read.
        ended: the last one had no next page.
    """

    reported: int | None
    listed: int
    pages: int
    ended: bool

    def at_cap(self, limits: EngineLimits) -> bool:
        """Whether the engine lists no more, however many there are."""
        return self.pages * limits.per_page >= limits.most

    def whole(self, limits: EngineLimits) -> bool:
        """Whether everything there is was listed."""
        return self.ended and (
            not self.at_cap(limits) or (self.reported is not None and self.reported <= limits.most)
        )

    def over(self, limits: EngineLimits) -> bool:
        """Whether there is more than is ever listed, as far as is known: reported so, or listed up to the cap."""
        if self.whole(limits):
            return False
        return self.at_cap(limits) if self.reported is None else self.reported > limits.most


@dataclass(frozen=True, slots=True)
class HitCount:
    """A number of hits and where it comes from; None: unknown. `CAPPED` means "at least"."""

    found: int | None = None
    provenance: Provenance = Provenance.UNKNOWN


def hit_count(
    listing: Listing, limits: EngineLimits, state: PartitionState = PartitionState.OPEN
) -> HitCount:
    """How many hits a partition has.

    Listed to its end it is counted, whatever the engine reports: engines make numbers up. Else the engine's number
    stands; at or above its `count_cap`, or where a full partition cannot be split, it means "at least".
    """
    if listing.whole(limits):
        return HitCount(listing.listed, Provenance.COUNTED)
    if listing.reported is not None:
        capped = state is PartitionState.FULL or (
            limits.count_cap is not None and listing.reported >= limits.count_cap
        )
        return HitCount(
            max(listing.reported, listing.listed), Provenance.CAPPED if capped else Provenance.REPORTED
        )
    if listing.at_cap(limits):
        return HitCount(listing.listed, Provenance.CAPPED)
    return HitCount()


@dataclass(frozen=True, slots=True)
class Partition:
    """A partition, as it enters the hit count of its task.

    Attributes:
        parent: id of the partition it takes the place of, wholly or for its span; None: of none.
    """

    id: int
    parent: int | None
    state: PartitionState
    hits: HitCount


def all_counted(partitions: Sequence[Partition]) -> bool:
    """Whether every hit of a task was listed, so that its different hits are its number."""
    # Of the others something took the place.
    of = [one for one in partitions if one.state in (PartitionState.OPEN, PartitionState.FULL)]
    return bool(of) and all(one.hits.provenance is Provenance.COUNTED for one in of)


def task_hit_count(partitions: Sequence[Partition], different: int) -> HitCount:
    """How many hits a task has.

    Args:
        partitions: all of its partitions.
        different: its different hits; of meaning where `all_counted`.

    Returns:
        The different hits where all were listed. Else the sum over the partitions, a split one by the sum of its
        spans once all of these are known (by its own number until then); capped where one of them is, else reported.
    """
    if all_counted(partitions):
        return HitCount(different, Provenance.COUNTED)
    below: dict[int | None, list[Partition]] = {}
    for partition in partitions:
        below.setdefault(partition.parent, []).append(partition)
    return _sum([_of(partition, below) for partition in below.get(None, ())])


def _of(partition: Partition, below: dict[int | None, list[Partition]]) -> HitCount:
    if partition.state not in (PartitionState.SPLIT, PartitionState.RELAXED):
        return partition.hits
    inside = _sum([_of(one, below) for one in below.get(partition.id, ())])
    return partition.hits if inside.found is None and partition.state is PartitionState.SPLIT else inside


def _sum(of: Sequence[HitCount]) -> HitCount:
    if not of or any(one.found is None for one in of):
        return HitCount()
    kinds = {one.provenance for one in of}
    weakest = next(
        kind for kind in (Provenance.CAPPED, Provenance.REPORTED, Provenance.COUNTED) if kind in kinds
    )
    return HitCount(sum(one.found or 0 for one in of), weakest)
