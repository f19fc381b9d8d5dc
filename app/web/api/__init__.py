"""The API: the data and actions of the pages as JSON, described by /api/openapi.json."""
