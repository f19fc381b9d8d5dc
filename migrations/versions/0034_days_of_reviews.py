"""The day of a review, and whether a clock was written with it"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

# The zone of every site until now; without summer time since 1991. `judge --dates` reads zones that pages name.
_IN_CHINA = {
    "sqlite": "strftime('{}', published_at, '+8 hours')",
    "postgresql": "to_char(published_at AT TIME ZONE interval '8 hours', '{}')",
}
_DAY = {"sqlite": "%Y-%m-%d", "postgresql": "YYYY-MM-DD"}
_CLOCK = {"sqlite": "%H:%M:%S", "postgresql": "HH24:MI:SS"}
# 3天前 and 2 weeks ago were read with the clock of the moment in which they were read.
_COUNTS_DAYS = "(date_text LIKE '%前%' OR lower(date_text) LIKE '%ago%')"
_CLOCK_WORDS = [
    ":",
    "：",
    "时",
    "時",
    "点",
    "點",
    "分",
    "秒",
    "钟",
    "鐘",
    "刚",
    "剛",
    "hour",
    "hr",
    "min",
    "sec",
]


def upgrade() -> None:
    """Fill the day from the time it was read as in China, in one statement."""
    op.add_column("reviews", sa.Column("day", sa.Date))
    op.add_column(
        "reviews", sa.Column("has_clock", sa.Boolean, nullable=False, server_default=sa.text("false"))
    )
    kind = op.get_bind().dialect.name
    day, clock = (_IN_CHINA[kind].format(form[kind]) for form in (_DAY, _CLOCK))
    names_clock = " OR ".join(f"lower(date_text) LIKE '%{word}%'" for word in _CLOCK_WORDS)
    statement = f"""
        UPDATE reviews SET day = CAST({day} AS {"text" if kind == "sqlite" else "date"}),
            has_clock = {clock} <> '00:00:00' AND (NOT {_COUNTS_DAYS} OR {names_clock})
        WHERE published_at IS NOT NULL
    """
    op.get_bind().exec_driver_sql(statement.replace("%", "%%") if kind == "postgresql" else statement)
