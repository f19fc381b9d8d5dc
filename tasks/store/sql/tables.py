"""The tables. Times are aware UTC; JSON columns hold small lists or maps; keys of URLs are 16 bytes (page_key)."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from splitter.catalog.names import Kind
from sqlalchemy import (
    JSON,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import BigInteger

from tasks.domain.failures import FailureReason
from tasks.domain.states import State


class UtcDateTime(TypeDecorator[datetime]):
    """Aware UTC in, aware UTC out, on databases with and without time zones. Refuses naive times."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return UTC for the database, without zone if the database has none."""
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r}: give an aware one")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        """Return aware UTC from the database."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only for INTEGER keys; PostgreSQL gets 64 bits.
_Id = BigInteger().with_variant(Integer(), "sqlite")
_Json = JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")


def _table(name: str, *columns: SchemaItem, **options: Any) -> Table:
    return Table(name, metadata, *columns, **options)


def _id() -> Column[int]:
    return Column("id", _Id, primary_key=True, autoincrement=True)


def _count(name: str) -> Column[int]:
    return Column(name, Integer, nullable=False, server_default=text("0"))


def _big_count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=text("0"))


def _seconds(name: str) -> Column[float]:
    return Column(name, Float, nullable=False, server_default=text("0"))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def _ref(name: str, to: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, _Id, ForeignKey(f"{to}.id"), nullable=nullable)


def _time(name: str, *, nullable: bool = True) -> Column[Any]:
    return Column(name, UtcDateTime(), nullable=nullable)


def _one_of(table: str, column: str, values: type[StrEnum]) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"ck_{table}_{column}")


products = _table(
    "products",
    _id(),
    Column("name", String(200), nullable=False, unique=True),
    Column("keywords", _Json, nullable=False),  # a person's; [] = the splitter's
    Column("aliases", _Json, nullable=False),  # alternative names
    Column("sites", _Json),  # only these sites; null = all of the catalog; [] = none: it came by an import
    _count("priority"),
    Column("pages", Integer),  # result pages a site; null = the site's own
    _time("created_at", nullable=False),
    Column("category", String(20)),  # of splitter.catalog.names.Category; null: unknown, so general sites
    # splitter.normalize.name_key; versions before 0.10.0 took names that differ by case for two products.
    Column("name_key", Text, nullable=False, server_default=text("''"), index=True),
    _time("edited_at"),  # when a person changed it last; null: never
    # The product under which its reviews are counted, itself counted as no other one; null: its own.
    Column("counted_as", _Id, index=True),
)

excluded_words = _table(
    "excluded_words",  # a review with one of them does not count for the product
    Column("product_id", _Id, ForeignKey("products.id"), primary_key=True),
    Column("word", String(100), primary_key=True),
    Column("pattern", Text, nullable=False),  # `tasks.store.sql.transaction.as_pattern` of the word
)

schedules = _table(
    "schedules",  # work that comes again by the clock (tasks.store.queue.schedules)
    _id(),
    Column("what", String(20), nullable=False),
    Column("product_id", _Id, ForeignKey("products.id"), unique=True),  # of a recrawl; null: of all, or none
    Column("cron", String(200)),
    Column("zone", String(64)),  # of the cron expression
    Column("every_s", Float),
    Column("options", _Json, nullable=False),
    _flag("paused"),
    _time("next_at"),
    _time("last_at"),
    _time("taken_until"),  # until then, one process makes and hands over its file
    _count("tries"),
    Column("problem", Text),
    Index(None, "next_at"),
)

virtual_tasks = _table(
    "virtual_tasks",
    _id(),
    _ref("product_id", "products"),
    Column("keywords", _Json, nullable=False),
    Column("aliases", _Json, nullable=False),  # keyword lists
    Column("round", Integer, nullable=False, server_default=text("1")),
    _time("created_at", nullable=False),
    _time("planned_at"),  # null: its tasks are still to be made
    UniqueConstraint("product_id", "round"),
    Index(None, "planned_at"),
)

unplanned_sites = _table(
    "unplanned_sites",  # a task is still to be made there, when the site can be asked
    Column("virtual_task_id", _Id, ForeignKey("virtual_tasks.id"), primary_key=True),
    Column("site", String(255), primary_key=True),
    Column("obstacle", String(20), nullable=False),
    Column("because", _Json, nullable=False),  # a reason, see tasks.domain.reasons
    _time("since", nullable=False),
    Index(None, "site"),
)

