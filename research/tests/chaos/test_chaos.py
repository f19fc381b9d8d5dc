"""`reviewloop chaos`: a few faults on a real cluster, and nothing is lost, doubled, or stalled."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from patience import PATIENCE_S

from research.chaos import run, watch
from research.chaos.faults import FaultKind
from research.chaos.world import Supply

KINDS = (FaultKind.KILL_NODE, FaultKind.LOST_COMMIT)
LITTLE = Supply(first=1, left=0, subtasks=0, site_per_s=6.0)


@pytest.fixture
def folder():
    """A folder with a short path: a socket's may have 103 characters only."""
    with TemporaryDirectory(prefix="reviewloop-") as made:
        yield Path(made) / "data"


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """What is slow here is neither stalled nor silent: a killed node's leases come back when it is started again."""
    monkeypatch.setattr(watch, "STALL_S", PATIENCE_S)
    for name in ("_START_S", "_GIVE_UP_S", "_CALM_S"):
        monkeypatch.setattr(run, name, PATIENCE_S)
    monkeypatch.setattr(run, "SHORTENED", {"backoff_s": 0.5})


def test_a_few_faults_cost_nothing_but_time(folder):
    before = set(psutil.Process().children(recursive=True))
    told: list[str] = []
    report = run.run(folder, told.append, seed=1, kills=len(KINDS), nodes=2, kinds=KINDS, supply=LITTLE)
    assert report.clean, (report.document(), told)
    assert sorted(fault.kind for fault in report.faults) == sorted(KINDS)
    assert report.counts["pages"] > 20
    assert set(psutil.Process().children(recursive=True)) <= before
