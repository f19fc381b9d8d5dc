"""The text of an alert as a reason with values"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

_JSON = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def upgrade() -> None:
    """Keep each English text as the reason `other`. The next look replaces it if the alert is still on."""
    op.add_column("alerts", sa.Column("because", _JSON))
    alerts = sa.table(
        "alerts", sa.column("rule"), sa.column("subject"), sa.column("text"), sa.column("because", _JSON)
    )
    bind = op.get_bind()
    for rule, subject, text in bind.execute(sa.select(alerts.c.rule, alerts.c.subject, alerts.c.text)).all():
        reason = {"reason": "other", "parameters": {"text": text}}
        is_it = (alerts.c.rule == rule) & (alerts.c.subject == subject)
        bind.execute(alerts.update().where(is_it).values(because=reason))
    with op.batch_alter_table("alerts") as batch:
        batch.alter_column("because", nullable=False)
        batch.drop_column("text")
