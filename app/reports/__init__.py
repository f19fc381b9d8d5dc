"""Documents for people: reports, charts, the failed-task report."""
