"""The schema of version 0.9.0"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0027"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
_MANUAL = sa.text("state = 'MANUAL'")
_COPIES = sa.text("same_as IS NOT NULL")
_SUMMED_COUNTS = ("attempts", "failed", "silent", "offered", "tried", "collected")


def _id() -> sa.Column[int]:
    return sa.Column("id", _ID, primary_key=True, autoincrement=True)


def _ref(name: str, to: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, _ID, sa.ForeignKey(f"{to}.id"), nullable=nullable)


def _time(name: str, *, nullable: bool = True) -> sa.Column[Any]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _count(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text("0"))


def _seconds(name: str) -> sa.Column[float]:
    return sa.Column(name, sa.Float, nullable=False, server_default=sa.text("0"))


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.text("false"))


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default=sa.text("''"))


def upgrade() -> None:
    op.create_table(
        "products",
        _id(),
        sa.Column("name", sa.String(200), nullable=False, unique=True),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("aliases", _JSON, nullable=False),
        sa.Column("sites", _JSON),
        _count("priority"),
        sa.Column("pages", sa.Integer),
        _time("created_at", nullable=False),
    )
    op.create_table(
        "schedules",
        _id(),
        sa.Column("what", sa.String(20), nullable=False),
        sa.Column("product_id", _ID, sa.ForeignKey("products.id"), unique=True),
        sa.Column("cron", sa.String(200)),
        sa.Column("zone", sa.String(64)),
        sa.Column("every_s", sa.Float),
        sa.Column("options", _JSON, nullable=False),
        _flag("paused"),
        _time("next_at"),
        _time("last_at"),
        _time("taken_until"),
        _count("tries"),
        sa.Column("problem", sa.Text),
        sa.Index(None, "next_at"),
    )
    op.create_table(
        "virtual_tasks",
        _id(),
        _ref("product_id", "products"),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("aliases", _JSON, nullable=False),
        sa.Column("round", sa.Integer, nullable=False, server_default=sa.text("1")),
        _time("created_at", nullable=False),
        _time("planned_at"),
        sa.UniqueConstraint("product_id", "round"),
        sa.Index(None, "planned_at"),
    )
    op.create_table(
        "unplanned_sites",
        sa.Column("virtual_task_id", _ID, sa.ForeignKey("virtual_tasks.id"), primary_key=True),
        sa.Column("site", sa.String(255), primary_key=True),
        sa.Column("obstacle", sa.String(20), nullable=False),
        sa.Column("why", sa.Text, nullable=False),
        _time("since", nullable=False),
        sa.Index(None, "site"),
    )
    op.create_table(
        "tasks",
        _id(),
        _ref("virtual_task_id", "virtual_tasks"),
        _ref("product_id", "products"),
        sa.Column("site", sa.String(255), nullable=False),
        sa.Column("engine", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("found", sa.BigInteger),
        sa.Column("found_provenance", sa.String(20), nullable=False, server_default=sa.text("'unknown'")),
        sa.Column("found_reported", sa.BigInteger),
        _time("created_at", nullable=False),
        sa.UniqueConstraint("virtual_task_id", "site"),
        sa.Index(None, "product_id"),
    )
    op.create_table(
        "task_parts",
        _id(),
        _ref("task_id", "tasks"),
        _ref("parent_id", "task_parts", nullable=True),
        sa.Column("first_chunk", sa.Integer, nullable=False),
        sa.Column("chunks", _JSON, nullable=False, server_default=sa.text("'[]'")),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("dropped", _JSON, nullable=False),
        _flag("own_words"),
        _time("start_at"),
        _time("end_at"),
        sa.Column("state", sa.String(12), nullable=False, server_default=sa.text("'open'")),
        _count("pages_read"),
        _count("listed"),
        _count("new_hits"),
        _flag("ended"),
        sa.Column("reported", sa.BigInteger),
        sa.Column("found", sa.BigInteger),
        sa.Column("provenance", sa.String(20), nullable=False, server_default=sa.text("'unknown'")),
        sa.UniqueConstraint("task_id", "first_chunk"),
    )
    op.create_table(
        "subtasks",
        _id(),
        _ref("task_id", "tasks"),
        _ref("product_id", "products"),
        _ref("parent_id", "subtasks", nullable=True),
        sa.Column("site", sa.String(255), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("chunk", sa.Integer, nullable=False),
        sa.Column("part_id", _ID),
        sa.Column("state", sa.String(12), nullable=False),
        _count("priority"),
        sa.Column("round", sa.Integer, nullable=False, server_default=sa.text("1")),
        _count("recalls"),
        sa.Column("failed_on", _JSON, nullable=False),
        sa.Column("assigned_node", sa.String(100)),
        sa.Column("assigned_quota", sa.Integer),
        _count("left"),
        _time("not_before"),
        _count("idle_releases"),
        sa.Column("waits_for", sa.Text),
        sa.Column("reason", sa.String(40)),
        sa.Column("lease_token", sa.String(32)),
        sa.Column("lease_node", sa.String(100)),
        _time("lease_deadline"),
        _flag("lease_started"),
        sa.Column("attempt_id", _ID),
        _count("attempts"),
        _time("created_at", nullable=False),
        _time("changed_at", nullable=False),
        _flag("log_dropped"),
        sa.Index("ix_subtasks_queue", "state", sa.text("priority DESC"), "id"),
        sa.Index(None, "state", "lease_deadline"),
        sa.Index("ix_subtasks_by_site", "state", "site", sa.text("priority DESC"), "id", "left"),
        sa.Index(
            "ix_subtasks_manual",
            "state",
            "reason",
            "site",
            "id",
            "changed_at",
            sqlite_where=_MANUAL,
            postgresql_where=_MANUAL,
        ),
        sa.Index(None, "task_id"),
    )
    op.create_table(
        "queue_counts",
        _id(),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
    )
    op.create_table(
        "targets",
        _id(),
        _ref("task_id", "tasks"),
        _ref("subtask_id", "subtasks"),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_key", sa.LargeBinary(16), nullable=False),
        sa.Column("state", sa.String(12), nullable=False, server_default=sa.text("'todo'")),
        sa.Column("reason", sa.String(40)),
        _count("tries"),
        sa.UniqueConstraint("task_id", "url_key"),
        sa.Index(None, "subtask_id", "state"),
    )
    op.create_table(
        "attempts",
        _id(),
        _ref("subtask_id", "subtasks"),
        _ref("product_id", "products"),
        sa.Column("no", sa.Integer, nullable=False),
        sa.Column("round", sa.Integer, nullable=False),
        sa.Column("site", sa.String(255), nullable=False),
        sa.Column("node", sa.String(100), nullable=False),
        sa.Column("token", sa.String(32), nullable=False),
        sa.Column("quota", sa.Integer, nullable=False),
        sa.Column("budget_s", sa.Float, nullable=False),
        _seconds("least_share"),
        _seconds("slack"),
        _time("allocated_at", nullable=False),
        _time("started_at"),
        _time("progress_at"),
        _time("ended_at"),
        sa.Column("outcome", sa.String(12)),
        sa.Column("reason", sa.String(40)),
        sa.Column("found", sa.BigInteger),
        sa.Column("found_provenance", sa.String(20)),
        _count("offered"),
        _count("tried"),
        _count("collected"),
        _count("known"),
        _count("late"),
        _seconds("active_s"),
        _seconds("wait_s"),
        _seconds("lost_s"),
        sa.Column("bytes", sa.BigInteger, nullable=False, server_default=sa.text("0")),
        _count("requests"),
        sa.Column("errors", _JSON, nullable=False),
        sa.Column("statuses", _JSON, nullable=False, server_default=sa.text("'{}'")),
        sa.Column("last_response", _JSON),
        _flag("more"),
        sa.Column("entry", sa.String(16), nullable=False, server_default=sa.text("''")),
        sa.UniqueConstraint("subtask_id", "no"),
        sa.Index(None, "site", "node"),
    )
    op.create_table(
        "pair_stats",
        sa.Column("site", sa.String(255), primary_key=True),
        sa.Column("node", sa.String(100), primary_key=True),
        *(_count(name) for name in _SUMMED_COUNTS),
        *(_seconds(name) for name in ("active_s", "wait_s", "lost_s")),
        _count("requests"),
        *(_seconds(f"f_{name}") for name in (*_SUMMED_COUNTS, "active_s", "lost_s")),
        _time("faded_at", nullable=False),
        sa.Column("rtt_ms", sa.Float),
        _count("rtt_n"),
        sa.Index(None, "faded_at"),
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("robots", sa.Text),
        sa.Column("robots_status", sa.Integer),
        _time("robots_at"),
    )
    op.create_table(
        "host_rests",
        sa.Column("host", sa.String(255), primary_key=True),
        sa.Column("node", sa.String(100), primary_key=True),
        sa.Column("cause", sa.String(40), nullable=False),
        _time("until", nullable=False),
        _count("times"),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("kinds", _JSON, nullable=False),
        sa.Column("slots", sa.Integer, nullable=False),
        sa.Column("address", sa.String(64)),
        sa.Column("machine", sa.String(255)),
        _flag("drained"),
        _time("seen_at"),
        _seconds("attempts_per_s"),
        _count("backlog"),
        _count("idle"),
        _count("storing"),
        sa.Column("parameters", _JSON),
        sa.Column("catalog", sa.String(16)),
        sa.Column("entries", _JSON),
        _seconds("clock_s"),
        _time("registered_at", nullable=False),
    )
    op.create_table(
        "added_nodes",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("kinds", _JSON, nullable=False),
        sa.Column("slots", sa.Integer),
        sa.Column("address", sa.String(64)),
        sa.Column("proxy", sa.Text),
        _time("added_at", nullable=False),
    )
    op.create_table(
        "pages",
        _id(),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("url_key", sa.LargeBinary(16), nullable=False, unique=True),
        sa.Column("site", sa.String(255), nullable=False),
        _text("title"),
        sa.Column("content_hash", sa.String(32), nullable=False),
        sa.Column("encoding", sa.String(20), nullable=False),
        _count("bytes"),
        _count("reviews"),
        _time("fetched_at", nullable=False),
        sa.Column("node", sa.String(100), nullable=False),
        _ref("attempt_id", "attempts", nullable=True),
        _flag("late"),
        _time("checked_at"),
        sa.Column("etag", sa.Text),
        sa.Column("last_modified", sa.Text),
        _count("withheld"),
        sa.Column("source", sa.String(100)),
        sa.Index(None, "attempt_id"),
    )
    op.create_table(
        "page_products",
        sa.Column("page_id", _ID, sa.ForeignKey("pages.id"), primary_key=True),
        sa.Column("product_id", _ID, sa.ForeignKey("products.id"), primary_key=True),
        _time("linked_at", nullable=False),
        sa.Column("verdict", sa.String(20), nullable=False, server_default=sa.text("'review'")),
        _text("missing"),
        _count("refused"),
        sa.Index(None, "product_id"),
    )
    op.create_table(
        "import_sources",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("shape", sa.LargeBinary(16), nullable=False),
        sa.Column("columns", _JSON, nullable=False),
        _time("used_at", nullable=False),
    )
    op.create_table(
        "page_refusals",
        sa.Column("page_id", _ID, sa.ForeignKey("pages.id"), primary_key=True),
        sa.Column("reason", sa.String(20), primary_key=True),
        sa.Column("n", sa.Integer, nullable=False),
    )
    op.create_table(
        "reviews",
        _id(),
        _ref("page_id", "pages"),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("date_text", sa.Text, nullable=False),
        _time("published_at"),
        sa.Column("rating", sa.Float),
        _text("variant"),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("site", sa.String(255), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(16), nullable=False),
        _ref("same_as", "reviews", nullable=True),
        _time("collected_at", nullable=False),
        sa.Column("node", sa.String(100), nullable=False),
        _ref("attempt_id", "attempts", nullable=True),
        sa.Column("voice", sa.String(10)),
        sa.Column("voice_probability", sa.Float),
        sa.Column("buyer", sa.Float),
        sa.Column("sentiment", sa.Float),
        sa.Column("voice_model", sa.String(20)),
        sa.UniqueConstraint("page_id", "key"),
        sa.Index(None, "text_hash"),
        sa.Index(None, "same_as", sqlite_where=_COPIES, postgresql_where=_COPIES),
        sa.Index(None, "voice"),
    )
    op.create_table(
        "refused_reviews",
        _id(),
        _ref("page_id", "pages"),
        sa.Column("key", sa.String(200), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("author", sa.Text, nullable=False),
        sa.Column("date_text", sa.Text, nullable=False),
        _time("published_at"),
        sa.Column("rating", sa.Float),
        _text("variant"),
        sa.Column("reason", sa.String(20), nullable=False),
        _time("refused_at", nullable=False),
        sa.UniqueConstraint("page_id", "key"),
    )
    op.create_table(
        "review_links",
        sa.Column("review_id", _ID, sa.ForeignKey("reviews.id"), primary_key=True),
        _ref("original_id", "reviews"),
        sa.Column("similarity", sa.Float, nullable=False),
        sa.Index(None, "original_id"),
    )
    op.create_table(
        "review_bands",
        sa.Column("band", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("review_id", _ID, primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "sweep_marks",
        sa.Column("sweep", sa.String(40), primary_key=True),
        sa.Column("last_id", _ID, nullable=False),
    )
    op.create_table(
        "run_time_model",
        sa.Column("strategy", sa.String(40), primary_key=True),
        _time("trained_at", nullable=False),
        sa.Column("newest_attempt", _ID, nullable=False),
        sa.Column("network", _JSON, nullable=False),
    )
    op.create_table(
        "events",
        _id(),
        _time("at", nullable=False),
        _ref("subtask_id", "subtasks"),
        sa.Column("transition", sa.String(12), nullable=False),
        sa.Column("from_state", sa.String(12)),
        sa.Column("to_state", sa.String(12), nullable=False),
        sa.Column("token", sa.String(32)),
        sa.Column("attempt_id", _ID),
        sa.Column("node", sa.String(100)),
        sa.Column("reason", sa.String(40)),
        sa.Column("detail", _JSON),
        sa.Index(None, "subtask_id", "id"),
    )
    op.create_table(
        "audit_log",
        _id(),
        _time("at", nullable=False),
        sa.Column("who", sa.String(200), nullable=False),
        sa.Column("action", sa.String(40), nullable=False),
        sa.Column("subject", sa.String(500), nullable=False),
        sa.Column("detail", _JSON, nullable=False),
    )
    op.create_table(
        "alerts",
        sa.Column("rule", sa.String(20), primary_key=True),
        sa.Column("subject", sa.String(255), primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("level", sa.Float),
        _time("since", nullable=False),
        _flag("firing"),
        _flag("told"),
        _time("told_at"),
        _time("claimed_at"),
        _text("trouble"),
    )
    op.create_table(
        "measurements",
        sa.Column("name", sa.String(40), primary_key=True),
        _time("at", nullable=False),
        sa.Column("data", _JSON, nullable=False),
    )
