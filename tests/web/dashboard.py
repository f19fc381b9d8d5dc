"""A dashboard that runs, as tests ask it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import requests
from patience import PATIENCE_S

from tasks.store.sql.database import Store


@dataclass
class Served:
    """A dashboard that runs.

    Attributes:
        address: with a slash at its end.
    """

    address: str
    store: Store
    session: requests.Session

    def get(self, path: str, **options: Any) -> requests.Response:
        """Ask for a page."""
        return self.session.get(self.address + path.lstrip("/"), timeout=PATIENCE_S, **options)

    def post(self, path: str, **options: Any) -> requests.Response:
        """Send a form, or JSON."""
        return self.session.post(self.address + path.lstrip("/"), timeout=PATIENCE_S, **options)


Serve = Callable[..., Served]
