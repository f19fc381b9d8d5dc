"""The solver loads in a thread, and a decision that asks for it does not wait."""

from threading import Event

import pytest

from app.run.sweep_wiring import SolverLoad
from tasks.scheduling import fluid


@pytest.fixture
def go_on(monkeypatch):
    """Set: loading goes on."""
    event = Event()
    monkeypatch.setattr(fluid, "load_solver", event.wait)
    yield event
    event.set()


def test_it_is_done_once_loaded(go_on):
    load = SolverLoad()
    assert not load.is_done()
    assert not load.is_done()
    go_on.set()
    ask_until_done(load)


def test_a_solver_that_can_not_be_loaded_is_an_error_of_the_decision(monkeypatch):
    def fail():
        raise ImportError("no scipy")

    monkeypatch.setattr(fluid, "load_solver", fail)
    load = SolverLoad()
    with pytest.raises(ImportError, match="no scipy"):
        ask_until_done(load)


def ask_until_done(load):
    while not load.is_done():
        pass
