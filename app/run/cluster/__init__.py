"""The cluster runner: Celery workers and beat over PostgreSQL and Redis, and `up`, which runs all on one machine."""
