"""Flat rows of the store: one place for each thing"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Each function changes the tables of one subject."""
    _store_values_by_name()
    _join_added_nodes()


def _store_values_by_name() -> None:
    """One table for marks of sweeps and the trained model; a scheduler measures again what it measured."""
    columns = (
        sa.Column("name", sa.String(60), primary_key=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data", _JSON, nullable=False),
    )
    stored = op.create_table("stored_values", *columns)
    conn, now = op.get_bind(), datetime.now(UTC)
    rows = []
    for name, last_id in conn.execute(
        sa.text("SELECT sweep, last_id FROM sweep_marks WHERE sweep <> 'bridged'")
    ):
        if name == "looked":  # milliseconds since 1970
            rows.append({"name": name, "at": datetime.fromtimestamp(last_id / 1000, UTC), "data": {}})
        else:
            rows.append({"name": name, "at": now, "data": {"last_id": last_id}})
    model = sa.table(
        "run_time_model",
        sa.column("trained_at", sa.DateTime(timezone=True)),
        sa.column("newest_attempt"),
        sa.column("network", _JSON),
    )
    for row in conn.execute(sa.select(model)):
        data = {"newest_attempt": row.newest_attempt, "network": row.network}
        rows.append({"name": "run_time_model", "at": row.trained_at, "data": data})
    op.bulk_insert(stored, rows)
    for name in ("sweep_marks", "run_time_model", "measurements"):
        op.drop_table(name)


def _join_added_nodes() -> None:
    """A node that a person added is a row of `nodes`."""
    op.add_column("nodes", sa.Column("added_at", sa.DateTime(timezone=True)))
    op.add_column("nodes", sa.Column("chosen_slots", sa.Integer))
    op.add_column("nodes", sa.Column("proxy", sa.Text))
    op.execute(
        "INSERT INTO nodes (name, kinds, slots, registered_at) "
        "SELECT name, kinds, coalesce(slots, 4), added_at FROM added_nodes "
        "WHERE name NOT IN (SELECT name FROM nodes)"
    )
    op.execute(
        "UPDATE nodes SET kinds = a.kinds, address = a.address, added_at = a.added_at, chosen_slots = a.slots, "
        "proxy = a.proxy FROM added_nodes a WHERE a.name = nodes.name"
    )
    op.drop_table("added_nodes")
