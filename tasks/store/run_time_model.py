"""The trained run-time model (2019 balance paper), where every scheduler and `explain` find it: one row a strategy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select

from tasks.store.database import columns_of, insert_or
from tasks.store.tables import run_time_model

_STRATEGY = "balance"


@dataclass(frozen=True, slots=True)
class StoredModel:
    """A trained network.

    Attributes:
        trained_at: when; it stands for the network, of which there is one at a time.
        newest_attempt: number of the newest attempt it was trained on.
        network: what `Trained.as_json` made of it.
    """

    trained_at: datetime
    newest_attempt: int
    network: Mapping[str, Any]


def load(conn: Connection) -> StoredModel | None:
    """The model trained last; None where none was."""
    row = conn.execute(
        select(*columns_of(StoredModel, run_time_model)).where(run_time_model.c.strategy == _STRATEGY)
    ).one_or_none()
    return None if row is None else StoredModel(*row)


def save(conn: Connection, model: StoredModel) -> None:
    """Keep this model instead of the one before."""
    values = asdict(model)
    conn.execute(
        insert_or(conn.dialect, run_time_model).on_conflict_do_update(
            index_elements=["strategy"], set_=values
        ),
        {"strategy": _STRATEGY, **values},
    )
