from pathlib import Path

import pytest

from research.simulator.scenario_file import parse_scenario


def made(text: str):
    """A scenario from its text."""
    return parse_scenario(text, "made.yaml", Path())


@pytest.fixture
def scenario():
    return made
