"""`reviewloop chaos`: a few faults on a real cluster, and nothing is lost, doubled, or stalled."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from patience import PATIENCE_S

from app.run.setting_fields import Settings
from research.chaos import run, stall
from research.chaos.faults import FaultKind
from research.chaos.records import Session
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
    monkeypatch.setattr(stall, "STALL_S", PATIENCE_S)
    for name in ("_START_S", "_GIVE_UP_S", "_CALM_S"):
        monkeypatch.setattr(run, name, PATIENCE_S)
    monkeypatch.setattr(run, "SHORTENED", {"backoff_s": 0.5})


def test_a_few_faults_cost_nothing_but_time(folder):
    session = Session(seed=1, kills=len(KINDS), nodes=2, kinds=list(KINDS))
    before = set(psutil.Process().children(recursive=True))
    told: list[str] = []
    report = run.run(Settings(), session, folder, told.append, LITTLE)
    assert report.clean, (report.document(), told)
    assert sorted(record.kind for record in report.session.records) == sorted(KINDS)
    assert report.counts["pages"] > 20
    assert Session.read(folder / "chaos.json").records == report.session.records
    assert set(psutil.Process().children(recursive=True)) <= before
