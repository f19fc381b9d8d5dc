"""Queries that hold too much are asked span by span, those that hold nothing with fewer words (part of `wake`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from splitter.catalog.model import Engine
from splitter.split import chunks as cut
from splitter.urls import search_url
from sqlalchemy import Connection

from tasks.domain.hit_count import Lists, PartState
from tasks.jobs.context import Context
from tasks.scheduling.query_refinement import Asked, Full, Relax, Split, next_step
from tasks.store import partitions as parts
from tasks.store.partitions import NewPartition, PartitionRow
from tasks.store.views import SleepingView


@dataclass(frozen=True, slots=True)
class Divided:
    """What became of the parts of woken subtasks.

    Attributes:
        begin: first chunks (task, number) of new parts, to be released.
        stop: chunks (task, number) that nothing follows, though they showed that there is more.
        told: by woken subtask, what the event tells: ``split``, ``relaxed`` or ``full``, and why.
    """

    begin: list[tuple[int, int]] = field(default_factory=list)
    stop: set[tuple[int, int]] = field(default_factory=set)
    told: dict[int, dict[str, str]] = field(default_factory=dict)


def divide(conn: Connection, now: datetime, context: Context, woken: Sequence[SleepingView]) -> Divided:
    """Decide what becomes of the parts of these subtasks, and make what takes their place. Once a part."""
    divided = Divided()
    seen = parts.by_id(conn, {view.part_id for view in woken if view.part_id is not None})
    for view in woken:
        part = seen.get(view.part_id or 0)
        engine = _engine(context, view.site)
        if part is None or engine is None:
            continue
        if part.state is PartState.SPLIT and part.span is not None:
            divided.stop.add((view.task_id, view.chunk))
        if part.state is not PartState.OPEN or not _of_note(part, Lists.of(engine)):
            continue
        there = parts.of_tasks(conn, [part.task_id])
        part = seen[part.id] = next(one for one in there if one.id == part.id)
        made = _replaced(conn, now, context, view, part, engine, there)
        if made is None:
            continue
        state, step, begin = made
        if state is PartState.SPLIT and part.span is not None:
            divided.stop.add((view.task_id, view.chunk))
        divided.begin.extend((part.task_id, number) for number in begin)
        divided.told[view.id] = {str(state): step.why}
        seen |= parts.by_id(conn, [part.id])
    return divided


def _engine(context: Context, site: str) -> Engine | None:
    catalog = context.catalog
    return catalog.engine_of(site) if site in catalog.sites else None


def _of_note(part: PartitionRow, lists: Lists) -> bool:
    """Whether anything but going on may become of a part."""
    listing = part.listing
    return (listing.ended and not listing.listed) or listing.over(lists)


def _replaced(
    conn: Connection,
    now: datetime,
    context: Context,
    view: SleepingView,
    part: PartitionRow,
    engine: Engine,
    there: Collection[PartitionRow],
) -> tuple[PartState, Split | Relax | Full, list[int]] | None:
    rules = context.settings.narrowing
    step = next_step(
        Asked(part.keywords, part.span, part.own_words, part.listing, len(there)),
        Lists.of(engine),
        engine.times.least if engine.times is not None else None,
        now,
        lambda: parts.dates(conn, part.task_id),
        rules,
    )
    chunk_pages = context.catalog.sites[view.site].chunk_pages
    match step:
        case None:
            return None
        case Full():
            parts.replace_part(conn, part, PartState.FULL, [])
            return PartState.FULL, step, []
        case Split():
            pages = math.ceil(engine.max_hits / engine.hits_per_page)
            by = []
            for span in step.spans:
                urls = [
                    search_url(engine, part.keywords, site=view.site, page=n, span=span)
                    for n in range(1, pages + 1)
                ]
                # One page tells whether the span holds too much.
                seeds = [urls[:1], *cut(urls[1:], chunk_pages)]
                by.append(NewPartition(part.keywords, seeds, part.dropped, part.own_words, span))
            return PartState.SPLIT, step, parts.replace_part(conn, part, PartState.SPLIT, by)
        case Relax():
            pages = sum(len(urls) for urls in parts.urls_of(conn, part))
            urls = [search_url(engine, step.keywords, site=view.site, page=n) for n in range(1, pages + 1)]
            fewer = NewPartition(
                step.keywords, cut(urls, chunk_pages), (*part.dropped, step.dropped), part.own_words
            )
            return PartState.RELAXED, step, parts.replace_part(conn, part, PartState.RELAXED, [fewer])
