"""A world over each database; whatever a test did, at its end `verify` must find nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from world import World

from tasks.store.sql.database import Store


@pytest.fixture
def world(store: Store) -> Iterator[World]:
    made = World(store)
    yield made
    assert made.verification().violations == ()


@pytest.fixture
def postgres_world(postgres_store: Store) -> Iterator[World]:
    """For what only several writers at once can show."""
    made = World(postgres_store)
    yield made
    assert made.verification().violations == ()
