"""Run the migrations on the open connection that `tasks.store.sql.schema` hands over."""

from alembic import context

from tasks.store.sql.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    compare_type=True,
    compare_server_default=False,
)
with context.begin_transaction():
    context.run_migrations()
