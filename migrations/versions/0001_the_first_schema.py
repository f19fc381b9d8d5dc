"""The first schema"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)
_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "host_rests",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=100), nullable=False),
        sa.Column("cause", sa.String(length=40), nullable=False),
        sa.Column("until", _TIME, nullable=False),
        sa.Column("times", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("host", "node", name=op.f("pk_host_rests")),
    )
    op.create_table(
        "hosts",
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("robots", sa.Text(), nullable=True),
        sa.Column("robots_status", sa.Integer(), nullable=True),
        sa.Column("robots_at", _TIME, nullable=True),
        sa.PrimaryKeyConstraint("host", name=op.f("pk_hosts")),
    )
    op.create_table(
        "nodes",
        sa.Column("name", sa.String(length=100), nullable=False),
        sa.Column("kinds", _JSON, nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=True),
        sa.Column("drained", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("seen_at", _TIME, nullable=True),
        sa.Column("attempts_per_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("backlog", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("registered_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_nodes")),
    )
    op.create_table(
        "pair_stats",
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=100), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("silent", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("offered", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("tried", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("collected", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("active_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("wait_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("lost_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_attempts", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_failed", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_silent", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_offered", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_tried", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_collected", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_active_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("f_lost_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("faded_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("site", "node", name=op.f("pk_pair_stats")),
    )
    op.create_table(
        "products",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("aliases", _JSON, nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=True),
        sa.Column("recrawl_every_s", sa.Float(), nullable=True),
        sa.Column("next_crawl_at", _TIME, nullable=True),
        sa.Column("created_at", _TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_products")),
        sa.UniqueConstraint("name", name=op.f("uq_products_name")),
    )
    op.create_table(
        "virtual_tasks",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("keywords", _JSON, nullable=False),
        sa.Column("aliases", _JSON, nullable=False),
        sa.Column("round", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("planned_at", _TIME, nullable=True),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_virtual_tasks_product_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_virtual_tasks")),
        sa.UniqueConstraint("product_id", "round", name=op.f("uq_virtual_tasks_product_id_round")),
    )
    op.create_table(
        "tasks",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("virtual_task_id", _ID, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("engine", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("chunks", _JSON, nullable=False),
        sa.Column("found", sa.BigInteger(), nullable=True),
        sa.Column(
            "found_provenance", sa.String(length=20), server_default=sa.text("'unknown'"), nullable=False
        ),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_tasks_product_id")),
        sa.ForeignKeyConstraint(
            ["virtual_task_id"], ["virtual_tasks.id"], name=op.f("fk_tasks_virtual_task_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tasks")),
        sa.UniqueConstraint("virtual_task_id", "site", name=op.f("uq_tasks_virtual_task_id_site")),
    )
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_tasks_product_id"), ["product_id"], unique=False)

    op.create_table(
        "subtasks",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("task_id", _ID, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("parent_id", _ID, nullable=True),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("kind", sa.String(length=20), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=12), nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("round", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("recalls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("failed_on", _JSON, nullable=False),
        sa.Column("assigned_node", sa.String(length=100), nullable=True),
        sa.Column("left", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("not_before", _TIME, nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("lease_token", sa.String(length=32), nullable=True),
        sa.Column("lease_node", sa.String(length=100), nullable=True),
        sa.Column("lease_deadline", _TIME, nullable=True),
        sa.Column("lease_started", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.Column("attempt_id", _ID, nullable=True),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.Column("changed_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["parent_id"], ["subtasks.id"], name=op.f("fk_subtasks_parent_id")),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_subtasks_product_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_subtasks_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_subtasks")),
    )
    with op.batch_alter_table("subtasks", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_subtasks_state_lease_deadline"), ["state", "lease_deadline"], unique=False
        )
        batch_op.create_index(batch_op.f("ix_subtasks_state_site"), ["state", "site"], unique=False)
        batch_op.create_index(batch_op.f("ix_subtasks_task_id"), ["task_id"], unique=False)
        batch_op.create_index("ix_subtasks_queue", ["state", sa.text("priority DESC"), "id"], unique=False)

    op.create_table(
        "attempts",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("subtask_id", _ID, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("no", sa.Integer(), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("node", sa.String(length=100), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("quota", sa.Integer(), nullable=False),
        sa.Column("budget_s", sa.Float(), nullable=False),
        sa.Column("allocated_at", _TIME, nullable=False),
        sa.Column("started_at", _TIME, nullable=True),
        sa.Column("progress_at", _TIME, nullable=True),
        sa.Column("ended_at", _TIME, nullable=True),
        sa.Column("outcome", sa.String(length=12), nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("found", sa.BigInteger(), nullable=True),
        sa.Column("found_provenance", sa.String(length=20), nullable=True),
        sa.Column("offered", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("tried", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("collected", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("known", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("late", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("active_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("wait_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("lost_s", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("requests", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("errors", _JSON, nullable=False),
        sa.Column("last_response", _JSON, nullable=True),
        sa.Column("more", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_attempts_product_id")),
        sa.ForeignKeyConstraint(["subtask_id"], ["subtasks.id"], name=op.f("fk_attempts_subtask_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("subtask_id", "no", name=op.f("uq_attempts_subtask_id_no")),
    )
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_attempts_site_node"), ["site", "node"], unique=False)

    op.create_table(
        "events",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("subtask_id", _ID, nullable=False),
        sa.Column("transition", sa.String(length=12), nullable=False),
        sa.Column("from_state", sa.String(length=12), nullable=True),
        sa.Column("to_state", sa.String(length=12), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=True),
        sa.Column("attempt_id", _ID, nullable=True),
        sa.Column("node", sa.String(length=100), nullable=True),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("detail", _JSON, nullable=True),
        sa.ForeignKeyConstraint(["subtask_id"], ["subtasks.id"], name=op.f("fk_events_subtask_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_events")),
    )
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_events_subtask_id_id"), ["subtask_id", "id"], unique=False)

    op.create_table(
        "targets",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("task_id", _ID, nullable=False),
        sa.Column("subtask_id", _ID, nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_key", sa.LargeBinary(length=16), nullable=False),
        sa.Column("state", sa.String(length=12), server_default=sa.text("'todo'"), nullable=False),
        sa.Column("reason", sa.String(length=40), nullable=True),
        sa.Column("tries", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["subtask_id"], ["subtasks.id"], name=op.f("fk_targets_subtask_id")),
        sa.ForeignKeyConstraint(["task_id"], ["tasks.id"], name=op.f("fk_targets_task_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_targets")),
        sa.UniqueConstraint("task_id", "url_key", name=op.f("uq_targets_task_id_url_key")),
    )
    with op.batch_alter_table("targets", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_targets_subtask_id_state"), ["subtask_id", "state"], unique=False
        )

    op.create_table(
        "pages",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("url_key", sa.LargeBinary(length=16), nullable=False),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("title", sa.Text(), server_default=sa.text("('')"), nullable=False),
        sa.Column("content_hash", sa.String(length=32), nullable=False),
        sa.Column("encoding", sa.String(length=20), nullable=False),
        sa.Column("bytes", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("reviews", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("fetched_at", _TIME, nullable=False),
        sa.Column("node", sa.String(length=100), nullable=False),
        sa.Column("attempt_id", _ID, nullable=False),
        sa.Column("late", sa.Boolean(), server_default=sa.text("(false)"), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_pages_attempt_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_pages")),
        sa.UniqueConstraint("url_key", name=op.f("uq_pages_url_key")),
    )
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_pages_attempt_id"), ["attempt_id"], unique=False)

    op.create_table(
        "page_products",
        sa.Column("page_id", _ID, nullable=False),
        sa.Column("product_id", _ID, nullable=False),
        sa.Column("linked_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_page_products_page_id")),
        sa.ForeignKeyConstraint(["product_id"], ["products.id"], name=op.f("fk_page_products_product_id")),
        sa.PrimaryKeyConstraint("page_id", "product_id", name=op.f("pk_page_products")),
    )
    with op.batch_alter_table("page_products", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_page_products_product_id"), ["product_id"], unique=False)

    op.create_table(
        "reviews",
        sa.Column("id", _ID, autoincrement=True, nullable=False),
        sa.Column("page_id", _ID, nullable=False),
        sa.Column("key", sa.String(length=200), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("date_text", sa.Text(), nullable=False),
        sa.Column("published_at", _TIME, nullable=True),
        sa.Column("rating", sa.Float(), nullable=True),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("site", sa.String(length=255), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(length=16), nullable=False),
        sa.Column("same_as", _ID, nullable=True),
        sa.Column("collected_at", _TIME, nullable=False),
        sa.Column("node", sa.String(length=100), nullable=False),
        sa.Column("attempt_id", _ID, nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempts.id"], name=op.f("fk_reviews_attempt_id")),
        sa.ForeignKeyConstraint(["page_id"], ["pages.id"], name=op.f("fk_reviews_page_id")),
        sa.ForeignKeyConstraint(["same_as"], ["reviews.id"], name=op.f("fk_reviews_same_as")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_reviews")),
        sa.UniqueConstraint("page_id", "key", name=op.f("uq_reviews_page_id_key")),
    )
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_reviews_text_hash"), ["text_hash"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("reviews", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_reviews_text_hash"))

    op.drop_table("reviews")
    with op.batch_alter_table("page_products", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_page_products_product_id"))

    op.drop_table("page_products")
    with op.batch_alter_table("pages", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_pages_attempt_id"))

    op.drop_table("pages")
    with op.batch_alter_table("targets", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_targets_subtask_id_state"))

    op.drop_table("targets")
    with op.batch_alter_table("events", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_events_subtask_id_id"))

    op.drop_table("events")
    with op.batch_alter_table("attempts", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_attempts_site_node"))

    op.drop_table("attempts")
    with op.batch_alter_table("subtasks", schema=None) as batch_op:
        batch_op.drop_index("ix_subtasks_queue")
        batch_op.drop_index(batch_op.f("ix_subtasks_task_id"))
        batch_op.drop_index(batch_op.f("ix_subtasks_state_site"))
        batch_op.drop_index(batch_op.f("ix_subtasks_state_lease_deadline"))

    op.drop_table("subtasks")
    with op.batch_alter_table("tasks", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_tasks_product_id"))

    op.drop_table("tasks")
    op.drop_table("virtual_tasks")
    op.drop_table("products")
    op.drop_table("pair_stats")
    op.drop_table("nodes")
    op.drop_table("hosts")
    op.drop_table("host_rests")
