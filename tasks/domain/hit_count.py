"""How many hits a search has, and how sure that is: what a part of a task showed, and what its parts add up to.

A *part* is what an engine is asked in one go: a keyword set, of any time or within a span. A part that holds more than
the engine lists is divided into spans; one that holds nothing is relaxed to fewer words
(`tasks.scheduling.query_refinement`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from splitter.catalog.model import Engine


class Provenance(StrEnum):
    """Where the number of hits found comes from."""

    REPORTED = "reported"  # the engine printed it
    COUNTED = "counted"  # counted up to the last page
    CAPPED = "capped"  # the engine lists no more than this
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Lists:
    """What an engine lists, in hits.

    Attributes:
        most: for one query, ever (its cap).
        per_page: on a full result page.
        count_cap: a reported number that is this or more means "at least"; None: it is meant.
    """

    most: int = 760
    per_page: int = 10
    count_cap: int | None = None

    @classmethod
    def of(cls, engine: Engine) -> Lists:
        """Those of an engine of the catalog."""
        return cls(engine.max_hits, engine.hits_per_page, engine.count_cap)


class PartState(StrEnum):
    """What becomes of a part."""

    OPEN = "open"  # it is listed, or will be
    SPLIT = "split"  # its spans are asked one by one
    RELAXED = "relaxed"  # it had nothing; fewer words are asked
    FULL = "full"  # it holds more than is listed, and cannot be divided


@dataclass(frozen=True, slots=True)
class Listing:
    """What the result pages of a part showed so far.

    Attributes:
        reported: hits the engine says there are, by the last page that said so; None: it says nothing.
        listed: hits on these pages.
        pages: how many were read.
        ended: the last one had no next page.
    """

    reported: int | None
    listed: int
    pages: int
    ended: bool

    def at_cap(self, lists: Lists) -> bool:
        """Whether the engine lists no more, however many there are."""
        return self.pages * lists.per_page >= lists.most

    def whole(self, lists: Lists) -> bool:
        """Whether everything there is was listed."""
        return self.ended and (
            not self.at_cap(lists) or (self.reported is not None and self.reported <= lists.most)
        )

    def over(self, lists: Lists) -> bool:
        """Whether there is more than is ever listed, as far as is known: reported so, or listed up to the cap."""
        if self.whole(lists):
            return False
        return self.at_cap(lists) if self.reported is None else self.reported > lists.most


@dataclass(frozen=True, slots=True)
class Known:
    """A number of hits and where it comes from; None: unknown. `CAPPED` means "at least"."""

    found: int | None = None
    provenance: Provenance = Provenance.UNKNOWN


def known(listing: Listing, lists: Lists, state: PartState = PartState.OPEN) -> Known:
    """How many hits a part has.

    Listed to its end it is counted, whatever the engine says: engines make numbers up. Else the engine's number
    stands; at or above its `count_cap`, or where a part that is full cannot be divided, more is there than can be had.
    """
    if listing.whole(lists):
        return Known(listing.listed, Provenance.COUNTED)
    if listing.reported is not None:
        capped = state is PartState.FULL or (
            lists.count_cap is not None and listing.reported >= lists.count_cap
        )
        return Known(
            max(listing.reported, listing.listed), Provenance.CAPPED if capped else Provenance.REPORTED
        )
    if listing.at_cap(lists):
        return Known(listing.listed, Provenance.CAPPED)
    return Known()


@dataclass(frozen=True, slots=True)
class Part:
    """A part, for the sum.

    Attributes:
        parent: id of the part it takes the place of, wholly or for its span; None: of none.
    """

    id: int
    parent: int | None
    state: PartState
    known: Known


def leaves(parts: Sequence[Part]) -> list[Part]:
    """The parts whose hits add up to the task's: those that nothing took the place of."""
    return [part for part in parts if part.state in (PartState.OPEN, PartState.FULL)]


def all_counted(parts: Sequence[Part]) -> bool:
    """Whether every hit of a task was listed, so that its different hits are its number."""
    of = leaves(parts)
    return bool(of) and all(part.known.provenance is Provenance.COUNTED for part in of)


def total(parts: Sequence[Part], different: int) -> Known:
    """How many hits a task has.

    Args:
        parts: all of its parts.
        different: its different hits; of meaning where `all_counted`.

    Returns:
        The different hits where all were listed. Else the sum over the parts, each that was split by the sum of its
        spans once all of these are known (by its own number until then); capped where one of them is, else reported.
    """
    if all_counted(parts):
        return Known(different, Provenance.COUNTED)
    below: dict[int | None, list[Part]] = {}
    for part in parts:
        below.setdefault(part.parent, []).append(part)
    return _sum([_of(part, below) for part in below.get(None, ())])


def _of(part: Part, below: dict[int | None, list[Part]]) -> Known:
    if part.state not in (PartState.SPLIT, PartState.RELAXED):
        return part.known
    inside = _sum([_of(one, below) for one in below.get(part.id, ())])
    return part.known if inside.found is None and part.state is PartState.SPLIT else inside


def _sum(of: Sequence[Known]) -> Known:
    if not of or any(one.found is None for one in of):
        return Known()
    kinds = {one.provenance for one in of}
    weakest = next(
        kind for kind in (Provenance.CAPPED, Provenance.REPORTED, Provenance.COUNTED) if kind in kinds
    )
    return Known(sum(one.found or 0 for one in of), weakest)