tasks = _table(
    "tasks",
    _id(),
    _ref("virtual_task_id", "virtual_tasks"),
    _ref("product_id", "products"),
    Column("site", String(255), nullable=False),
    Column("engine", String(100), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("found", BigInteger),
    Column("found_provenance", String(20), nullable=False, server_default=text("'unknown'")),
    Column("found_reported", BigInteger),  # the engine's number, if found is a better one
    _time("created_at", nullable=False),
    UniqueConstraint("virtual_task_id", "site"),
    Index(None, "product_id"),
)

_FOLLOWS = text("parent_id IS NOT NULL")
# The partitions of tasks: the queries of each keyword set, and those that they were divided into or relaxed to.
task_parts = _table(
    "task_parts",
    _id(),
    _ref("task_id", "tasks"),
    _ref("parent_id", "task_parts", nullable=True),  # the one that it replaces, wholly or for its span
    Column("first_chunk", Integer, nullable=False),  # number of its first chunk in its task
    _count("pages"),  # its result pages
    Column(
        "chunk_pages", Integer, nullable=False, server_default=text("1")
    ),  # in a chunk; a span's first has one
    _count("asked_before"),  # pages of released chunks whose URL another partition of the task had asked for
    Column("keywords", _Json, nullable=False),
    Column("dropped", _Json, nullable=False),  # words its answer was empty with, the first one dropped first
    _flag("own_words"),  # a person chose them
    _time("start_at"),  # both null: of any time
    _time("end_at"),
    Column("state", String(12), nullable=False, server_default=text("'open'")),
    _count("pages_read"),
    _count("listed"),  # hits on these pages
    _count("new_hits"),  # those of them that became targets: the task had not listed them before
    _flag("ended"),  # the last one had no next page
    Column("reported", BigInteger),
    Column("found", BigInteger),
    Column("provenance", String(20), nullable=False, server_default=text("'unknown'")),
    UniqueConstraint("task_id", "first_chunk"),
    # Here and in tables below: a row that others may refer to is deleted without reading all of them.
    Index(None, "parent_id", sqlite_where=_FOLLOWS, postgresql_where=_FOLLOWS),
)

_MANUAL = text("state = 'MANUAL'")
subtasks = _table(
    "subtasks",
    _id(),
    _ref("task_id", "tasks"),
    _ref("product_id", "products"),
    _ref("parent_id", "subtasks", nullable=True),  # whose left-over targets it carries on
    Column("site", String(255), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("chunk", Integer, nullable=False),
    Column("part_id", _Id),  # of its task, which the chunk belongs to
    Column("state", String(12), nullable=False),
    _count("priority"),
    Column("round", Integer, nullable=False, server_default=text("1")),
    _count("recalls"),
    Column("failed_on", _Json, nullable=False),  # nodes, the oldest failure first, in this round
    Column("assigned_node", String(100)),  # chosen by a person
    Column("assigned_quota", Integer),  # likewise: most hits of an attempt and of its follow-ups
    _count("left"),  # targets to do, as far as known
    _time("not_before"),  # not given to a node earlier
    _count("idle_releases"),  # in a row, of attempts without an answer
    Column("wait_host", String(255)),  # which it waits for
    Column("wait_reason", String(40)),  # tasks.domain.host_wait, or the error class of a refusal
    Column("reason", String(40)),  # why it failed last
    Column("lease_token", String(32)),
    Column("lease_node", String(100)),
    _time("lease_deadline"),
    _flag("lease_started"),
    Column("attempt_id", _Id),
    _count("attempts"),
    _time("created_at", nullable=False),
    _time("changed_at", nullable=False),
    _flag("log_dropped"),  # its events were dropped after `keep_log` (tasks.store.queue.upkeep)
    _one_of("subtasks", "state", State),
    _one_of("subtasks", "kind", Kind),
    _one_of("subtasks", "reason", FailureReason),
    CheckConstraint("state <> 'FAILED' OR reason IS NOT NULL", name="ck_subtasks_failed"),
    CheckConstraint("json_type(failed_on) = 'array'", name="ck_subtasks_failed_on").ddl_if(dialect="sqlite"),
    CheckConstraint("jsonb_typeof(failed_on) = 'array'", name="ck_subtasks_failed_on").ddl_if("postgresql"),
    Index("ix_subtasks_queue", "state", text("priority DESC"), "id"),
    Index(None, "state", "lease_deadline"),
    # Subtasks are counted from the index alone:
    Index("ix_subtasks_by_site", "state", "site", text("priority DESC"), "id", "left"),
    # Finds and counts the subtasks that wait for a person by cause (tasks.store.queue.manual.waiting). The queue is
    # the first column: otherwise SQLite takes another index that begins with it.
    Index(
        "ix_subtasks_manual",
        "state",
        "reason",
        "site",
        "id",
        "changed_at",
        sqlite_where=_MANUAL,
        postgresql_where=_MANUAL,
    ),
    Index(None, "task_id"),
    Index(None, "parent_id", sqlite_where=_FOLLOWS, postgresql_where=_FOLLOWS),
)

queue_counts = _table(
    "queue_counts",  # how many subtasks are in queues that grow without bound: the sum (tasks.store.queue.transitions)
    _id(),
    Column("state", String(12), nullable=False),
    Column("n", Integer, nullable=False),
)

targets = _table(
    "targets",
    _id(),
    _ref("task_id", "tasks"),
    _ref("subtask_id", "subtasks"),
    Column("kind", String(8), nullable=False),  # result | hit
    Column("url", Text, nullable=False),
    Column("url_key", LargeBinary(16), nullable=False),
    Column("state", String(12), nullable=False, server_default=text("'todo'")),  # stored | refused | given_up
    Column("reason", String(40)),
    _count("tries"),
    UniqueConstraint("task_id", "url_key"),
    Index(None, "subtask_id", "state"),
)

attempts = _table(
    "attempts",
    _id(),
    _ref("subtask_id", "subtasks"),
    _ref("product_id", "products"),
    Column("no", Integer, nullable=False),
    Column("round", Integer, nullable=False),
    Column("site", String(255), nullable=False),
    Column("node", String(100), nullable=False),
    Column("token", String(32), nullable=False),
    Column("quota", Integer, nullable=False),
    Column("budget_s", Float, nullable=False),
    _seconds("least_share"),  # tasks.domain.page_floor
    _seconds("slack"),
    _time("allocated_at", nullable=False),
    _time("started_at"),
    _time("progress_at"),
    _time("ended_at"),
    Column("outcome", String(12)),  # null: open | succeeded | failed | silent | released | cancelled
    Column("reason", String(40)),
    Column("found", BigInteger),
    Column("found_provenance", String(20)),
    _count("offered"),
    _count("tried"),
    _count("collected"),
    _count("known"),
    _count("late"),  # pages that arrived after the lease was lost
    _seconds("active_s"),
    _seconds("wait_s"),
    _seconds("lost_s"),
    _big_count("bytes"),
    _count("requests"),
    Column("errors", _Json, nullable=False),  # error class -> count
    # HTTP status, or the error if there was no response -> count
    Column("statuses", _Json, nullable=False, server_default=text("'{}'")),
    Column("last_response", _Json),
    _flag("more"),  # the last result page showed that there is more
    Column(
        "entry", String(16), nullable=False, server_default=text("''")
    ),  # hash of its site's, splitter.catalog.entries
    UniqueConstraint("subtask_id", "no"),
    Index(None, "site", "node"),
    Index(None, "product_id"),
)

_SUMMED_COUNTS = ("attempts", "failed", "silent", "offered", "tried", "collected")

# Result pages that were read: repeated looks at a query show how much of its hits is known.
result_pages = _table(
    "result_pages",
    _id(),
    _ref("product_id", "products"),
    Column("site", String(255), nullable=False),
    Column("engine", String(100), nullable=False),
    _ref("part_id", "task_parts"),  # its query
    Column("node", String(100), nullable=False),
    _time("at", nullable=False),
    Column("hits", LargeBinary, nullable=False),  # the first 8 bytes of the key of each hit, in their order
    Index(None, "product_id"),
    Index(None, "part_id"),
)

pair_stats = _table(
    "pair_stats",
    Column("site", String(255), primary_key=True),
    Column("node", String(100), primary_key=True),
    # Plain sums, for people and for `verify`.
    *(_count(name) for name in _SUMMED_COUNTS),
    *(_seconds(name) for name in ("active_s", "wait_s", "lost_s")),
    _count("requests"),
    # The same, faded to `faded_at`, for the strategies.
    *(_seconds(f"f_{name}") for name in (*_SUMMED_COUNTS, "active_s", "lost_s")),
    _time("faded_at", nullable=False),
    # Response time of the site (tasks.domain.pair_stats.RoundTrip); null: not measured.
    Column("rtt_ms", Float),
    _count("rtt_n"),  # response times it rests on
    Index(None, "faded_at"),
)

hosts = _table(
    "hosts",
    Column("host", String(255), primary_key=True),
    Column("robots", Text),  # the body; null: none
    Column("robots_status", Integer),  # HTTP status; null: no answer
    _time("robots_at"),
)

host_rests = _table(
    "host_rests",
    Column("host", String(255), primary_key=True),
    Column("node", String(100), primary_key=True),
    Column("cause", String(40), nullable=False),
    _time("until", nullable=False),
    _count("times"),
)

nodes = _table(
    "nodes",
    Column("name", String(100), primary_key=True),
    Column("kinds", _Json, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("address", String(64)),
    Column("machine", String(255)),  # whose permits the node uses, if it binds no address
    _flag("drained"),
    _time("seen_at"),
    _seconds("attempts_per_s"),  # mean over a fixed window, from the heartbeat
    _count("backlog"),  # leases not begun, as of the last heartbeat
    _count("idle"),  # attempts begun that hold no slot, as of the last heartbeat
    _count("storing"),  # those of them that wait for the database
    Column("parameters", _Json),  # tasks.scheduling.balance.parameters; null: not reported
    Column("catalog", String(16)),  # splitter.catalog.entries: hash of all its entries
    Column("entries", _Json),  # and of each, by site; null: not reported
    _seconds("clock_s"),  # how far its clock is ahead of the database's
    _time("registered_at", nullable=False),
    # A person's settings of a node that `run` and `up` should crawl with:
    _time("added_at"),  # null: no person added it
    Column("chosen_slots", Integer),  # null: as many as the run gives each node
    Column("proxy", Text),  # with its password: nothing but the node itself reads it
)

pages = _table(
    "pages",
    _id(),
    Column("url", Text, nullable=False),
    Column("url_key", LargeBinary(16), nullable=False, unique=True),
    Column("site", String(255), nullable=False),
    Column("title", Text, nullable=False, server_default=text("''")),
    Column("content_hash", String(32), nullable=False),  # empty: imported, or its texts were deleted
    Column("encoding", String(20), nullable=False),
    _count("bytes"),
    _count("reviews"),
    _time("fetched_at", nullable=False),
    Column("node", String(100), nullable=False),  # empty: imported
    _ref("attempt_id", "attempts", nullable=True),  # null: imported
    _flag("late"),
    _time("checked_at"),  # when it was fetched again; null: never since fetched_at
    Column("etag", Text),
    Column("last_modified", Text),
    Column("source", String(100)),  # source of the import; null: crawled
    Column(
        "confidence", Float
    ),  # PageRead.confidence, 0 to 1; 1 by rules; null: imported, or stored by 0.9.0
    Index(None, "attempt_id"),
)

_JUDGED_LATER = text("serial > 0")
_UNJUDGED = text("verdict = 'unjudged'")
page_products = _table(
    "page_products",
    Column("page_id", _Id, ForeignKey("pages.id"), primary_key=True),
    Column("product_id", _Id, ForeignKey("products.id"), primary_key=True),
    _time("linked_at", nullable=False),
    # The page to the product: a tasks.domain.verdicts.Verdict
    Column("verdict", String(20), nullable=False, server_default=text("'review'")),
    # Keywords it lacks, separated by blanks.
    Column("missing", Text, nullable=False, server_default=text("''")),
    # Grows with each link of a stored page whose verdict becomes `review`; 0: it came with its page.
    Column("serial", BigInteger, nullable=False, server_default=text("0")),
    Index(None, "product_id"),
    Index(None, "serial", sqlite_where=_JUDGED_LATER, postgresql_where=_JUDGED_LATER),
    Index("ix_page_products_unjudged", "page_id", sqlite_where=_UNJUDGED, postgresql_where=_UNJUDGED),
)

_COPIES = text("same_as IS NOT NULL")
_UNREAD = text("themes = '[]'")
_CORRECTED = text("correction_id IS NOT NULL")
_WITH_KEY = text("copy_key IS NOT NULL AND refused IS NULL")
_REVIEWS, _REFUSED = text("refused IS NULL"), text("refused IS NOT NULL")
_REFUSED_TEXTS = text("refused IS NOT NULL AND body <> ''")
# Reviews, and the other records of pages (tasks.store.content.reviews).
reviews = _table(
    "reviews",
    _id(),
    _ref("page_id", "pages"),
    Column("key", String(200), nullable=False),  # its id on the page, or #place
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("date_text", Text, nullable=False),
    _time("published_at"),
    Column("day", Date),  # of published_at in the zone of the site, or in the one that the page names
    _flag("has_clock"),  # false: only a day was written
    Column("rating", Float),
    Column("variant", Text, nullable=False, server_default=text("''")),  # an app's version, a car's model
    Column("url", Text, nullable=False),
    Column("site", String(255), nullable=False),
    Column("text_hash", LargeBinary(16), nullable=False),
    # Equal for copies (tasks.reading.copies); null: a copy of no other review, or an old one not compared yet.
    Column("copy_key", LargeBinary(16)),
    _ref("same_as", "reviews", nullable=True),  # the first review with this copy_key
    _time("collected_at", nullable=False),
    Column("node", String(100), nullable=False),
    _ref("attempt_id", "attempts", nullable=True),
    # The voice (tasks.domain.voices); null: not judged.
    Column("voice", String(10)),
    Column("voice_probability", Float),
    Column("buyer", Float),
    Column("sentiment", Float),
    Column("voice_model", String(20)),
    Column("themes", _Json),  # [theme, sentiment, quote from, to] of each; null: none; []: not read
    Column("correction_id", _Id),  # a person's, which wins over voice and themes; null: none
    # null: a review; else wrong_product, or a tasks.reading.relevance.RejectReason
    Column("refused", String(20)),
    UniqueConstraint("page_id", "key"),
    Index(None, "copy_key", sqlite_where=_WITH_KEY, postgresql_where=_WITH_KEY),
    # Deletes a review without reading all others:
    Index(None, "same_as", sqlite_where=_COPIES, postgresql_where=_COPIES),
    Index(None, "correction_id", sqlite_where=_CORRECTED, postgresql_where=_CORRECTED),
    # Counts voices and refusals from the index alone. Partial, as SQLite prefers an index that begins with
    # `refused` to better ones.
    Index(None, "voice", "refused", sqlite_where=_REVIEWS, postgresql_where=_REVIEWS),
    Index(None, "refused", "page_id", sqlite_where=_REFUSED, postgresql_where=_REFUSED),
    # Counts the ones that were not read for themes:
    Index("ix_reviews_unread", "id", sqlite_where=_UNREAD, postgresql_where=_UNREAD),
    # Finds old texts of refused records for retention:
    Index(
        "ix_reviews_refused_texts",
        "collected_at",
        sqlite_where=_REFUSED_TEXTS,
        postgresql_where=_REFUSED_TEXTS,
    ),
)

review_links = _table(
    "review_links",
    Column("review_id", _Id, ForeignKey("reviews.id"), primary_key=True),
    _ref("original_id", "reviews"),  # the earlier review whose text is nearly the same; no repost itself
    Column("similarity", Float, nullable=False),  # Jaccard of 3-grams, 0 to 1
    Index(None, "original_id"),
)

# An index of the texts of reviews that are no reposts (tasks.reading.copies.near_duplicates.bands).
review_bands = _table(
    "review_bands",
    Column("band", BigInteger, primary_key=True, autoincrement=False),
    Column("review_id", _Id, primary_key=True, autoincrement=False),
    sqlite_with_rowid=False,
)


def _number(name: str) -> Column[int]:
    return Column(name, _Id, primary_key=True, nullable=False, autoincrement=False)


def _name(name: str, length: int) -> Column[str]:
    return Column(name, String(length), primary_key=True)


def _day() -> Column[int]:
    return Column("day", Integer, primary_key=True, nullable=False, autoincrement=False)


# Corrections of reviews by people (tasks.store.content.corrections).
corrections = _table(
    "corrections",
    _id(),
    Column("voice", String(10)),  # null: the model's
    Column("themes", _Json),  # as of reviews; null: the model's
    _flag("hidden"),
    Column("because", String(500), nullable=False),  # may be empty
    Column("who", String(200), nullable=False),
    _time("at", nullable=False),
)

correction_texts = _table(
    "correction_texts",  # the texts that a correction holds for, stored or not
    _id(),
    _ref("correction_id", "corrections"),
    Column("copy_key", LargeBinary(16)),
    Column("page_key", LargeBinary(16), nullable=False),  # url_key of the page
    Column("review_key", String(200)),  # null: the page gives the review no id
    Column("text_hash", LargeBinary(16), nullable=False),
    Index(None, "correction_id"),
    Index(None, "copy_key"),
    Index(None, "page_key"),
)

correction_products = _table(
    "correction_products",  # products that a corrected review is not about
    Column("correction_id", _Id, ForeignKey("corrections.id"), primary_key=True),
    Column("product_id", _Id, ForeignKey("products.id"), primary_key=True),
    Index(None, "product_id"),
)

# What people count, clustered by its first columns (tasks.store.content.counted_reviews).
review_days = _table(
    "review_days",
    _number("product_id"),  # the one that counts: products.counted_as, if the page's own product has it
    _day(),  # from 1970-01-01 on; -1: its date could not be read
    _name("site", 255),
    _name("voice", 10),  # empty: not judged; left_out: it does not count for the product
    _number("review_id"),
    sqlite_with_rowid=False,
)

review_themes = _table(
    "review_themes",
    _number("product_id"),
    _name("theme", 40),
    _day(),
    _name("site", 255),
    _number("review_id"),
    Column("quote_from", Integer, nullable=False),  # where in its text the clause begins that shows the theme
    Column("quote_to", Integer, nullable=False),
    Column("sentiment", Integer, nullable=False),  # -1: a complaint
    sqlite_with_rowid=False,
)

# Themes that a person archived until they rise (tasks.store.content.archived_themes).
archived_themes = _table(
    "archived_themes",
    Column("product_id", _Id, ForeignKey("products.id"), primary_key=True),
    _name("theme", 40),
    _time("archived_at", nullable=False),
)

# Files of products or reviews that people bring (tasks.store.content.numbered_imports).
imports = _table(
    "imports",
    _id(),
    Column("kind", String(10), nullable=False),
    Column("file", String(500), nullable=False),  # empty: names that were typed
    Column("source", String(100)),  # of reviews
    Column("who", String(200), nullable=False),
    _time("begun_at", nullable=False),
    _time("ended_at"),  # null: under way, or broken off
    _time("undo_begun_at"),  # from then on it adds nothing
    _time("undone_at"),
    _count("added"),
    _count("known"),
)

import_products = _table(
    "import_products",  # products that an import names; of one that is undone, those that are still to be looked at
    Column("import_id", _Id, ForeignKey("imports.id"), primary_key=True),
    Column("product_id", _Id, ForeignKey("products.id"), primary_key=True),
    Column("added", Boolean, nullable=False),
    Column("every_s", Float),  # the interval of the recrawl that it added
    Column("before", _Json),  # columns of a product that it added again; null: a new product
    Index(None, "product_id"),
)

import_reviews = _table(
    "import_reviews",  # likewise, reviews
    Column("import_id", _Id, ForeignKey("imports.id"), primary_key=True),
    Column("review_id", _Id, ForeignKey("reviews.id"), primary_key=True),
    Column("added", Boolean, nullable=False),
    Index(None, "review_id"),
    sqlite_with_rowid=False,
)

# Values by name: marks of sweeps, times, measurements, a trained model (tasks.store.queue.upkeep).
stored_values = _table(
    "stored_values",
    Column("name", String(60), primary_key=True),
    _time("at", nullable=False),
    Column("data", _Json, nullable=False),
)

events = _table(
    "events",
    _id(),
    _time("at", nullable=False),
    _ref("subtask_id", "subtasks"),
    Column("transition", String(12), nullable=False),
    Column("from_state", String(12)),
    Column("to_state", String(12), nullable=False),
    Column("token", String(32)),
    Column("attempt_id", _Id),
    Column("node", String(100)),
    Column("reason", String(40)),
    Column("detail", _Json),
    # Columns of the subtask that it set, with their values; null: of 0.10.0 or earlier, not known.
    Column("sets", _Json),
    Index(None, "subtask_id", "id"),
)

# Actions of people: tasks.store.queue.notices.
audit_log = _table(
    "audit_log",
    _id(),
    _time("at", nullable=False),
    Column("who", String(200), nullable=False),
    Column("action", String(40), nullable=False),
    Column("subject", String(500), nullable=False),
    Column("detail", _Json, nullable=False),
)

# Alerts, sent when something goes wrong and again when it is over: tasks.store.queue.notices.
alerts = _table(
    "alerts",
    Column("rule", String(20), primary_key=True),
    Column("subject", String(255), primary_key=True),
    Column("because", _Json, nullable=False),  # a reason, see tasks.domain.reasons
    Column("level", Float),  # the rule's level of comparison while it is on
    _time("since", nullable=False),
    _flag("firing"),
    _flag("told"),
    _time("told_at"),
    _time("claimed_at"),  # since when it is being sent
    Column("trouble", Text, nullable=False, server_default=text("''")),
)
