"""The search URLs of queries, and the queries that replace those with too many hits, or with none (part of `wake`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from splitter.catalog.model import Catalog, Engine
from splitter.keywords import ProductQuery
from splitter.urls import list_url, search_url

from tasks.domain.hit_count import EngineLimits, PartitionState
from tasks.jobs.context import Context
from tasks.scheduling.query_refinement import DropWord, LeaveFull, ReadPartition, SplitByTime, refined
from tasks.store.queue import partitions
from tasks.store.queue.partitions import ChunkKey, NewPartition, PartitionRow
from tasks.store.queue.snapshot import SleepingView
from tasks.store.queue.tasks import TaskQuery
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Refinements:
    """Changes to the partitions of woken subtasks.

    Attributes:
        begin: first chunks (partition, number) of new partitions, to be released.
        stop: chunks (partition, number) that nothing follows, though they showed that there is more.
        details: by woken subtask, what its event says: ``split``, ``relaxed`` or ``full``, and why.
    """

    begin: list[ChunkKey] = field(default_factory=list)
    stop: set[ChunkKey] = field(default_factory=set)
    details: dict[int, dict[str, str]] = field(default_factory=dict)


def search_urls(catalog: Catalog, query: TaskQuery, pages: Sequence[int]) -> list[str]:
    """Return the search URLs of a query's result pages, by their numbers from 1 on.

    Raises:
        KeyError: its site has left the catalog.
    """
    engine = catalog.engine_of(query.site)
    if engine.discover == "list":
        sets = ProductQuery("", query.words, query.aliases).keyword_sets
        return [list_url(engine, sets, page) for page in pages]
    # If an engine can't restrict a search any more, these are the pages of the whole query, which were asked before.
    span = query.span if engine.times is not None else None
    return [search_url(engine, query.keywords, site=query.site, page=page, span=span) for page in pages]


def refine(tx: Transaction, context: Context, woken: Sequence[SleepingView]) -> Refinements:
    """Decide what becomes of the partitions of these subtasks, and make those that take their place, once each."""
    done = Refinements()
    seen = partitions.partitions_by_id(tx, {view.part_id for view in woken})
    for view in woken:
        partition = seen.get(view.part_id)
        engine = _engine(context, view.site)
        if partition is None or engine is None:
            continue
        if partition.state is PartitionState.SPLIT and partition.span is not None:
            done.stop.add((view.part_id, view.chunk))
        if partition.state is not PartitionState.OPEN or not _may_change(partition, EngineLimits.of(engine)):
            continue
        there = partitions.partitions_of_tasks(tx, [partition.task_id])
        partition = seen[partition.id] = next(one for one in there if one.id == partition.id)
        made = _replace(tx, context, view, partition, engine, len(there))
        if made is None:
            continue
        state, step, begin = made
        if state is PartitionState.SPLIT and partition.span is not None:
            done.stop.add((view.part_id, view.chunk))
        done.begin.extend(begin)
        done.details[view.id] = {str(state): step.why}
        seen |= partitions.partitions_by_id(tx, [partition.id])
    return done


def _engine(context: Context, site: str) -> Engine | None:
    """Return the engine of a site; None if its queries can't be changed: it left the catalog, or is a list."""
    catalog = context.catalog
    engine = catalog.engine_of(site) if site in catalog.sites else None
    return engine if engine is not None and engine.discover == "search" else None


def _may_change(partition: PartitionRow, limits: EngineLimits) -> bool:
    """Return True if a partition may be split or relaxed, by its result pages so far."""
    listing = partition.listing
    return (listing.ended and not listing.listed) or listing.over(limits)


def _replace(
    tx: Transaction,
    context: Context,
    view: SleepingView,
    partition: PartitionRow,
    engine: Engine,
    n: int,
) -> tuple[PartitionState, SplitByTime | DropWord | LeaveFull, list[ChunkKey]] | None:
    """Replace a partition by the next step, if there is one; `n`: the number of partitions of its task."""
    step = refined(
        ReadPartition(partition.keywords, partition.span, partition.own_words, partition.listing, n),
        EngineLimits.of(engine),
        engine.times.least if engine.times is not None else None,
        tx.now,
        lambda: partitions.hit_dates(tx, partition.task_id),
    )
    chunk_pages = context.catalog.sites[view.site].chunk_pages
    dropped, own = partition.dropped, partition.own_words
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
                by.append(NewPartition(partition.keywords, pages, chunk_pages, dropped, own, span))
        case DropWord():
            state = PartitionState.RELAXED
            dropped = (*dropped, step.dropped)
            by.append(NewPartition(step.keywords, partition.pages, chunk_pages, dropped, own))
    return state, step, partitions.replace_partition(tx, partition, state, by)
