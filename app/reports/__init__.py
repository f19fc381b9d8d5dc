"""Documents for people: reports, charts, and the report on failed tasks."""
