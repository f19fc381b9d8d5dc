"""``python -m app.run.cluster.migrate``: bring the database to the newest schema before a cluster starts."""

from __future__ import annotations

import sys

from app.run import open_store
from app.run.settings import load_settings
from splitter.errors import ReviewloopError


def main() -> None:
    """Migrate what REVIEWLOOP_DATABASE_URL names. Exit status: 0 done, 1 it could not be done."""
    try:
        with open_store.opened_store(load_settings()):
            print("The database has the newest schema.", file=sys.stderr)
    except ReviewloopError as error:
        sys.exit(f"reviewloop: {error}")


if __name__ == "__main__":
    main()
