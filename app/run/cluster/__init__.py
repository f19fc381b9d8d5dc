"""The cluster runner: Celery workers and beat over PostgreSQL and Redis, and `up`, which starts one on a machine."""
