"""The one table of periodic sweeps: APScheduler (embedded) and Celery beat (cluster) both run it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sweep:
    """A periodic job.

    Attributes:
        every_s: seconds between two runs.
        does: one line for `schedule list`.
    """

    name: str
    every_s: float
    does: str


SWEEPS: tuple[Sweep, ...] = (
    Sweep("plan", 2.0, "make the tasks of new products, on every site that is permitted"),
    Sweep("admit", 5.0, "PRIORITY to WAIT, as far as WAIT has room"),
    Sweep("allocate", 5.0, "WAIT to CRAWL: give subtasks to nodes"),
    Sweep("rebalance", 5.0, "leases a node has not begun go where they begin sooner"),
    Sweep("recall", 5.0, "take back silent leases; failed subtasks to another node or to a person"),
    Sweep("wake", 5.0, "SLEEP to DONE, follow-up subtasks, next chunks"),
    Sweep("deliver", 30.0, "make the reports and exports that are due, and hand them over"),
    Sweep("recrawl_due", 60.0, "begin a new round of products whose recrawl time has come"),
    Sweep("reposts", 2.0, "link reviews whose text is nearly an earlier one's"),
    Sweep("train", 60.0, "train the run times that balance decides by, every 10 minutes (only with balance)"),
    Sweep("seen", 60.0, "fill the shared set of stored pages where it was lost (clusters only)"),
    Sweep("retention", 3600.0, "drop the data behind old decisions, old answers, refusals and event logs"),
    Sweep(
        "measure",
        15.0,
        "keep for /metrics what only the scheduler knows: paces, permits, times of its sweeps; add up queue counts",
    ),
    Sweep("alerts", 60.0, "look what is wrong, and tell people once when it begins and once when it is over"),
    Sweep("report", 600.0, "write the report of subtasks that wait for a person"),
)


def interval_s(sweep: Sweep, silent_after_s: float) -> float:
    """Seconds between two runs, in step with a silence shorter than the usual 60 s (the lab, tests)."""
    return max(0.2, sweep.every_s * min(1.0, silent_after_s / 60.0))
