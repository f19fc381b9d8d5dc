"""Makes the partitions that take the place of queries with too many hits, or with none (part of `wake`)."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from splitter.catalog.model import Engine
from splitter.spans import Span
from splitter.split import chunks as cut
from splitter.urls import search_url

from tasks.domain.hit_count import EngineLimits, PartitionState
from tasks.jobs.context import Context
from tasks.scheduling.query_refinement import DropWord, LeaveFull, ReadPartition, SplitByTime, refined
from tasks.store.queue import partitions
from tasks.store.queue.partitions import NewPartition, PartitionRow
from tasks.store.queue.snapshot import SleepingView
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Refinements:
    """Changes to the partitions of woken subtasks.

    Attributes:
        begin: first chunks (partition, number) of new partitions, to be released.
        stop: chunks (partition, number) that nothing follows, though they showed that there is more.
        details: by woken subtask, what its event says: ``split``, ``relaxed`` or ``full``, and why.
    """

    begin: list[tuple[int, int]] = field(default_factory=list)
    stop: set[tuple[int, int]] = field(default_factory=set)
    details: dict[int, dict[str, str]] = field(default_factory=dict)


def refine(conn: Transaction, now: datetime, context: Context, woken: Sequence[SleepingView]) -> Refinements:
    """Decide what becomes of the partitions of these subtasks, and make those that take their place, once each."""
    done = Refinements()
    seen = partitions.by_id(conn, {view.part_id for view in woken})
    for view in woken:
        partition = seen.get(view.part_id)
        engine = _engine(context, view.site)
        if partition is None or engine is None:
            continue
        if partition.state is PartitionState.SPLIT and partition.span is not None:
            done.stop.add((view.part_id, view.chunk))
        if partition.state is not PartitionState.OPEN or not _may_change(partition, EngineLimits.of(engine)):
            continue
        there = partitions.partitions_of_tasks(conn, [partition.task_id])
        partition = seen[partition.id] = next(one for one in there if one.id == partition.id)
        made = _replaced(conn, now, context, view, partition, engine, there)
        if made is None:
            continue
        state, step, begin = made
        if state is PartitionState.SPLIT and partition.span is not None:
            done.stop.add((view.part_id, view.chunk))
        done.begin.extend(begin)
        done.details[view.id] = {str(state): step.why}
        seen |= partitions.by_id(conn, [partition.id])
    return done


def _engine(context: Context, site: str) -> Engine | None:
    """The engine of a site; None where its queries can't be changed: it left the catalog, or is a list."""
    catalog = context.catalog
    engine = catalog.engine_of(site) if site in catalog.sites else None
    return engine if engine is not None and engine.discover == "search" else None


def _may_change(partition: PartitionRow, limits: EngineLimits) -> bool:
    """Whether a partition may be split or relaxed, by what it showed."""
    listing = partition.listing
    return (listing.ended and not listing.listed) or listing.over(limits)


def _replaced(
    conn: Transaction,
    now: datetime,
    context: Context,
    view: SleepingView,
    partition: PartitionRow,
    engine: Engine,
    there: Collection[PartitionRow],
) -> tuple[PartitionState, SplitByTime | DropWord | LeaveFull, list[tuple[int, int]]] | None:
    step = refined(
        ReadPartition(partition.keywords, partition.span, partition.own_words, partition.listing, len(there)),
        EngineLimits.of(engine),
        engine.times.least if engine.times is not None else None,
        now,
        lambda: partitions.hit_dates(conn, partition.task_id),
    )
    chunk_pages = context.catalog.sites[view.site].chunk_pages
    by: list[NewPartition] = []
    match step:
        case None:
            return None
        case LeaveFull():
            state = PartitionState.FULL
        case SplitByTime():
            state = PartitionState.SPLIT
            pages = math.ceil(engine.max_hits / engine.hits_per_page)
            for span in step.spans:
                urls = _search_urls(engine, partition.keywords, view.site, pages, span)
                # One page shows whether the span holds too much.
                seeds = [urls[:1], *cut(urls[1:], chunk_pages)]
                by.append(
                    NewPartition(partition.keywords, seeds, partition.dropped, partition.own_words, span)
                )
        case DropWord():
            state = PartitionState.RELAXED
            pages = partitions.result_page_count(conn, partition)
            urls = _search_urls(engine, step.keywords, view.site, pages)
            dropped = (*partition.dropped, step.dropped)
            by.append(NewPartition(step.keywords, cut(urls, chunk_pages), dropped, partition.own_words))
    return state, step, partitions.replace_partition(conn, partition, state, by)


def _search_urls(
    engine: Engine, keywords: Sequence[str], site: str, pages: int, span: Span | None = None
) -> list[str]:
    return [search_url(engine, keywords, site=site, page=n, span=span) for n in range(1, pages + 1)]
