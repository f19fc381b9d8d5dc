"""Flat rows of the store: one place for each thing"""

from __future__ import annotations

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Each function changes the tables of one subject."""
