"""Make search URLs of queries, and replace queries with too many hits or none (part of `wake`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from splitter.catalog.model import Catalog, Engine
from splitter.keywords import ProductQuery
from splitter.urls import list_url, search_url

from tasks.domain.hit_count import EngineLimits, NewPartition, PartitionState, Provenance
from tasks.domain.reasons import as_document
from tasks.jobs.context import Context
from tasks.scheduling.query_refinement import DropWord, LeaveFull, SplitByTime, choose_refinement
from tasks.store.queue import tasks
from tasks.store.queue.tasks import ChunkKey, SleepingSubtask, TaskQuery
from tasks.store.sql.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Refinements:
    """Changes to the partitions of woken subtasks.

    Attributes:
        begin: first chunks (partition, number) of new partitions, to be released.
        stop: chunks (partition, number) without a following one, although they showed that there are more hits.
        details: details of the event by woken subtask: ``split``, ``relaxed`` or ``full``, with the reason.
    """

    begin: list[ChunkKey] = field(default_factory=list)
    stop: set[ChunkKey] = field(default_factory=set)
    details: dict[int, dict[str, Any]] = field(default_factory=dict)


def search_urls(catalog: Catalog, query: TaskQuery, pages: Sequence[int]) -> list[str]:
    """Return the search URLs of a query's result pages, given their numbers from 1.

    Raises:
        KeyError: the site has left the catalog.
    """
    engine = catalog.engine_of(query.site)
    if engine.discover == "list":
        sets = ProductQuery("", query.words, query.aliases).keyword_sets
        return [list_url(engine, sets, page) for page in pages]
    # If an engine can no longer restrict a search, these pages belong to the whole query, which was asked before.
    span = query.span if engine.times is not None else None
    return [search_url(engine, query.keywords, site=query.site, page=page, span=span) for page in pages]


def refine(
    tx: Transaction, context: Context, woken: Sequence[SleepingSubtask], partitions: dict[int, TaskQuery]
) -> Refinements:
    """Decide the next step for the partitions of these subtasks, and make the partitions that replace them.

    Args:
        partitions: partitions of these subtasks by id; changed ones are replaced in it.
    """
    done = Refinements()
    for view in woken:
        partition, engine = partitions.get(view.part_id), _engine(context, view.site)
        if partition is None or engine is None:
            continue
        if partition.state is PartitionState.OPEN and _may_change(partition, EngineLimits.for_engine(engine)):
            task = tasks.lock_partitions(tx, [partition.task_id])
            partition = _replace(tx, context, view, task, engine, done)
            partitions[partition.id] = partition
        if partition.state is PartitionState.SPLIT and partition.span is not None:
            done.stop.add((view.part_id, view.chunk))
    return done


def _engine(context: Context, site: str) -> Engine | None:
    """Return the engine of a site; `None` if the site left the catalog or is a list, whose queries can't be changed."""
    catalog = context.catalog
    engine = catalog.engine_of(site) if site in catalog.sites else None
    return engine if engine is not None and engine.discover == "search" else None


def _may_change(partition: TaskQuery, limits: EngineLimits) -> bool:
    """Return True if a partition may be split or relaxed, by its result pages so far."""
    return (partition.ended and not partition.listed) or partition.is_over(limits)


def _replace(
    tx: Transaction,
    context: Context,
    view: SleepingSubtask,
    task: Mapping[int, TaskQuery],
    engine: Engine,
    done: Refinements,
) -> TaskQuery:
    """Replace a subtask's partition by the next step, if there is one, and add that to `done`.

    Args:
        task: all partitions of its task, locked.

    Returns:
        The partition as it is now.
    """
    partition = task[view.part_id]
    if partition.state is not PartitionState.OPEN:
        return partition
    least = engine.times.least if engine.times is not None else None
    dates = partial(tasks.hit_dates, tx, partition.task_id)
    step = choose_refinement(partition, len(task), EngineLimits.for_engine(engine), least, tx.now, dates)
    chunk_pages = context.catalog.sites[view.site].chunk_pages
    new = NewPartition(
        partition.keywords, partition.pages, chunk_pages, partition.dropped, partition.own_words
    )
    by: list[NewPartition] = []
    match step:
        case None:
            return partition
        case LeaveFull():
            partition = replace(partition, state=PartitionState.FULL, provenance=Provenance.CAPPED)
        case SplitByTime():
            pages = math.ceil(engine.max_hits / engine.hits_per_page)
            by = [replace(new, pages=pages, start_at=span.start, end_at=span.end) for span in step.spans]
            partition = replace(partition, state=PartitionState.SPLIT)
        case DropWord():
            by = [replace(new, keywords=step.keywords, dropped=(*partition.dropped, step.dropped))]
            partition = replace(partition, state=PartitionState.RELAXED)
    done.begin.extend(tasks.replace_partition(tx, task, partition, by))
    done.details[view.id] = {str(partition.state): {"because": as_document(step.because)}}
    return partition
