"""The table of periodic sweeps. APScheduler (embedded runner) and Celery beat (cluster) both run it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splitter.catalog.names import Group

    from tasks.domain.pages import Review
    from tasks.jobs.runtime import Control


def _link_reposts(control: Control) -> None:
    from tasks.jobs.repost_linking import SHARE_S, link_reposts

    link_reposts(control.store, control.write, time.thread_time, SHARE_S)


def _count_older(control: Control) -> None:
    from tasks.store.content.counted_reviews import STEPS_AT_ONCE, fill

    for _ in range(STEPS_AT_ONCE):
        if not control.goes_on() or not control.write(fill):
            return


def _judge_reviews(reviews: Sequence[Review], group: Group | None, category: str | None) -> Sequence[Review]:
    """Judge records that an older version stored without their voices."""
    from tasks.reading.judge.reviews import add_judgements  # brings numpy

    return add_judgements(reviews, group, category)


def _judge_links(control: Control) -> None:
    from tasks.jobs.judging import judge_links, link_judge

    of_page = link_judge(control.context.catalog, _judge_reviews)
    judge_links(control.store, control.write, of_page, control.goes_on)


def _train(control: Control) -> None:
    if control.context.settings.uses_run_times:
        from tasks.jobs.run_time_training import train_run_times  # brings numpy

        train_run_times(control.store, control.write, control.goes_on)


def _drop_old(control: Control) -> None:
    from tasks.store.queue.upkeep import drop_old

    drop_old(control.write, control.context.settings.keep_log, control.goes_on)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A periodic job.

    Attributes:
        every_s: seconds between two runs.
        does: one line for `schedule list`.
        run: runs the sweep outside of a transaction; `None` if `tasks.jobs.ticks` runs it in the scheduler's one.
    """

    name: str
    every_s: float
    does: str
    run: Callable[[Control], object] | None = None


SWEEPS: tuple[Sweep, ...] = (
    Sweep("plan", 5.0, "make the tasks of new products on every site that permits it", lambda c: c.plan()),
    Sweep("recall", 5.0, "take back silent leases; failed subtasks to another node or to a person"),
    Sweep("wake", 5.0, "SLEEP to DONE, follow-up subtasks, next chunks"),
    Sweep("admit", 5.0, "PRIORITY to WAIT, as far as WAIT has room"),
    Sweep("allocate", 5.0, "WAIT to CRAWL: give subtasks to nodes"),
    Sweep("rebalance", 5.0, "leases a node has not begun go where they begin sooner"),
    Sweep("deliver", 30.0, "make reports and exports that are due, and send them", lambda c: c.deliver()),
    Sweep("recrawl_due", 60.0, "begin a new round of products whose recrawl time has come"),
    Sweep(
        "links",
        5.0,
        "judge for which products stored pages are reviews that other products found",
        _judge_links,
    ),
    Sweep("reposts", 5.0, "link reviews whose text is nearly an earlier one's", _link_reposts),
    Sweep("counts", 5.0, "count older reviews by day and theme, after an upgrade", _count_older),
    Sweep("train", 60.0, "train the run times that balance decides by, every 10 minutes", _train),
    Sweep("seen", 60.0, "fill the shared set of stored pages (clusters only)", lambda c: c.fill_seen()),
    Sweep("retention", 3600.0, "drop details of old decisions, answers, refusals and event logs", _drop_old),
    Sweep("measure", 15.0, "store paces, permits and times of sweeps for /metrics; add up queue counts"),
    Sweep("rises", 900.0, "judge which themes of products rise, once a day", lambda c: c.rises()),
    Sweep("alerts", 60.0, "tell people when something goes wrong and when it is over", lambda c: c.alerts()),
    Sweep("report", 600.0, "write the report of subtasks that wait for a person", lambda c: c.report()),
)
"""The sweeps. Those that begin at the same time begin in this order: each makes work for the next."""


def interval_s(sweep: Sweep, silent_after_s: float) -> float:
    """Return the seconds between two runs, shorter in proportion if the silence is shorter than 60 s (lab, tests)."""
    return max(0.2, sweep.every_s * min(1.0, silent_after_s / 60.0))
