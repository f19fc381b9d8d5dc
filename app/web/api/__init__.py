"""The same as the pages, for programs: JSON, described by /api/openapi.json."""
