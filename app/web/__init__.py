"""The dashboard, its API and its metrics. Pages are rendered on the server."""
